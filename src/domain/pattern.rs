//! Patterns of paths, as reservations have them: what they match, and whether two have a path in
//! common.
//!
//! A pattern is relative to the top of a checkout: names with `/` between them, in which `*`, `?`,
//! `[a-z]` and `{a,b}` stand for what they do in `globset`, byte by byte and never for a `/`. The
//! name `**` stands for any number of folders. With a `/` at its end, or `**`, a pattern matches all
//! that is below, too: `src/` and `src/**` are the same files.

use globset::{Glob, GlobBuilder};
use unicode_normalization::UnicodeNormalization as _;

use crate::error::{Error, Result};

/// Characters of one pattern.
pub const CHARS: usize = 400;
/// What `{a,b}` may stand for in one name.
const ALTERNATIVES: usize = 64;

/// A pattern that is well formed.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    parts: Vec<Part>,
    /// All that is below matches, too.
    is_folder: bool,
}

/// What stands between two `/`.
#[derive(Debug, Clone)]
enum Part {
    /// `**`: any number of folders, also none.
    Folders,
    Name(Name),
}

#[derive(Debug, Clone)]
struct Name {
    /// What its braces stand for, each as it is written and as it is compared.
    alternatives: Vec<(String, Vec<Token>)>,
    /// The only name that it matches.
    literal: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// `*`.
    Any,
    One(Bytes),
}

/// A set of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bytes([u64; 4]);

impl Pattern {
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn parse(text: &str) -> Result<Pattern> {
        let n_chars = text.chars().count();
        if n_chars > CHARS {
            return Err(Error::invalid(format!(
                "a pattern has {n_chars} characters; at most {CHARS} are allowed"
            ))
            .hint("reserve the folder instead"));
        }
        let mut parts = Vec::new();
        for name in text.split('/').filter(|name| !name.is_empty()) {
            parts.push(match name {
                "**" => Part::Folders,
                name => Part::Name(Name::parse(name)?),
            });
        }
        let is_folder = text.ends_with('/') || matches!(parts.last(), Some(Part::Folders));
        // `src/**` needs one name below `src`.
        while let Some(Part::Folders) = parts.last() {
            parts.pop();
            if !matches!(parts.last(), Some(Part::Folders)) {
                parts.push(Part::Name(Name::parse("*")?));
            }
        }
        if parts.is_empty() {
            return Err(Error::invalid("a path is empty"));
        }
        Ok(Pattern { text: text.to_owned(), parts, is_folder })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The pattern as it is on a disk to which `SRC` and `src` are one folder, and both ways to write
    /// an `é` one name.
    #[must_use]
    pub fn ignoring_case(&self) -> Pattern {
        let text: String = self.text.nfc().collect::<String>().to_lowercase();
        // Where that makes no pattern, such as `[z-a]` of `[Z-a]`, it stays what it is.
        Pattern::parse(&text).unwrap_or_else(|_| self.clone())
    }

    /// Whether it matches a path.
    pub fn matches(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        matches(&self.parts, &names, self.is_folder)
    }

    /// Whether some path matches both.
    pub fn overlaps(&self, other: &Pattern) -> bool {
        for (mine, theirs) in self.parts.iter().zip(&other.parts) {
            let (Some(mine), Some(theirs)) = (mine.literal(), theirs.literal()) else { break };
            if mine != theirs {
                return false;
            }
        }
        meet(
            (&self.parts, &other.parts),
            (self.is_folder, other.is_folder),
            |part| matches!(part, Part::Folders),
            |mine, theirs| match (mine, theirs) {
                (Part::Name(mine), Part::Name(theirs)) => mine.overlaps(theirs),
                _ => false,
            },
        )
    }
}

fn matches(parts: &[Part], names: &[&str], is_folder: bool) -> bool {
    match (parts.split_first(), names.split_first()) {
        (None, None) => true,
        (None, Some(_)) => is_folder,
        (Some((Part::Folders, rest)), _) => {
            matches(rest, names, is_folder)
                || names.split_first().is_some_and(|(_, below)| matches(parts, below, is_folder))
        }
        (Some(_), None) => false,
        (Some((Part::Name(part), rest)), Some((name, below))) => {
            part.matches(name) && matches(rest, below, is_folder)
        }
    }
}

impl Part {
    fn literal(&self) -> Option<&[u8]> {
        match self {
            Part::Name(name) => name.literal.as_deref(),
            Part::Folders => None,
        }
    }
}

impl Name {
    fn parse(text: &str) -> Result<Name> {
        let mut alternatives = Vec::new();
        for text in expand(text)? {
            // The library decides what is a pattern.
            glob(&text)?;
            let tokens = tokens(&text)?;
            if !tokens.is_empty() {
                alternatives.push((text, tokens));
            }
        }
        let literal = match alternatives.as_slice() {
            [] => return Err(wrong(text, "matches nothing")),
            [(_, tokens)] => tokens.iter().map(|token| token.literal()).collect(),
            _ => None,
        };
        Ok(Name { alternatives, literal })
    }

    fn matches(&self, name: &str) -> bool {
        let mut globs = self.alternatives.iter().filter_map(|(text, _)| glob(text).ok());
        globs.any(|glob| glob.compile_matcher().is_match(name))
    }

    fn overlaps(&self, other: &Name) -> bool {
        if let (Some(mine), Some(theirs)) = (&self.literal, &other.literal) {
            return mine == theirs;
        }
        let theirs = |mine: &[Token]| other.alternatives.iter().any(|(_, it)| share(mine, it));
        self.alternatives.iter().any(|(_, mine)| theirs(mine))
    }
}

impl Token {
    fn literal(self) -> Option<u8> {
        match self {
            Token::One(bytes) => bytes.only(),
            Token::Any => None,
        }
    }
}

/// Whether some name matches both.
fn share(mine: &[Token], theirs: &[Token]) -> bool {
    meet(
        (mine, theirs),
        (false, false),
        |token| matches!(token, Token::Any),
        |mine, theirs| match (mine, theirs) {
            (Token::One(mine), Token::One(theirs)) => mine.meets(*theirs),
            _ => false,
        },
    )
}

/// Whether two sequences have something in common. `goes_on`: behind its end it takes anything;
/// `skips`: stands for any number of things; `fit`: one thing can be both. Each pair of places is looked at once, from the ends on.
fn meet<T>(
    (mine, theirs): (&[T], &[T]),
    goes_on: (bool, bool),
    skips: impl Fn(&T) -> bool,
    fit: impl Fn(&T, &T) -> bool,
) -> bool {
    let width = theirs.len() + 1;
    let mut below = vec![false; width];
    for i in (0..=mine.len()).rev() {
        let mut row = vec![false; width];
        for j in (0..width).rev() {
            let at = |row: &[bool], j: usize| row.get(j).copied().unwrap_or(false);
            let met = match (mine.get(i), theirs.get(j)) {
                (None, None) => true,
                (Some(one), None) => goes_on.1 || (skips(one) && at(&below, j)),
                (None, Some(one)) => goes_on.0 || (skips(one) && at(&row, j + 1)),
                // The one that skips ends here, or takes what the other one has.
                (Some(one), Some(other)) if skips(one) || skips(other) => {
                    at(&below, j) || at(&row, j + 1)
                }
                (Some(one), Some(other)) => at(&below, j + 1) && fit(one, other),
            };
            if let Some(cell) = row.get_mut(j) {
                *cell = met;
            }
        }
        below = row;
    }
    below.first().copied().unwrap_or(false)
}

fn glob(text: &str) -> Result<Glob> {
    GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map_err(|err| wrong(text, &err.kind().to_string()))
}

fn wrong(text: &str, why: &str) -> Error {
    let shown = text.escape_debug().to_string().replace('`', "\\u{60}");
    Error::invalid(format!("`{shown}` is not a pattern: {why}")).hint(
        "`*`, `?`, `[a-z]`, `{a,b}` and the name `**` are understood; `\\` before one of them \
         makes it a plain character",
    )
}

/// What the braces of a name stand for: `a.{h,c}` is `a.h` and `a.c`.
fn expand(all: &str) -> Result<Vec<String>> {
    let mut done = Vec::new();
    let mut open = vec![all.to_owned()];
    while let Some(text) = open.pop() {
        let Some((start, end, commas)) = braces(&text)? else {
            done.push(text);
            continue;
        };
        let cut = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let mut from = start + 1;
        for to in commas.into_iter().chain([end]) {
            open.push([cut(0, start), cut(from, to), cut(end + 1, text.len())].concat());
            from = to + 1;
        }
        if open.len() + done.len() > ALTERNATIVES {
            return Err(wrong(all, &format!("its braces stand for over {ALTERNATIVES} names")));
        }
    }
    Ok(done)
}

/// The first outermost braces, and the commas right in them.
fn braces(text: &str) -> Result<Option<(usize, usize, Vec<usize>)>> {
    let (mut start, mut depth, mut commas) = (0, 0, Vec::new());
    let mut rest = text.char_indices();
    while let Some((at, c)) = rest.next() {
        match c {
            '\\' => {
                rest.next();
            }
            '[' => skip_class(&mut rest),
            '{' => {
                depth += 1;
                if depth == 1 {
                    start = at;
                }
            }
            '}' if depth == 1 => return Ok(Some((start, at, commas))),
            '}' if depth == 0 => return Err(wrong(text, "`}` without `{`")),
            '}' => depth -= 1,
            ',' if depth == 1 => commas.push(at),
            _ => {}
        }
    }
    if depth > 0 { Err(wrong(text, "`{` without `}` in the same name")) } else { Ok(None) }
}

/// Behind the `[`: to behind the `]`. The first character is never the end.
fn skip_class(rest: &mut std::str::CharIndices<'_>) {
    let mut first = true;
    let begin = rest.clone();
    while let Some((_, c)) = rest.next() {
        match c {
            '!' | '^' if first && begin.as_str().len() == rest.as_str().len() + 1 => {}
            ']' if !first => return,
            _ => first = false,
        }
    }
}

/// A name that the library accepts and that has no braces, for comparing.
fn tokens(text: &str) -> Result<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '*' if tokens.last() == Some(&Token::Any) => {}
            '*' => tokens.push(Token::Any),
            '?' => tokens.push(Token::One(Bytes::none().but_slash())),
            '[' => tokens.push(Token::One(class(text, &mut rest)?)),
            c => {
                let c = if c == '\\' { rest.next().unwrap_or(c) } else { c };
                let mut bytes = [0; 4];
                let bytes = c.encode_utf8(&mut bytes).bytes();
                tokens.extend(bytes.map(|byte| Token::One(Bytes::none().with(byte, byte))));
            }
        }
    }
    Ok(tokens)
}

/// Behind the `[`, with the rules of the library: `]` as the first character stands for itself.
fn class(text: &str, rest: &mut std::str::Chars<'_>) -> Result<Bytes> {
    let negated = rest.as_str().starts_with(['!', '^']);
    if negated {
        rest.next();
    }
    let mut bytes = Bytes::none();
    let (mut first, mut in_range, mut last) = (true, false, 0);
    for c in rest.by_ref() {
        if c == ']' && !first {
            break;
        }
        let byte = match u8::try_from(c) {
            Ok(byte) if byte.is_ascii() => byte,
            _ => return Err(wrong(text, "only ASCII characters can stand in `[..]`")),
        };
        if c == '-' && !first && !in_range {
            in_range = true;
        } else {
            let from = if in_range { last } else { byte };
            bytes = bytes.with(from, byte);
            (last, in_range) = (byte, false);
        }
        first = false;
    }
    if in_range {
        bytes = bytes.with(b'-', b'-');
    }
    Ok(if negated { bytes.negated() } else { bytes })
}

impl Bytes {
    fn none() -> Bytes {
        Bytes([0; 4])
    }

    fn with(mut self, from: u8, to: u8) -> Bytes {
        for byte in from..=to {
            if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
                *word |= 1 << (byte & 63);
            }
        }
        self
    }

    fn negated(self) -> Bytes {
        Bytes(self.0.map(|word| !word))
    }

    /// All but `/`, which is in no name.
    fn but_slash(self) -> Bytes {
        self.with(b'/', b'/').negated()
    }

    fn meets(self, other: Bytes) -> bool {
        self.0.iter().zip(other.0).any(|(mine, theirs)| mine & theirs != 0)
    }

    /// The byte, where there is one alone.
    fn only(self) -> Option<u8> {
        if self.0.iter().map(|word| word.count_ones()).sum::<u32>() != 1 {
            return None;
        }
        (0..=u8::MAX).find(|byte| self.meets(Bytes::none().with(*byte, *byte)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Pattern;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap_or_else(|err| panic!("{text}: {}", err.explain()))
    }

    #[test]
    fn what_a_pattern_matches() {
        let check = |text: &str, path: &str, expected: bool| {
            assert_eq!(pattern(text).matches(path), expected, "{text} and {path}");
        };
        check("src", "src", true);
        check("src", "src/a.rs", false);
        check("src/", "src", true);
        check("src/", "src/db/pool.rs", true);
        check("src", "src2", false);
        check("src/**", "src/db/pool.rs", true);
        check("src/**", "src", false);
        check("src/*", "src/db/pool.rs", false);
        check("src/*/", "src/db/pool.rs", true);
        check("*.rs", "src/a.rs", false);
        check("**/*.rs", "a.rs", true);
        check("**/*.rs", "src/db/a.rs", true);
        check("src/**/a.rs", "src/a.rs", true);
        check("src/**/a.rs", "src/x/y/a.rs", true);
        check("**", "a", true);
        check("**/**", "a", true);
        check("a?c", "abc", true);
        check("a?c", "a/c", false);
        check("a[!x]c", "a/c", false);
        check("a[b-d]e", "ace", true);
        check("a[]]b", "a]b", true);
        check("a.{h,c{c,pp}}", "a.cpp", true);
        check("a.{h,cc}", "a.c", false);
        check("app/\\[id]/x", "app/[id]/x", true);
        check("a\\{b", "a{b", true);
        check("a[{]b", "a{b", true);
        check("a**b", "axyb", true);
        check("ä*", "äx", true);
    }

    #[test]
    fn which_patterns_overlap() {
        let check = |one: &str, other: &str, expected: bool| {
            let (one, other) = (pattern(one), pattern(other));
            assert_eq!(one.overlaps(&other), expected, "{} and {}", one.as_str(), other.as_str());
            assert_eq!(other.overlaps(&one), expected, "{} and {}", other.as_str(), one.as_str());
        };
        check("src/a.rs", "src/a.rs", true);
        check("src/a.rs", "src/b.rs", false);
        check("src/", "src/db/pool.rs", true);
        check("src", "src/db/pool.rs", false);
        check("Makefile", "**/*.py", false);
        check("Makefile/", "**/*.py", true);
        check("src/db", "src/dbx", false);
        check("src/*.rs", "src/a*", true);
        check("src/*.rs", "src/*.py", false);
        check("src/*.rs", "src/x.py", false);
        check("**/*.rs", "docs/**", true);
        check("**/test_*.py", "src/*_test.py", true);
        check("*a", "b*", true);
        check("[a-c]", "[d-f]", false);
        check("[!a]", "a", false);
        check("x{a,b}", "x{b,c}", true);
        check("x{a,b}", "x{c,d}", false);
        check("a/**/z", "a/z", true);
        check("a/**/z", "b/**/z", false);
        check("é", "?", false);
        check("é", "??", true);
    }

    #[test]
    fn where_case_makes_no_difference_more_patterns_overlap() {
        let check = |one: &str, other: &str, expected: bool| {
            let [one, other] = [one, other].map(|text| Pattern::parse(text).unwrap());
            assert!(!one.overlaps(&other), "{one:?} {other:?}");
            assert_eq!(one.ignoring_case().overlaps(&other.ignoring_case()), expected, "{one:?}");
        };
        check("SRC/a.rs", "src/A.rs", true);
        check("Src/", "src/a.rs", true);
        check("src/[A-F].rs", "src/b.rs", true);
        check("caf\u{e9}.md", "CAFE\u{301}.md", true);
        check("src/{A,B}.rs", "src/b.RS", true);
        check("src/[Z-a]x", "src/y", false);
        check("src/a.rs", "src/B.rs", false);
    }

    #[test]
    fn what_is_no_pattern() {
        for wrong in ["", "/", "[", "a[", "a[b", "[z-a]", "a\\", "{a", "a}", "{a/b}", "{}", "{,}"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Pattern::parse(&"{a,b}".repeat(7)).is_err());
        assert!(Pattern::parse(&"x".repeat(401)).is_err());
        assert!(Pattern::parse("[é]").is_err());
    }

    /// All paths of up to five names of one or two letters; each behind the folder that it is in,
    /// whose place stands with it.
    fn paths() -> Vec<(Option<usize>, String)> {
        const NAMES: [&str; 6] = ["a", "b", "aa", "ab", "ba", "bb"];
        let mut paths: Vec<(Option<usize>, String)> =
            NAMES.iter().map(|name| (None, (*name).to_owned())).collect();
        let mut begin = 0;
        for _ in 1..5 {
            let end = paths.len();
            for folder in begin..end {
                for name in NAMES {
                    paths.push((Some(folder), format!("{}/{name}", paths[folder].1)));
                }
            }
            begin = end;
        }
        paths
    }

    /// Patterns that, where two of them overlap, have one of [`paths`] in common.
    fn any_pattern() -> impl Strategy<Value = String> {
        let token = prop_oneof![
            4 => Just("a"), 4 => Just("b"), 1 => Just("?"), 2 => Just("*"), 1 => Just("[ab]"),
            1 => Just("[!a]"), 1 => Just("{a,b}"), 1 => Just("[b-c]"), 1 => Just("\\a"),
        ];
        let name = prop_oneof![
            8 => proptest::collection::vec(token, 1..3).prop_map(|tokens| tokens.concat()),
            1 => Just("{a,bb}".to_owned()),
        ];
        let names = || proptest::collection::vec(name.clone(), 0..3);
        let anywhere = (names(), any::<bool>(), names()).prop_map(|(mut names, deep, below)| {
            if deep {
                names.push("**".to_owned());
            }
            names.extend(below);
            names.truncate(3);
            names
        });
        let ends = prop_oneof![Just(""), Just("/")];
        (anywhere, ends)
            .prop_filter("a path is not empty", |(names, _)| !names.is_empty())
            .prop_map(|(names, end)| names.join("/") + end)
    }

    /// Which of the paths a pattern matches, by the library's own matcher of a whole pattern; where
    /// that ends as a folder, what is below a match matches.
    fn matched(text: &str, paths: &[(Option<usize>, String)]) -> Vec<bool> {
        let (glob, is_folder) = match text.strip_suffix('/') {
            Some(glob) => (glob, true),
            None => (text, false),
        };
        let glob = globset::GlobBuilder::new(glob).literal_separator(true).build().unwrap();
        let glob = glob.compile_matcher();
        let mut matched: Vec<bool> = Vec::with_capacity(paths.len());
        for (folder, path) in paths {
            let below = is_folder && folder.is_some_and(|folder| matched[folder]);
            matched.push(below || glob.is_match(path));
        }
        matched
    }

    #[expect(clippy::disallowed_methods, reason = "a switch for whoever runs the tests")]
    fn runs_long() -> bool {
        std::env::var_os("TEAM_TABLE_SLOW_TESTS").is_some_and(|value| value == "1")
    }

    #[test]
    fn two_patterns_overlap_where_a_path_matches_both() {
        let paths = paths();
        let cases = if runs_long() { 5_000 } else { 100 };
        let config =
            ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
        let mut runner = proptest::test_runner::TestRunner::new(config);
        let (n_met, n_apart) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
        runner
            .run(&(any_pattern(), any_pattern()), |(one, other)| {
                let (by_one, by_other) = (matched(&one, &paths), matched(&other, &paths));
                let shared = by_one.iter().zip(&by_other).position(|(one, other)| *one && *other);
                let shared = shared.map(|at| &paths[at].1);
                let (one, other) = (pattern(&one), pattern(&other));
                let overlaps = one.overlaps(&other);
                let counter = if overlaps { &n_met } else { &n_apart };
                counter.set(counter.get() + 1);
                let shown = format!("{} and {}: {shared:?}", one.as_str(), other.as_str());
                prop_assert_eq!(overlaps, shared.is_some(), "{}", shown);
                prop_assert_eq!(other.overlaps(&one), overlaps, "{}", shown);
                for at in [0, 7, 50, 999, 5_000, 9_000] {
                    prop_assert_eq!(one.matches(&paths[at].1), by_one[at], "{}", &paths[at].1);
                }
                Ok(())
            })
            .unwrap();
        assert!(n_met.get() > 15 && n_apart.get() > 15, "{n_met:?} and {n_apart:?}");
    }
}
