//! Whether a message asks its reader something: a question, or for a decision.
//!
//! Read as a person would skim it. Only the writer's own words count: no code, logs, quotations or
//! addresses. Then a question is a sentence that ends as one, or that begins as one where the writer
//! left the mark out; a request for a decision is one of the [`phrases`]. To be asked once too often
//! is better than to wait for an answer that nobody knows is wanted, so what is doubtful counts.
//!
//! A wish to be told when something is done, or if it fails, asks for nothing now, and does not
//! count. Nor does a question that its writer answers at once.

mod phrases;
mod prose;
mod sentence;

use self::{
    phrases::{
        DECISIONS, NEGATABLE_DECISIONS, QUESTIONS, REPORTS, RHETORIC, SELF_ANSWERS, SUBSTRINGS,
    },
    sentence::{Sentence, sentences},
};

/// What a message wants of its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    Question,
    Decision,
}

/// What a text asks of its reader, if anything.
pub fn asked(text: &str) -> Option<Asks> {
    let paragraphs = prose::paragraphs(text);
    let all: Vec<Sentence> = paragraphs.iter().flat_map(|paragraph| sentences(paragraph)).collect();
    let mut next = all.iter().skip(1);
    let mut found = None;
    for sentence in &all {
        let after = next.next();
        if is_question(sentence) && !after.is_some_and(|after| answers(after, sentence)) {
            return Some(Asks::Question);
        }
        if found.is_none() && wants_decision(sentence) {
            found = Some(Asks::Decision);
        }
    }
    let has = |(words, asks): &(&str, Asks)| {
        paragraphs.iter().any(|paragraph| paragraph.contains(words)).then_some(*asks)
    };
    found.or_else(|| SUBSTRINGS.iter().find_map(has))
}

fn is_question(sentence: &Sentence) -> bool {
    if REPORTS.iter().chain(RHETORIC.iter()).any(|it| sentence.has(it)) {
        return false;
    }
    sentence.has_mark || sentence.is_inverted() || QUESTIONS.iter().any(|it| sentence.has(it))
}

fn wants_decision(sentence: &Sentence) -> bool {
    DECISIONS.iter().any(|it| sentence.has(it))
        || NEGATABLE_DECISIONS.iter().any(|it| sentence.has_unnegated(it))
}

/// `Why did it fail? Because ...`: the writer answers. Who asks `you` does not.
fn answers(answer: &Sentence, question: &Sentence) -> bool {
    !question.addresses() && SELF_ANSWERS.iter().any(|it| answer.has(it))
}

#[cfg(test)]
mod tests;
