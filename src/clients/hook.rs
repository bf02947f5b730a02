//! Which hooks in a client's file are of us: the one rule, for who writes hooks and for who asks.

use super::{KEY, starts_us};

/// What a hook does for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duty {
    /// It tells of new messages, by a tool of our server or by our program.
    Announce,
    /// It waits beside an idle session.
    Wake,
}

/// What a hook says of itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hook<'a> {
    /// A command line, or a program where there are arguments.
    pub(super) command: Option<&'a str>,
    pub(super) first_arg: Option<&'a str>,
    /// The server of which it calls a tool.
    pub(super) server: Option<&'a str>,
}

impl Hook<'_> {
    /// Whatever its further settings are: somebody may have changed them. What others do with our
    /// program, such as `team-table status`, is theirs.
    pub(super) fn duty(self) -> Option<Duty> {
        let Some(command) = self.command else {
            // A plugin's server has the plugin's name before its own.
            let server = self.server?.rsplit(':').next();
            return (server == Some(KEY)).then_some(Duty::Announce);
        };
        [("hook", Duty::Announce), ("wake", Duty::Wake)]
            .into_iter()
            .find(|(verb, _)| match self.first_arg {
                Some(arg) => arg == *verb && is_our_program(command),
                None => runs(command, verb),
            })
            .map(|(_, duty)| duty)
    }
}

/// Whether a command line is our program with this for its first word. The program may be quoted,
/// and its path may hold spaces.
fn runs(line: &str, verb: &str) -> bool {
    let verb = format!(" {verb}");
    line.match_indices(&verb).any(|(at, _)| {
        let (program, behind) = (line.get(..at), line.get(at + verb.len()..));
        program.is_some_and(is_our_program)
            && behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(' '))
    })
}

pub(super) fn is_our_program(word: &str) -> bool {
    starts_us(word.trim_matches(['\'', '"']))
}

#[cfg(test)]
mod tests {
    use super::{Duty, Hook};

    #[test]
    fn whose_a_hook_is() {
        let line = |command| Hook { command: Some(command), ..Hook::default() }.duty();
        assert_eq!(line("team-table hook"), Some(Duty::Announce));
        assert_eq!(line("'/a b/team-table' hook --x"), Some(Duty::Announce));
        assert_eq!(line("\"C:\\x\\team-table.exe\" wake"), Some(Duty::Wake));
        for command in ["team-table", "team-table status", "my-team-table hook", "x hooks", ""] {
            assert_eq!(line(command), None, "{command}");
        }
        let with = |first_arg| {
            let command = Some("/opt/team-table");
            Hook { command, first_arg: Some(first_arg), server: None }.duty()
        };
        assert_eq!((with("wake"), with("hook")), (Some(Duty::Wake), Some(Duty::Announce)));
        assert_eq!(with("members"), None);
        let of = |server| Hook { server: Some(server), ..Hook::default() }.duty();
        assert_eq!(of("team-table"), Some(Duty::Announce));
        assert_eq!(of("plugin:team-table:team-table"), Some(Duty::Announce));
        assert_eq!((of("other"), of("team-table:x"), Hook::default().duty()), (None, None, None));
    }
}
