//! Names of members: what is one, which are reserved, and what to try when one is taken.

use std::fmt;

use serde::Serialize;

use crate::error::{Error, Result};

/// The person at the command line.
pub const HUMAN: &str = "human";
/// This program, as the sender of notices.
pub const TEAM_TABLE: &str = "team-table";
/// What people write when they mean everybody.
pub const EVERYONE: &[&str] = &["all", "everyone", "*", "@all", "@everyone"];

const MAX_CHARS: usize = 64;

/// The name of a member: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`, shown as given, unique ignoring case.
///
/// ASCII only, so that no look-alike can pose as another member.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct MemberName(String);

impl MemberName {
    /// A name that a session or a command may take: the grammar above, and not reserved.
    ///
    /// # Errors
    /// Says what was found and what a name looks like.
    pub fn parse(text: &str) -> Result<MemberName> {
        let name = MemberName::any(text)?;
        let key = name.key();
        if is_reserved(&key) {
            return Err(Error::invalid(format!("the name `{text}` is reserved")).hint(
                "names that begin with `human` or `team-table`, and `all`, `everyone`, `you` and \
                 `me`, cannot be taken; choose another, such as `reviewer`",
            ));
        }
        Ok(name)
    }

    /// A name by its grammar alone; reserved ones too.
    pub fn any(text: &str) -> Result<MemberName> {
        let n_chars = text.chars().count();
        let first_ok = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        let bytes_ok = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if first_ok && bytes_ok && n_chars <= MAX_CHARS {
            return Ok(MemberName(text.to_owned()));
        }
        let found = match n_chars {
            0 => "a name must not be empty".to_owned(),
            n if n > MAX_CHARS => {
                format!("a name has at most {MAX_CHARS} characters, this one {n}")
            }
            _ => format!("`{}` is not a name", escaped(text)),
        };
        Err(Error::invalid(found).hint(
            "a name is 1 to 64 of A-Z, a-z, 0-9, `.`, `_` and `-`, and begins with a letter or \
             digit, such as `reviewer` or `claude-1`",
        ))
    }

    /// Any text as near to a name as can be; for the names of clients.
    pub fn from_client(client: &str) -> String {
        let client = client.to_ascii_lowercase();
        let words = client.split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_');
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let family: String = words.join("-").chars().take(32).collect();
        let family = family.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        match MemberName::parse(family) {
            Ok(_) => family.to_owned(),
            Err(_) => "agent".to_owned(),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What two spellings of one name have in common.
    pub fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// `BASE-N`, the base cut so that it stays a name.
    #[must_use]
    pub fn numbered(base: &str, number: u32) -> MemberName {
        let number = number.to_string();
        let room = MAX_CHARS - number.len() - 1;
        let base: String = base.chars().take(room).collect();
        MemberName(format!("{base}-{number}"))
    }

    /// What to try when this name is taken, in order: `claude-1` -> `claude-2`, `reviewer` ->
    /// `reviewer-2`.
    pub fn variants(&self) -> impl Iterator<Item = MemberName> {
        let (base, number) = self.parts();
        let base = base.to_owned();
        (number.saturating_add(1)..u32::MAX).map(move |number| MemberName::numbered(&base, number))
    }

    /// Whether one of the names is what was tried when the other was taken.
    pub fn is_variant_of(&self, other: &MemberName) -> bool {
        self != other && self.parts().0.eq_ignore_ascii_case(other.parts().0)
    }

    /// The name without its number, and the number: 1 where there is none.
    fn parts(&self) -> (&str, u32) {
        match self.0.rsplit_once('-') {
            Some((base, number)) if !base.is_empty() => match number.parse::<u32>() {
                Ok(number) if !number.to_string().starts_with('0') => (base, number),
                _ => (self.as_str(), 1),
            },
            _ => (self.as_str(), 1),
        }
    }
}

/// Words that stand for somebody else already, as a name or as a role; in small letters.
pub fn is_reserved(word: &str) -> bool {
    word.starts_with(HUMAN)
        || word.starts_with(TEAM_TABLE)
        || EVERYONE.contains(&word)
        || ["you", "me"].contains(&word)
}

/// What is no name, as an error quotes it: only visible ASCII and blanks as they are, so that
/// look-alikes and what cannot be seen show.
fn escaped(text: &str) -> String {
    let plain = |c: char| (c.is_ascii_graphic() || c == ' ') && c != '`' && c != '\\';
    text.chars().fold(String::new(), |mut shown, c| {
        if plain(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_unicode());
        }
        shown
    })
}

impl PartialEq for MemberName {
    fn eq(&self, other: &MemberName) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for MemberName {}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The family of a client, by the name it gives itself in MCP's `clientInfo`.
/// Source: tried with Claude Code 2.1.332, Codex 0.171.0, Gemini CLI 0.61.0, opencode 1.18.33 and
/// Copilot CLI 1.0.102.
pub fn family(client: &str) -> String {
    match client {
        "claude-code" => "claude".to_owned(),
        "codex-mcp-client" => "codex".to_owned(),
        "gemini-cli-mcp-client" => "gemini".to_owned(),
        "copilot-cli" => "copilot".to_owned(),
        other => MemberName::from_client(other),
    }
}

/// What a row holds that is shown bare: a member's name, `@role`, `everyone`. We put nothing else
/// there, but the table may have come from somebody else.
pub fn bare(text: String) -> String {
    let is_known = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    if text.chars().all(is_known) {
        return text;
    }
    text.chars().map(|c| if is_known(c) { c } else { '?' }).collect()
}

/// The known name that looks most like `wanted`, if any looks like it at all.
pub fn nearest<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_ascii_lowercase();
    known
        .map(|name| (distance(&wanted, &name.to_ascii_lowercase()), name))
        .filter(|(steps, name)| *steps <= 1 + name.len().min(wanted.len()) / 3)
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, name)| name)
}

/// Levenshtein's distance, where a missing `-1` at the end counts as one step.
fn distance(a: &str, b: &str) -> usize {
    if b.strip_prefix(a).or_else(|| a.strip_prefix(b)).is_some_and(|rest| rest.starts_with('-')) {
        return 1;
    }
    // A slip and no number: `codx` for `codex-1`.
    if let Some((family, number)) = b.rsplit_once('-')
        && !a.contains('-')
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        return 1 + distance(a, family);
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let step = (diagonal + usize::from(x != y)).min(*cell + 1).min(left + 1);
            diagonal = *cell;
            *cell = step;
            left = step;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{MemberName, family, nearest};

    #[test]
    fn names() {
        for good in ["a", "claude-1", "A.b_c-d", "con", "nul", "9", &"x".repeat(64)] {
            MemberName::parse(good).unwrap();
        }
        let long = "x".repeat(65);
        for bad in ["", "..", "a/b", "a\0b", "-a", ".a", "ä", "a b", "Human", "human-2", &long] {
            MemberName::parse(bad).unwrap_err();
        }
        for reserved in ["TEAM-TABLE", "team-tables", "all", "Everyone"] {
            MemberName::parse(reserved).unwrap_err();
        }
    }

    #[test]
    fn variants_count_on() {
        let second = |name: &str| {
            MemberName::parse(name).unwrap().variants().next().unwrap().as_str().to_owned()
        };
        assert_eq!(second("claude-1"), "claude-2");
        assert_eq!(second("claude-9"), "claude-10");
        assert_eq!(second("reviewer"), "reviewer-2");
        assert_eq!(second("v-007"), "v-8");
        assert_eq!(second("a-b"), "a-b-2");
        assert_eq!(second(&"x".repeat(64)), format!("{}-2", "x".repeat(62)));
        let name = |text| MemberName::parse(text).unwrap();
        assert!(name("codex-1").is_variant_of(&name("Codex-2")));
        assert!(name("reviewer-2").is_variant_of(&name("reviewer")));
        assert!(!name("codex-1").is_variant_of(&name("CODEX-1")));
        assert!(!name("codex-1").is_variant_of(&name("codex-1-sub-1")));
    }

    #[test]
    fn families() {
        assert_eq!(family("claude-code"), "claude");
        assert_eq!(family("opencode"), "opencode");
        assert_eq!(family("My Client/2"), "my-client-2");
        assert_eq!(family("A -- (client)  9"), "a-client-9");
        assert_eq!(family("human"), "agent");
        assert_eq!(family("日本"), "agent");
    }

    #[test]
    fn what_is_no_name_is_shown_harmlessly() {
        for text in ["ada", "@a.b-c_d", "everyone", "team-table", ""] {
            assert_eq!(super::bare(text.to_owned()), text);
        }
        assert_eq!(super::bare("x\u{1b}[2J\n#99 \u{202e}é".to_owned()), "x??2J??99???");
    }

    #[test]
    fn near_misses() {
        let known = ["claude-1", "codex-1", "human"];
        let near = |wanted| nearest(wanted, known.into_iter());
        assert_eq!(near("codx"), Some("codex-1"));
        assert_eq!(near("codx-1"), Some("codex-1"));
        assert_eq!(near("codex"), Some("codex-1"));
        assert_eq!(near("Claude1"), Some("claude-1"));
        assert_eq!(near("hooman"), Some("human"));
        assert_eq!(near("somebody"), None);
    }
}
