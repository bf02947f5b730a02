//! Search: which texts hold all words of a query, whatever their case and accents.
//!
//! Both sides are folded: decomposed, accents taken off, composed again, in lower case. So `Zurich`
//! finds `ZÜRICH`, and a word is found inside a longer one. What looks like an accent and makes
//! another letter stays: voiced kana (`か`, `が`), Indic vowels, `≠`. Letters that Unicode gives no
//! accent to take off are written as they are typed without them: `ß` is `ss`, `ı` is `i`, `ł` is
//! `l`. There is no syntax: a query is words between blanks.

use std::sync::LazyLock;

use bstr::ByteSlice as _;
use memchr::memmem::Finder;
use unicode_normalization::UnicodeNormalization as _;

use super::limits;
use crate::error::{Error, Result};

/// The words of a query.
#[derive(Debug)]
pub struct Search {
    words: Vec<Finder<'static>>,
    /// What a text is folded into: one for all of them, as there may be 100,000.
    folded: Vec<u8>,
}

impl Search {
    /// # Errors
    /// No word, too many, or too long.
    pub fn parse(query: &str) -> Result<Search> {
        if query.len() > limits::QUERY_BYTES {
            return Err(Error::invalid(format!(
                "`query` takes {} bytes at most, got {}",
                limits::QUERY_BYTES,
                query.len()
            ))
            .hint("give a few words that the message holds"));
        }
        let mut words: Vec<Vec<u8>> = Vec::new();
        for word in query.split_whitespace().map(fold) {
            // An accent without a letter folds to nothing.
            if !word.is_empty() && !words.contains(&word) {
                words.push(word);
            }
        }
        if words.is_empty() {
            return Err(Error::invalid("`query` holds no word to find")
                .hint("leave it out for unread messages; include_read shows all"));
        }
        if words.len() > limits::QUERY_WORDS {
            return Err(Error::invalid(format!(
                "`query` takes {} words at most, got {}",
                limits::QUERY_WORDS,
                words.len()
            ))
            .hint("every word must be in the message: give the rarest"));
        }
        // The longest is mostly the rarest.
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        let words = words.iter().map(|word| Finder::new(word).into_owned()).collect();
        Ok(Search { words, folded: Vec::new() })
    }

    /// Whether the text holds all words.
    pub fn finds(&mut self, text: &str) -> bool {
        self.folded.clear();
        if text.is_ascii() {
            self.folded.extend_from_slice(text.as_bytes());
            lower_ascii(&mut self.folded);
        } else {
            fold_into(text, &mut self.folded);
        }
        self.words.iter().all(|word| word.find(&self.folded).is_some())
    }
}

fn fold(text: &str) -> Vec<u8> {
    let mut folded = Vec::new();
    fold_into(text, &mut folded);
    folded
}

/// As `make_ascii_lowercase`, by eight bytes at once. The program is compiled to be small, where the
/// compiler makes of that one a loop over bytes, in which a search over all messages would spend
/// most of its time.
fn lower_ascii(text: &mut [u8]) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    let (words, rest) = text.as_chunks_mut::<8>();
    for word in words {
        let letters = u64::from_ne_bytes(*word);
        // The high bit of a byte of each sum tells whether that byte is at least `A`, is behind `Z`.
        let low = letters & !HIGH;
        let from_a = low + (0x80 - u64::from(b'A')) * ONES;
        let behind_z = low + (0x7f - u64::from(b'Z')) * ONES;
        let is_upper = (from_a & !behind_z) & !letters & HIGH;
        *word = (letters | is_upper >> 2).to_ne_bytes();
    }
    rest.make_ascii_lowercase();
}

/// Most characters are folded by a look at a table, the rest by the rules: many times faster for
/// European and Chinese texts.
fn fold_into(text: &str, into: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(odd) = first_odd(rest) {
        // It may join with the one before it, and the next plain one joins with nothing.
        let (before, behind) = rest.split_at(odd);
        let begin = before.char_indices().next_back().map_or(0, |(at, _)| at);
        let end = behind.find(is_plain).map_or(rest.len(), |n| odd + n);
        let (plain, joined) = rest.split_at(end).0.split_at(begin);
        fold_plain(plain, into);
        by_the_rules(joined).for_each(|c| push(c, into));
        rest = rest.split_at(end).1;
    }
    fold_plain(rest, into);
    lower_ascii(into);
}

/// Where the first character stands that is not plain. ASCII is passed over by the byte.
fn first_odd(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        let n_ascii = rest.as_bytes().find_non_ascii_byte()?;
        let other = rest.get(n_ascii..)?.chars().next()?;
        if !is_plain(other) {
            return Some(at + n_ascii);
        }
        at += n_ascii + other.len_utf8();
    }
}

fn fold_plain(text: &str, into: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(n_ascii) = rest.as_bytes().find_non_ascii_byte() {
        let (ascii, other) = rest.split_at(n_ascii);
        into.extend_from_slice(ascii.as_bytes());
        let mut others = other.chars();
        others.by_ref().take(1).for_each(|c| push_plain(c, into));
        rest = others.as_str();
    }
    into.extend_from_slice(rest.as_bytes());
}

fn push(c: char, into: &mut Vec<u8>) {
    into.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn by_the_rules(text: &str) -> impl Iterator<Item = char> {
    text.nfd()
        .filter(|c| !is_accent(*c))
        .nfc()
        .flat_map(char::to_lowercase)
        .map(as_typed)
        .flat_map(|(first, second)| std::iter::once(first).chain(second))
}

/// The accents of Latin, Greek and Cyrillic letters, without strokes across a sign.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{333}' | '\u{339}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{fe20}'..='\u{fe2f}')
}

/// What decomposition and lower case leave, and nobody types.
fn as_typed(c: char) -> (char, Option<char>) {
    match c {
        'ß' => ('s', Some('s')),
        'æ' => ('a', Some('e')),
        'œ' => ('o', Some('e')),
        'ø' => ('o', None),
        'đ' => ('d', None),
        'ł' => ('l', None),
        'ı' => ('i', None),
        'ſ' => ('s', None),
        'ς' => ('σ', None),
        // As East Asian keyboards write ASCII.
        '\u{ff01}'..='\u{ff5e}' => (narrow(c), None),
        _ => (c, None),
    }
}

fn narrow(c: char) -> char {
    char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c).to_ascii_lowercase()
}

/// Whether a character never joins with what stands before it, and [`fold_plain`] folds it.
fn is_plain(c: char) -> bool {
    matches!(c, '\0'..='\u{2ff}' | '\u{370}'..='\u{482}' | '\u{48a}'..='\u{52f}'
        | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{2190}'..='\u{2199}'
        | '\u{2500}'..='\u{27bf}' | '\u{3000}'..='\u{3029}' | '\u{3030}'..='\u{3098}'
        | '\u{309b}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{fe0f}' | '\u{ff01}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}')
}

/// European alphabets, folded by the rules.
static ALPHABETS: LazyLock<Vec<String>> =
    LazyLock::new(|| ('\0'..'\u{530}').map(|c| by_the_rules(&c.to_string()).collect()).collect());

fn push_plain(c: char, into: &mut Vec<u8>) {
    if let Some(folded) = ALPHABETS.get(c as usize) {
        into.extend_from_slice(folded.as_bytes());
    } else if matches!(c, '\u{ff01}'..='\u{ff5e}') {
        push(narrow(c), into);
    } else {
        push(c, into);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_normalization::{IsNormalized, is_nfc_quick};

    use super::*;

    #[track_caller]
    fn check(query: &str, text: &str, expected: bool) {
        assert_eq!(Search::parse(query).unwrap().finds(text), expected, "{query:?} in {text:?}");
    }

    #[test]
    fn case_and_accents_make_no_difference() {
        for (query, text) in [
            ("zurich", "Nach ZÜRICH"),
            ("ZÜRICH", "nach zurich"),
            ("zu\u{308}rich", "Zürich"),
            ("Zürich", "zu\u{308}rich"),
            ("strasse", "Straße"),
            ("STRAẞE", "strasse"),
            ("istanbul", "İSTANBUL"),
            ("ışık", "IŞIK"),
            ("lodz", "Łódź"),
            ("σοφος", "ΣΟΦΌΣ"),
            ("елка", "Ёлка"),
            ("tieng viet", "Tiếng Việt"),
            ("c++", "Ｃ＋＋"),
            ("각", "가\u{11a8}"),
        ] {
            check(query, text, true);
        }
        for (query, text) in [("か", "が"), ("は", "ぱ"), ("=", "≠"), ("कि", "की"), ("하", "한")]
        {
            check(query, text, false);
        }
    }

    #[test]
    fn a_query_is_words_and_no_syntax() {
        let text = "Fix POL-358: C++ says \"100 %\" in snake_case AND 日本語のテスト";
        for query in [
            "C++",
            "c++ fix",
            "POL-358",
            "\"",
            "AND",
            "and fix",
            "%",
            "_",
            "-358",
            "100 %",
            "snake",
            "日",
            "本語",
            "テスト",
            "NAKE_",
            "\u{3000}fix\n\tpol",
            ":",
            "\"100",
        ] {
            check(query, text, true);
        }
        for query in ["C++ or", "NOT", "*", "fix*", "p_l", "c%s", "fix absent", "語日", "''"] {
            check(query, text, false);
        }
    }

    #[test]
    fn queries_have_limits() {
        for query in ["", "  \n\u{3000}", "\u{301}", &"x".repeat(501), &words(17)] {
            Search::parse(query).unwrap_err();
        }
        for query in [&"x".repeat(500), &words(16), &"same ".repeat(100)] {
            Search::parse(query).unwrap();
        }
    }

    fn words(n: usize) -> String {
        (0..n).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn plain_characters_fold_as_the_rules_say_and_join_with_nothing_before_them() {
        for c in ('\0'..=char::MAX).filter(|c| is_plain(*c)) {
            assert_eq!(
                fold(&c.to_string()),
                by_the_rules(&c.to_string()).collect::<String>().into_bytes(),
                "{c:?}"
            );
            assert_ne!(is_nfc_quick(std::iter::once(c)), IsNormalized::Maybe, "{c:?}");
            assert_eq!(unicode_normalization::char::canonical_combining_class(c), 0, "{c:?}");
        }
    }

    fn text() -> impl Strategy<Value = String> {
        let odd =
            "aAäÄu\u{308}\u{301}\u{338}=≠ßẞıİIςΣか\u{3099}が가\u{11a8}각한ﬁＡ日語\u{345}ᾳ\u{0}éЁй";
        let c = prop_oneof![
            4 => proptest::sample::select(odd.chars().collect::<Vec<_>>()),
            1 => any::<char>()
        ];
        proptest::collection::vec(c, 0..12).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn folding_in_pieces_is_folding(text in text()) {
            let folded = String::from_utf8(fold(&text)).unwrap();
            prop_assert_eq!(&folded, &by_the_rules(&text).collect::<String>());
            prop_assert_eq!(fold(&folded), folded.into_bytes());
        }

        #[test]
        fn eight_bytes_are_lowered_as_one_is(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let (mut ours, mut theirs) = (bytes.clone(), bytes);
            lower_ascii(&mut ours);
            theirs.make_ascii_lowercase();
            prop_assert_eq!(ours, theirs);
        }
    }
}
