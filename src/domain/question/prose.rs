//! What a writer says in their own words: a text without code, logs, quotations and addresses.

/// Stands where something was left out, so that the sentence around it stays whole.
pub(super) const LEFT_OUT: char = '\u{fffc}';

/// A quotation that is longer, in characters, is none: its sign was something else.
const QUOTED: usize = 2_000;

/// The paragraphs of a text in the writer's own words. Each item of a list and each heading is one;
/// lines of a paragraph stay lines.
pub(super) fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut fence: Option<String> = None;
    let mut may_indent_code = true;
    for line in text.lines() {
        let words = line.trim();
        if let Some(open) = &fence {
            if words.starts_with(open.as_str()) && words.trim_matches(['`', '~']).is_empty() {
                fence = None;
            }
            continue;
        }
        fence = fence_of(words);
        let is_code = may_indent_code && (line.starts_with("    ") || line.starts_with('\t'));
        if words.is_empty() || fence.is_some() || is_code || is_of_others(words) {
            paragraphs.push(String::new());
            may_indent_code = true;
            continue;
        }
        may_indent_code = words.ends_with(':');
        let (own, begins) = without_marker(words);
        if begins {
            paragraphs.push(String::new());
        }
        if let Some(paragraph) = paragraphs.last_mut() {
            if !paragraph.is_empty() {
                paragraph.push('\n');
            }
            paragraph.push_str(own);
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.iter().map(|paragraph| without_insertions(paragraph)).collect()
}

/// The run of signs that opens a block of code.
fn fence_of(words: &str) -> Option<String> {
    let sign = words.chars().next().filter(|c| ['`', '~'].contains(c))?;
    let n_signs = words.chars().take_while(|c| *c == sign).count();
    let info = words.get(n_signs..).unwrap_or_default();
    (n_signs >= 3 && !info.contains('`')).then(|| sign.to_string().repeat(n_signs))
}

/// A quotation, a table, a command with its prompt, or a line of a log.
fn is_of_others(words: &str) -> bool {
    /// As compilers write, who begin in lower case.
    const LEVELS: &[&str] = &["error", "warning", "note", "hint", "help", "info", "debug", "fatal"];
    let level = words.split([':', '[', '(']).next().unwrap_or_default();
    let has_level = level.len() < words.len()
        && (LEVELS.contains(&level)
            || LEVELS.iter().any(|it| it.to_uppercase() == level)
            || level.is_empty() && is_bracketed_level(words));
    let digits = |n: usize| words.len() > n && words.chars().take(n).all(|c| c.is_ascii_digit());
    let has_time = digits(4) && words.get(4..5) == Some("-") && words.get(7..8) == Some("-")
        || digits(2) && words.get(2..3) == Some(":") && words.get(5..6) == Some(":");
    let has_prompt = ["$ ", "> ", ">", "| ", "|", "npm ERR!", "+ ", "@@ ", "?? "];
    has_level || has_time || has_prompt.iter().any(|prompt| words.starts_with(prompt))
}

/// `[INFO] ...`
fn is_bracketed_level(words: &str) -> bool {
    let inner = words.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    inner.is_some_and(|(level, _)| {
        level.len() > 2 && level.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
    })
}

/// A line without the sign of a list's item or a heading, and whether it had one.
fn without_marker(words: &str) -> (&str, bool) {
    if words.starts_with('#') {
        return (words.trim_start_matches('#').trim(), true);
    }
    let number = words.trim_start_matches(|c: char| c.is_ascii_digit());
    let item = if number.len() < words.len() {
        number.strip_prefix(". ").or_else(|| number.strip_prefix(") "))
    } else {
        ["- ", "* ", "• "].iter().find_map(|marker| words.strip_prefix(marker))
    };
    let Some(item) = item.map(str::trim) else { return (words, false) };
    let boxed = ["[ ] ", "[x] "].iter().find_map(|it| item.strip_prefix(it));
    (boxed.unwrap_or(item), true)
}

/// Code, quotations and addresses within a paragraph are left out.
fn without_insertions(paragraph: &str) -> String {
    let mut own = String::with_capacity(paragraph.len());
    let mut rest = paragraph;
    while let Some(c) = rest.chars().next() {
        let before = own.chars().next_back();
        let n_bytes = inserted(rest, before);
        if n_bytes == 0 {
            own.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        } else {
            own.push(LEFT_OUT);
            rest = rest.get(n_bytes..).unwrap_or_default();
        }
    }
    own
}

/// How many bytes at the beginning of `rest` are somebody else's words; 0 for none.
fn inserted(rest: &str, before: Option<char>) -> usize {
    let opens = before.is_none_or(|c| c.is_whitespace() || "([{*_/=:,".contains(c));
    let first = rest.chars().next().unwrap_or_default();
    match first {
        '`' => {
            let n_signs = rest.len() - rest.trim_start_matches('`').len();
            let (sign, after) = rest.split_at(n_signs);
            after.find(sign).map_or(0, |end| end + 2 * n_signs)
        }
        '"' | '\'' if opens => quotation(rest, first),
        '“' => until(rest, "”"),
        '„' => until(rest, "“”\""),
        '«' => until(rest, "»"),
        '»' if opens => until(rest, "«"),
        '「' => until(rest, "」"),
        '‘' if opens => quotation(rest, '’'),
        _ if opens && is_address(rest) => {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let address = rest.get(..end).unwrap_or_default();
            // What ends a sentence behind an address does not belong to it.
            address.trim_end_matches(['?', '.', ',', ')', '!', ':', ';', '*']).len()
        }
        _ => 0,
    }
}

/// A quotation whose last sign is another than its first.
fn until(rest: &str, close: &str) -> usize {
    let end = rest.char_indices().take(QUOTED).skip(1).find(|(_, c)| close.contains(*c));
    end.map_or(0, |(at, c)| at + c.len_utf8())
}

/// A quotation whose sign may be an apostrophe or a unit, too.
fn quotation(rest: &str, close: char) -> usize {
    let mut inner = rest.char_indices().take(QUOTED).skip(1).peekable();
    if inner.peek().is_none_or(|(_, c)| c.is_whitespace()) {
        return 0;
    }
    let mut before = ' ';
    while let Some((at, c)) = inner.next() {
        let after = inner.peek().map(|(_, c)| *c);
        let ends = after.is_none_or(|c| !c.is_alphanumeric());
        if c == close && !before.is_whitespace() && (ends || !"\"'’".contains(close)) {
            return at + c.len_utf8();
        }
        before = c;
    }
    0
}

fn is_address(rest: &str) -> bool {
    /// Of a scheme such as `https`, also as a pattern: `https?`.
    const AT_MOST: usize = 12;
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"+.-?".contains(b);
    let n_bytes = rest.bytes().take(AT_MOST).take_while(is_part).count();
    let has_scheme = n_bytes > 0 && rest.get(n_bytes..).is_some_and(|it| it.starts_with("://"));
    has_scheme || rest.starts_with("www.") || rest.starts_with("mailto:")
}

#[cfg(test)]
mod tests {
    use super::paragraphs;

    #[test]
    fn own_words_are_kept() {
        let check = |text: &str, own: &[&str]| {
            let shown = paragraphs(text).join("\n\n").replace(super::LEFT_OUT, "~");
            assert_eq!(shown, own.join("\n\n"), "{text}");
        };
        check("one\ntwo\n\nthree", &["one\ntwo", "three"]);
        check("a\n```rust\nx?\n```\nb", &["a", "b"]);
        check("a\n~~~\nx?", &["a"]);
        check("It says:\n    really?\ndone", &["It says:", "done"]);
        check("> why?\nBecause.", &["Because."]);
        check("- one\n- [ ] two\n1. three\n## four", &["one", "two", "three", "four"]);
        check("use `a?.b` and ``c`?``.", &["use ~ and ~."]);
        check(
            "he asked \"why?\" and 'how?', the users' way",
            &["he asked ~ and ~, the users' way"],
        );
        check("„Warum?“ «pourquoi ?» “why?”", &["~ ~ ~"]);
        check("see https://x.test/a?b=c, is it up?", &["see ~, is it up?"]);
        check("did you see https://x.test/?", &["did you see ~?"]);
        check("error[E0277]: did you mean x?\nhelp: why?\n[INFO] ok?\n12:03:44 what?", &[]);
        check("Note: is it done?", &["Note: is it done?"]);
        check("a \" b", &["a \" b"]);
    }
}
