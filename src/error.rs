//! The one error type: a kind to branch on, a text to read, a hint to act on.
//!
//! Texts are lowercase fragments without a full stop; values stand in backticks; a text says what
//! was found and what would be right. Errors are built by named constructors, here for what more
//! than one module needs, else next to the rule that they state.

use std::fmt;

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request itself is wrong; another request would be right.
    Invalid,
    /// What the request names is not there.
    NotFound,
    /// The request is well formed, yet the present state or a rule forbids it.
    Refused,
    /// Somebody else holds what the request needs; trying again later helps.
    Busy,
    /// The command line was used in a way that cannot be meant (exit code 2).
    Usage,
    /// The table, the disk or the file system does not let us work; a person has to mend it.
    Storage,
    /// A fault of this program.
    Internal,
    /// Never leaves the program: a call that ran as a reader found that it has to write.
    NeedsWrite,
}

/// A failure, for branching ([`Kind`]) and for reading (`Display` gives the text without the hint).
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Any kind with any text; the named constructors below are preferred where one fits.
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), hint: None, source: None }
    }

    /// The request is wrong: says what was found and what would be right.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(Kind::Invalid, message)
    }

    /// What was named is not there.
    pub fn not_found(message: impl Into<String>) -> Error {
        Error::new(Kind::NotFound, message)
    }

    /// The state or a rule forbids it.
    pub fn refused(message: impl Into<String>) -> Error {
        Error::new(Kind::Refused, message)
    }

    /// The command line cannot be meant so (exit code 2).
    pub fn usage(message: impl Into<String>) -> Error {
        Error::new(Kind::Usage, message)
    }

    /// Somebody else holds what is needed.
    pub fn busy(message: impl Into<String>) -> Error {
        Error::new(Kind::Busy, message).hint("nothing was stored; try again in a moment")
    }

    /// The table or the disk does not let us work.
    pub fn storage(message: impl Into<String>) -> Error {
        Error::new(Kind::Storage, message)
    }

    /// A fault of this program.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(Kind::Internal, message)
    }

    /// A reader has to become a writer; see [`Kind::NeedsWrite`].
    pub fn needs_write() -> Error {
        Error::new(Kind::NeedsWrite, "this call has to write")
    }

    /// An operation on a file or folder failed: `cannot read `PATH`: permission denied`.
    pub fn io(doing: &str, path: &std::path::Path, source: std::io::Error) -> Error {
        Error::storage(format!("cannot {doing} `{}`: {}", path.display(), plain(&source)))
            .source(source)
    }

    /// Stdout or a terminal does not take what is to be shown: a full disk, a reader that is gone.
    pub fn unprintable(source: std::io::Error) -> Error {
        Error::storage(format!("cannot print: {}", plain(&source))).source(source)
    }

    /// Says what it is about, before the text: `cannot use `PATH`: the disk is full`.
    #[must_use]
    pub fn about(self, what: impl fmt::Display) -> Error {
        Error { message: format!("{what}: {}", self.message), ..self }
    }

    /// As an error of the command line (exit code 2); `of` is what held the value: `--name`,
    /// `TEAM_TABLE_NAME`.
    #[must_use]
    pub fn in_usage(self, of: &str) -> Error {
        Error { kind: Kind::Usage, ..self.about(of) }
    }

    /// Adds what to do next; shown on a line of its own, as `hint: ...`.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// Keeps the cause for the log. It is not repeated in the text.
    #[must_use]
    pub fn source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        self.source = Some(Box::new(source));
        self
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The text and, on a second line, the hint: what models and terminals are shown.
    pub fn explain(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}\nhint: {hint}", self.message),
            None => self.message.clone(),
        }
    }

    /// The exit code of a command that failed with this.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Invalid | Kind::NotFound | Kind::Refused | Kind::Storage => 1,
            Kind::Usage => 2,
            Kind::Busy => 3,
            Kind::Internal | Kind::NeedsWrite => 70,
        }
    }
}

/// The text of an I/O error without Rust's `(os error 13)`, in lower case as all our texts.
fn plain(err: &std::io::Error) -> String {
    let text = err.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
