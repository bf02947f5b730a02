//! Half characters in JSON. Clients on Node pass on `"\ud800"`, half of a pair, as JSON allows them
//! to; `serde_json` refuses the whole line, and rmcp drops it without an answer, so that the client
//! would wait in vain. Each half becomes `\ufffd`, the replacement character, which is as long.

/// Goes over a stream of JSON, wherever it is cut.
#[derive(Debug, Default)]
pub(super) struct Mender {
    /// The beginning of an escape whose end has not come yet.
    held: Vec<u8>,
}

/// What stands at a place.
enum Found {
    /// So many bytes to be passed on.
    Fine(usize),
    /// Half of a pair.
    Half,
    /// It cannot be told yet.
    Cut,
}

/// The length of an escape: `\ufffd`.
const ESCAPE: usize = 6;

impl Mender {
    /// Appends `bytes`, mended, to `into`.
    pub(super) fn mend(&mut self, bytes: &[u8], into: &mut Vec<u8>) {
        let mut joined = std::mem::take(&mut self.held);
        let mut rest = if joined.is_empty() {
            bytes
        } else {
            joined.extend_from_slice(bytes);
            joined.as_slice()
        };
        while let Some(next) = rest.iter().position(|byte| *byte == b'\\') {
            let (plain, escape) = rest.split_at(next);
            into.extend_from_slice(plain);
            let n_bytes = match look(escape) {
                Found::Fine(n_bytes) => {
                    into.extend_from_slice(escape.get(..n_bytes).unwrap_or(escape));
                    n_bytes
                }
                Found::Half => {
                    into.extend_from_slice(b"\\ufffd");
                    ESCAPE
                }
                Found::Cut => {
                    self.held = escape.to_vec();
                    return;
                }
            };
            rest = escape.get(n_bytes..).unwrap_or_default();
        }
        into.extend_from_slice(rest);
    }

    /// What is left at the end of the stream.
    pub(super) fn finish(&mut self, into: &mut Vec<u8>) {
        into.append(&mut self.held);
    }
}

/// Looks at what begins with a backslash.
fn look(text: &[u8]) -> Found {
    match code(text) {
        Code::Cut => Found::Cut,
        Code::Other => Found::Fine(2),
        Code::Unit(0xdc00..=0xdfff) => Found::Half,
        Code::Unit(0xd800..=0xdbff) => match code(text.get(ESCAPE..).unwrap_or_default()) {
            Code::Cut => Found::Cut,
            Code::Unit(0xdc00..=0xdfff) => Found::Fine(2 * ESCAPE),
            _ => Found::Half,
        },
        Code::Unit(_) => Found::Fine(ESCAPE),
    }
}

enum Code {
    /// A backslash, `u` and four digits.
    Unit(u32),
    /// Anything else.
    Other,
    /// It may become an escape.
    Cut,
}

fn code(text: &[u8]) -> Code {
    let beginning = text.get(..ESCAPE).unwrap_or(text);
    let fits = beginning.iter().zip(0..).all(|(byte, at)| match at {
        0 => *byte == b'\\',
        1 => *byte == b'u',
        _ => byte.is_ascii_hexdigit(),
    });
    if !fits {
        return Code::Other;
    }
    let digits = text.get(2..ESCAPE).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).map_or(Code::Cut, Code::Unit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Mender;

    /// The text mended, cut at each of these places.
    fn mended(text: &str, pieces: &[usize]) -> String {
        let (mut mender, mut out) = (Mender::default(), Vec::new());
        let mut rest = text.as_bytes();
        for piece in pieces {
            let (now, later) = rest.split_at((*piece).min(rest.len()));
            mender.mend(now, &mut out);
            rest = later;
        }
        mender.mend(rest, &mut out);
        mender.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn halves_are_replaced_and_all_else_stays() {
        let check = |text: &str, expected: &str| {
            for cut in 0..=text.len() {
                assert_eq!(mended(text, &[cut]), expected, "{text} cut at {cut}");
            }
        };
        check(r#""\ud800""#, r#""\ufffd""#);
        check(r#""\uDC00 x""#, r#""\ufffd x""#);
        check(r#""\ud83d\ude00""#, r#""\ud83d\ude00""#);
        check(r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#);
        check(r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#);
        check(r#""\\ud800 \n \u0041 \\\ud800""#, r#""\\ud800 \n \u0041 \\\ufffd""#);
        check("\"\\ud8\n\\", "\"\\ud8\n\\");
        check(r#""\ud83d\n""#, r#""\ufffd\n""#);
    }

    proptest! {
        /// A line is held back nowhere, and what is fine stays as it is.
        #[test]
        fn lines_pass_whole(
            text in "([a\\\\u\"{}]|\\\\ud83d|\\\\ude00|[0-9a-f]){0,40}",
            pieces in proptest::collection::vec(0_usize..8, 0..20),
        ) {
            let line = format!("{text}\n");
            let (mut mender, mut out) = (Mender::default(), Vec::new());
            mender.mend(line.as_bytes(), &mut out);
            prop_assert_eq!(out.len(), line.len());
            prop_assert_eq!(String::from_utf8(out).unwrap(), mended(&line, &pieces));
        }

        #[test]
        fn json_stays_as_it_is(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(mended(&json, &[]), json);
        }
    }
}
