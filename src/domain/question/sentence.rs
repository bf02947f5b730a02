//! Sentences as words, and small patterns over them.
//!
//! A pattern is words with a space between: `let|tell me|us whether`. `a|b` is either; `..` stands
//! for up to four words or none; `^` in front wants the word where a clause begins, `^^` where the
//! sentence does; `$` behind it where a clause ends, `:` behind it before a colon.

use super::prose::LEFT_OUT;

/// How far around a question mark one has to look, in characters.
const NEAR: usize = 64;
/// How many words `..` stands for at most.
const GAP: usize = 4;
/// How far before a phrase a word that turns it into its opposite is looked for.
const NEGATED_WITHIN: usize = 3;

/// Words that are two and mean one.
const JOINED: &[(&str, &str)] = &[
    ("go", "ahead"),
    ("sign", "off"),
    ("signs", "off"),
    ("green", "light"),
    ("thumbs", "up"),
    ("say", "so"),
    ("feu", "vert"),
    ("visto", "bueno"),
];

/// What a clause may begin with before it begins.
const FILLERS: &[&str] = &[
    "so",
    "and",
    "but",
    "or",
    "then",
    "also",
    "ok",
    "okay",
    "hi",
    "hey",
    "hello",
    "please",
    "pls",
    "now",
    "well",
    "btw",
    "just",
    "otherwise",
    "thanks",
    "und",
    "oder",
    "aber",
    "also",
    "bitte",
    "dann",
    "et",
    "mais",
    "y",
    "o",
    "pero",
];

const NEGATIONS: &[&str] = &[
    "no", "not", "never", "without", "none", "nothing", "neither", "nor", "nobody", "dont",
    "doesnt", "didnt", "isnt", "arent", "wasnt", "wont", "longer", "hardly", "kein", "keine",
    "keinen", "nicht", "pas", "sans", "aucune", "aucun", "sin", "ninguna",
];

/// Words that, with one of the others behind them, begin a question.
const AUXILIARIES: &[&str] = &[
    "can", "could", "should", "shall", "may", "must", "would", "will", "do", "did", "are", "have",
    "am", "does", "has", "is",
];
const PRONOUNS: &[&str] = &["i", "we", "you", "anyone", "anybody", "someone", "somebody"];
const THINGS: &[&str] = &["there", "it", "this", "that"];
/// These begin conditions and statements.
const NOT_INVERTED: &[(&str, &str)] = &[
    ("should", "you"),
    ("did", "i"),
    ("did", "we"),
    ("may", "you"),
    ("have", "i"),
    ("have", "we"),
    ("have", "it"),
    ("have", "this"),
    ("have", "that"),
    ("do", "it"),
    ("do", "this"),
    ("do", "that"),
];
const INTERROGATIVES: &[&str] =
    &["what", "which", "who", "whom", "whose", "where", "when", "why", "how"];

#[derive(Debug)]
struct Word {
    /// In lower case, without apostrophes.
    text: String,
    begins_clause: bool,
    /// The sign that ends a clause right behind it.
    sign: Option<char>,
}

#[derive(Debug, Default)]
pub(super) struct Sentence {
    words: Vec<Word>,
    /// It ends with a question mark.
    pub(super) has_mark: bool,
}

/// The sentences of a paragraph.
pub(super) fn sentences(paragraph: &str) -> Vec<Sentence> {
    let chars: Vec<char> = paragraph.chars().collect();
    let mut sentences = Vec::new();
    let mut sentence = Sentence::default();
    let mut word = String::new();
    let mut begins = true;
    let mut is_mention = false;
    for (at, c) in chars.iter().copied().enumerate() {
        let (before, after) = chars.split_at(at);
        let after = after.get(1..).unwrap_or_default();
        // Whom it speaks to is no part of the sentence.
        is_mention = (is_mention || c == '@') && !c.is_whitespace() && !",:".contains(c);
        if is_mention {
            continue;
        }
        if c.is_alphanumeric() || c == LEFT_OUT {
            word.extend(c.to_lowercase());
            continue;
        }
        if "'’".contains(c) && !word.is_empty() {
            continue;
        }
        sentence.push(&mut word, &mut begins);
        let asks = is_question_mark(before, c, after);
        if asks || ends_sentence(c, after) {
            sentence.has_mark = asks;
            sentences.push(sentence.joined());
            sentence = Sentence::default();
            begins = true;
        } else if ends_clause(before, c, after) {
            begins = true;
            if let Some(last) = sentence.words.last_mut() {
                last.sign = last.sign.or((c != '\n').then_some(c));
            }
        }
    }
    sentence.push(&mut word, &mut begins);
    sentences.push(sentence.joined());
    sentences.retain(|sentence| sentence.has_mark || !sentence.words.is_empty());
    sentences
}

fn ends_sentence(c: char, after: &[char]) -> bool {
    let is_last = after.first().is_none_or(|c| c.is_whitespace() || "\"'”’)]*_".contains(*c));
    "。！".contains(c) || (".!?…".contains(c) && is_last)
}

fn ends_clause(before: &[char], c: char, after: &[char]) -> bool {
    let is_spaced = |chars: Option<&char>| chars.is_none_or(|c| c.is_whitespace());
    match c {
        ',' | ';' | ':' => is_spaced(after.first()),
        '-' => is_spaced(after.first()) && is_spaced(before.last()),
        '—' | '–' | '(' | ')' | '\n' | '，' | '：' | '*' => true,
        _ => false,
    }
}

/// Whether this sign ends a question, and is no operator, wildcard or part of an address.
fn is_question_mark(before: &[char], c: char, after: &[char]) -> bool {
    if "？؟⁇⁈‽՞\u{37e}¿".contains(c) {
        return true;
    }
    if c != '?' {
        return false;
    }
    let rest = after.iter().copied().take(NEAR).skip_while(|c| "?!".contains(*c));
    let rest: Vec<char> = rest.collect();
    let next = rest.first().copied();
    let is_own = |c: char| c.is_alphanumeric() || !c.is_ascii() || ")]}%\"'+#$".contains(c);
    let ends = match next {
        None => true,
        Some(',' | '.') => rest.get(1).is_none_or(|c| c.is_whitespace() || *c == '.'),
        Some(next) => next.is_whitespace() || !next.is_ascii() || ")]}\"'*_~".contains(next),
    };
    let last = before.iter().rev().copied().take(NEAR).find(|c| !"*_~?!".contains(*c));
    match last {
        _ if !ends => false,
        // As the French write it: with a space.
        Some(' ') => {
            let follows = rest.iter().copied().find(|c| *c != ' ');
            let is_operator = follows.is_some_and(|c| {
                !c.is_uppercase()
                    && (c.is_ascii_alphanumeric() || c.is_lowercase() || ":.,\"'".contains(c))
            });
            let word: String = last_word(before);
            let is_word = word.chars().any(char::is_alphabetic)
                && (word.chars().any(char::is_lowercase) || !word.is_ascii());
            !is_operator && is_word && !is_code(&word) && after.first() != Some(&'?')
        }
        Some(last) => {
            // `[y/N]` behind it is a program's.
            let shown: String = rest.iter().take(7).collect::<String>().to_lowercase();
            let is_prompt = ["[y/n]", "[yes/n"].iter().any(|it| shown.trim_start().starts_with(it));
            is_own(last) && !is_prompt && !is_code(&last_word(before))
        }
        None => false,
    }
}

fn last_word(before: &[char]) -> String {
    let word = before.iter().rev().take(NEAR).skip_while(|c| c.is_whitespace());
    let mut word: Vec<char> = word.take_while(|c| !c.is_whitespace()).copied().collect();
    word.reverse();
    word.into_iter().collect()
}

fn is_code(word: &str) -> bool {
    let is_pattern = word.starts_with('(') && word.contains('|');
    is_pattern || word.contains(['\\', '=', '^', ';', '?'])
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Pattern(Vec<Part>);

#[derive(Debug)]
enum Part {
    Gap,
    Word { any_of: Vec<&'static str>, begins: Begins, ends: Ends },
}

#[derive(Debug, Clone, Copy)]
enum Begins {
    Anywhere,
    Clause,
    Sentence,
}

#[derive(Debug, Clone, Copy)]
enum Ends {
    Anywhere,
    Clause,
    BeforeColon,
}

impl Pattern {
    pub(super) fn new(text: &'static str) -> Pattern {
        Pattern(text.split(' ').map(Part::new).collect())
    }
}

impl Part {
    fn new(text: &'static str) -> Part {
        if text == ".." {
            return Part::Gap;
        }
        let (text, begins) = match (text.strip_prefix("^^"), text.strip_prefix('^')) {
            (Some(rest), _) => (rest, Begins::Sentence),
            (None, Some(rest)) => (rest, Begins::Clause),
            (None, None) => (text, Begins::Anywhere),
        };
        let (text, ends) = match (text.strip_suffix('$'), text.strip_suffix(':')) {
            (Some(rest), _) => (rest, Ends::Clause),
            (None, Some(rest)) => (rest, Ends::BeforeColon),
            (None, None) => (text, Ends::Anywhere),
        };
        Part::Word { any_of: text.split('|').collect(), begins, ends }
    }
}

impl Word {
    fn negates(&self) -> bool {
        NEGATIONS.contains(&self.text.as_str())
    }

    fn is_filler(&self) -> bool {
        FILLERS.contains(&self.text.as_str())
    }
}

impl Sentence {
    fn push(&mut self, word: &mut String, begins: &mut bool) {
        if word.is_empty() {
            return;
        }
        let word = Word { text: std::mem::take(word), begins_clause: *begins, sign: None };
        *begins = *begins && word.is_filler();
        self.words.push(word);
    }

    /// With words that mean one in one.
    fn joined(mut self) -> Sentence {
        let mut at = 0;
        while let [first, second] = self.words.get(at..at + 2).unwrap_or_default() {
            if JOINED.contains(&(first.text.as_str(), second.text.as_str())) {
                let second = self.words.remove(at + 1);
                if let Some(first) = self.words.get_mut(at) {
                    first.text.push_str(&second.text);
                    first.sign = second.sign;
                }
            }
            at += 1;
        }
        self
    }

    /// It speaks to its reader.
    pub(super) fn addresses(&self) -> bool {
        self.words.iter().any(|word| ["you", "your"].contains(&word.text.as_str()))
    }

    /// It begins as a question does: `can you`, `which branch should I`.
    pub(super) fn is_inverted(&self) -> bool {
        let pairs = || self.words.windows(2).enumerate();
        let is_pair = |pair: &[Word]| {
            let [first, second] = pair else { return false };
            let pair = (first.text.as_str(), second.text.as_str());
            AUXILIARIES.contains(&pair.0)
                && (PRONOUNS.contains(&pair.1) || THINGS.contains(&pair.1))
                && !NOT_INVERTED.contains(&pair)
        };
        pairs().any(|(at, pair)| {
            let begins = pair.first().is_some_and(|word| word.begins_clause);
            let asked_before = |back: usize| {
                let first = at.checked_sub(back).and_then(|at| self.words.get(at));
                first.is_some_and(|word| {
                    self.begins(word) && INTERROGATIVES.contains(&word.text.as_str())
                })
            };
            let is_thing = pair.get(1).is_some_and(|it| THINGS.contains(&it.text.as_str()));
            is_pair(pair) && (begins || !is_thing && (1..5).any(asked_before))
        })
    }

    /// Whether a clause begins with this word that is the sentence's first, or follows a colon.
    fn begins(&self, word: &Word) -> bool {
        let mut before = None;
        for other in &self.words {
            if std::ptr::eq(other, word) {
                let opens = before.is_none_or(|before: &Word| {
                    before.sign.is_some_and(|sign| ":,—–-".contains(sign)) || before.is_filler()
                });
                return word.begins_clause && opens;
            }
            before = Some(other);
        }
        false
    }

    pub(super) fn has(&self, pattern: &Pattern) -> bool {
        (0..self.words.len()).any(|at| self.matches(at, &pattern.0, false))
    }

    /// As [`Sentence::has`], where no `not` and the like is near.
    pub(super) fn has_unnegated(&self, pattern: &Pattern) -> bool {
        let fits = |at: &usize| self.matches(*at, &pattern.0, true);
        (0..self.words.len()).filter(fits).any(|at| !self.is_negated(at))
    }

    fn is_negated(&self, at: usize) -> bool {
        let mut from = at;
        while from > 0 && at - from < NEGATED_WITHIN {
            let begins = self.words.get(from).is_some_and(|word| word.begins_clause);
            if begins {
                break;
            }
            from -= 1;
        }
        let before = self.words.get(from..at).unwrap_or_default();
        before.iter().any(Word::negates)
            || before
                .last()
                .is_some_and(|word| ["was", "were", "been"].contains(&word.text.as_str()))
    }

    /// Whether the pattern fits from the word `at` on; `strictly` not across a negation.
    fn matches(&self, at: usize, pattern: &[Part], strictly: bool) -> bool {
        match pattern.split_first() {
            None => true,
            Some((Part::Gap, rest)) => {
                let gap = |n: usize| self.words.get(at..at + n).unwrap_or_default();
                let is_crossed = |n: usize| strictly && gap(n).iter().any(Word::negates);
                (0..=GAP).any(|n| self.matches(at + n, rest, strictly) && !is_crossed(n))
            }
            Some((Part::Word { any_of, begins, ends }, rest)) => {
                let Some(word) = self.words.get(at) else { return false };
                any_of.contains(&word.text.as_str())
                    && self.begins_at(at, word, *begins)
                    && self.ends_at(at, word, *ends)
                    && self.matches(at + 1, rest, strictly)
            }
        }
    }

    fn begins_at(&self, at: usize, word: &Word, begins: Begins) -> bool {
        match begins {
            Begins::Anywhere => true,
            Begins::Clause => word.begins_clause,
            Begins::Sentence => {
                self.words.get(..at).unwrap_or_default().iter().all(Word::is_filler)
            }
        }
    }

    fn ends_at(&self, at: usize, word: &Word, ends: Ends) -> bool {
        match ends {
            Ends::Anywhere => true,
            Ends::BeforeColon => word.sign == Some(':'),
            Ends::Clause => {
                let next = self.words.get(at + 1);
                word.sign.is_some() || next.is_none_or(|next| next.begins_clause)
            }
        }
    }
}
