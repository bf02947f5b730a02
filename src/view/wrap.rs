//! Text at the width of a terminal.
//!
//! A terminal breaks a long line by itself, and what follows stands in the first column: there the
//! words of others could pose as ours. So a fenced line is broken here, with the fence before each
//! part; our own lines are broken between words and set in.

use unicode_width::UnicodeWidthChar as _;

const FENCE: &str = "| ";
const SET_IN: &str = "  ";
/// Narrower terminals break lines as they like.
const NARROWEST: usize = 20;

/// The text with no line wider than `width` columns.
pub fn wrap(text: &str, width: usize) -> String {
    if width < NARROWEST {
        return text.to_owned();
    }
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| match line.strip_prefix(FENCE) {
            Some(words) => broken(words, FENCE, FENCE, width, false),
            None => broken(line, "", SET_IN, width, true),
        })
        .collect();
    lines.join("\n")
}

/// One line as several: `first` stands before the first, `next` before the others.
fn broken(line: &str, first: &str, next: &str, width: usize, between_words: bool) -> String {
    let mut shown = String::from(first);
    let mut room = width.saturating_sub(first.len());
    let mut rest = line;
    loop {
        let fits = fitting(rest, room);
        if fits == rest.len() {
            shown.push_str(rest);
            return shown;
        }
        let at = if between_words { gap_before(rest, fits) } else { fits };
        let (part, after) = rest.split_at_checked(at).unwrap_or((rest, ""));
        shown.push_str(if between_words { part.trim_end() } else { part });
        shown.push('\n');
        shown.push_str(next);
        room = width.saturating_sub(next.len());
        rest = if between_words { after.trim_start() } else { after };
    }
}

/// How many bytes of the text fit into so many columns; one character at least.
fn fitting(text: &str, columns: usize) -> usize {
    /// A tab takes up to so many columns.
    const TAB: usize = 8;
    let mut used = 0;
    for (n, (at, c)) in text.char_indices().enumerate() {
        used += if c == '\t' { TAB } else { c.width().unwrap_or(0) };
        if used > columns && n > 0 {
            return at;
        }
    }
    text.len()
}

/// The end of the last word that ends before `at`; `at` itself where one word fills the line.
fn gap_before(text: &str, at: usize) -> usize {
    let head = text.get(..at).unwrap_or(text);
    if text.get(at..).is_some_and(|rest| rest.starts_with(' ')) {
        return at;
    }
    match head.rfind(' ') {
        Some(gap) if gap > 0 => gap + 1,
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::wrap;

    #[test]
    fn lines_are_broken_with_their_fence() {
        let check = |text: &str, shown: &str| assert_eq!(wrap(text, 20), shown);
        check("short\n| short", "short\n| short");
        check("one two three four five six", "one two three four\n  five six");
        check(
            &"x".repeat(45),
            &format!("{0}\n  {1}\n  {2}", "x".repeat(20), "x".repeat(18), "x".repeat(7)),
        );
        check(
            "| ok                #99 human to everyone",
            "| ok                \n| #99 human to every\n| one",
        );
        check("| 日本語日本語日本語日本語", "| 日本語日本語日本語\n| 日本語");
        check("a\tb\tc\td", "a\tb\tc\n  d");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_every_part_is_fenced(words in "[ -~日é]{0,200}", width in 20usize..60) {
            let shown = wrap(&format!("| {words}"), width);
            prop_assert!(shown.split('\n').all(|line| line.starts_with("| ")));
            let joined: String = shown.split('\n').map(|line| &line[2..]).collect();
            prop_assert_eq!(joined, words);
        }
    }
}
