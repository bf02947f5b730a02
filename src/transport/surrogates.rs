//! Half characters in JSON. Clients on Node pass on `"\ud800"`, half of a pair, as JSON allows them
//! to; `serde_json` refuses the whole line, and the client would wait in vain. Each half becomes
//! `\ufffd`, the replacement character, which is as long.

use std::borrow::Cow;

/// The length of an escape: `\ufffd`.
const ESCAPE: usize = 6;

/// The JSON text with each half replaced.
pub(super) fn mend(text: &[u8]) -> Cow<'_, [u8]> {
    let mut mended = Cow::Borrowed(text);
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += next;
        let escape = text.get(at..).unwrap_or_default();
        at += match (unit(escape), unit(escape.get(ESCAPE..).unwrap_or_default())) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 2 * ESCAPE,
            (Some(0xd800..=0xdfff), _) => {
                if let Some(half) = mended.to_mut().get_mut(at..at + ESCAPE) {
                    half.copy_from_slice(b"\\ufffd");
                }
                ESCAPE
            }
            (Some(_), _) => ESCAPE,
            (None, _) => 2,
        };
    }
    mended
}

/// The code unit of an escape that begins the text: a backslash, `u` and four digits.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.get(..ESCAPE)?.strip_prefix(b"\\u")?;
    // `from_str_radix` takes a sign, too.
    let digits = std::str::from_utf8(digits).ok().filter(|it| !it.starts_with('+'))?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::mend;

    fn mended(text: &str) -> String {
        String::from_utf8(mend(text.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn halves_are_replaced_and_all_else_stays() {
        let check = |text: &str, expected: &str| assert_eq!(mended(text), expected, "{text}");
        check(r#""\ud800""#, r#""\ufffd""#);
        check(r#""\uDC00 x""#, r#""\ufffd x""#);
        check(r#""\ud83d\ude00""#, r#""\ud83d\ude00""#);
        check(r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#);
        check(r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#);
        check(r#""\\ud800 \n \u0041 \\\ud800""#, r#""\\ud800 \n \u0041 \\\ufffd""#);
        check("\"\\ud8\n\\", "\"\\ud8\n\\");
        check(r#""\ud83d\n""#, r#""\ufffd\n""#);
        check(r#""\u+800 \ud83d\u+e00""#, r#""\u+800 \ufffd\u+e00""#);
        check(r#""\ud83"#, r#""\ud83"#);
    }

    proptest! {
        /// What comes out has the length of what came in, and nothing in it is left to mend.
        #[test]
        fn all_is_mended_at_once(text in "([a\\\\u\"{}]|\\\\ud83d|\\\\ude00|[0-9a-f]){0,40}") {
            let out = mended(&text);
            prop_assert_eq!(out.len(), text.len());
            prop_assert_eq!(&mended(&out), &out);
        }

        #[test]
        fn json_stays_as_it_is(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert!(matches!(mend(json.as_bytes()), Cow::Borrowed(_)));
        }
    }
}
