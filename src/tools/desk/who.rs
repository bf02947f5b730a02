//! For whom a desk works.

use crate::domain::name::MemberName;

/// A client's session, as its calls tell of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agent {
    /// `claude`, `codex`: what its name is made of.
    pub family: String,
    pub client: String,
    pub client_version: String,
    /// The client's own id of the session, by which it finds its seat again.
    pub key: Option<String>,
    /// The session that started this one as a helper.
    pub parent_key: Option<String>,
}

impl Agent {
    /// Whether this client tells sessions apart at all.
    pub(in crate::tools) fn tells_keys(&self) -> bool {
        self.key.is_some() || self.tells_keys_with_calls()
    }

    /// Codex tells the id of a session with each call, and not before. Source: Codex 0.171.0.
    pub(in crate::tools) fn tells_keys_with_calls(&self) -> bool {
        self.family == "codex"
    }

    /// The key may be another one as soon as the session calls. With `--continue` the environment of
    /// Claude Code tells an id that is not the session's; its hooks tell the right one. Source:
    /// Claude Code 2.1.332.
    pub(in crate::tools) fn may_tell_another_key(&self) -> bool {
        self.family == "claude" || (self.key.is_none() && self.tells_keys_with_calls())
    }
}

/// For whom a desk works.
#[derive(Debug, Clone)]
pub enum Who {
    /// A session over MCP, with a seat of its own.
    Session { agent: Agent, wish: Option<MemberName> },
    /// A member over the network, whose token or address says which one it is: that seat or none,
    /// whatever its client's sessions are called.
    Given { agent: Agent, name: MemberName },
    /// The person at the command line.
    Human,
    /// A command that speaks as a member by name.
    Named(MemberName),
    /// A command in the shell of an agent: the member of that session, on its seat.
    Shell { family: String, key: String },
    /// A command that a client runs by itself, as a hook: the session of this key, or the one whose
    /// server was started by one of these processes.
    Hook { key: Option<String>, above: Vec<u32> },
}
