//! What `init` says at its end: what a person has to do now.

use std::path::Path;

use super::{
    address,
    init::{Args, Setup},
    plan::{Plan, Untaken},
};
use crate::{
    clients::{Client, Extras, Link, Server},
    config, platform,
};

/// What the person has to do now, and what to expect.
pub(super) fn after_setup(
    cx: &Setup<'_>,
    clients: &[&'static Client],
    args: &Args,
    extras: Extras,
    server: &Server,
    plan: &Plan,
) -> String {
    if plan.is_empty() {
        let mut steps = network_steps(plan, true);
        steps.extend(plan.untaken.iter().map(mend));
        steps.extend(local_step(args, extras, server, plan));
        steps.push("`team-table doctor` says whether the clients start or call the server".into());
        return format!("next:\n{}{FIRST_WORDS}", items(&steps));
    }
    let mut steps = network_steps(plan, false);
    for client in clients {
        let is_of = |untaken: &&Untaken| untaken.client.name == client.name;
        let untaken: Vec<&Untaken> = plan.untaken.iter().filter(is_of).collect();
        if !untaken.iter().any(|it| it.has_server) {
            steps.push(format!("{client}: {}", client.next));
        }
        if !untaken.is_empty() {
            steps.extend(untaken.into_iter().map(mend));
            continue;
        }
        let called = plan.called.iter().find(|(it, _)| it.name == client.name);
        let is_called = called.is_some() || matches!(server.link, Link::Network(_));
        let starts_us = client.files.iter().any(|file| file.has_commands(extras));
        if extras.hooks && !(is_called && starts_us) {
            steps.push(format!("{client}, hooks: {}", client.next_hooks));
        }
        if extras.wake && !is_called {
            steps.push(format!("{client}, wake: {}", client.next_wake));
        }
        if extras.allow {
            steps.push(format!("{client}, allow: {}", client.next_allow));
        }
    }
    let files = files(plan);
    steps.extend(local_step(args, extras, server, plan));
    if is_git(&cx.top) {
        // What is there already may have come by calls of another form.
        let is_kept = matches!(server.link, Link::Program(_)) && !plan.called.is_empty();
        let again = match again(args, extras, server) {
            _ if is_kept => "init as you did here".to_owned(),
            again => format!("`{again}`"),
        };
        steps.push(format!(
            "commit {files}, so that every clone and worktree has them, or run {again} in each \
             worktree; `.agent-comms/.gitignore` keeps that folder out of git"
        ));
    }
    if let Some(workspace) = cx.comms.as_deref().and_then(Path::parent)
        && workspace != cx.top
    {
        steps.push(format!(
            "sessions in `{}` sit at the table of `{}`",
            cx.top.display(),
            workspace.display()
        ));
    }
    format!(
        "next:\n{}- for AGENTS.md and CLAUDE.md, if you like (init does not write them):\n\n\
         {FOR_AGENTS}{FIRST_WORDS}",
        items(&steps)
    )
}

fn items(steps: &[String]) -> String {
    steps.iter().map(|step| item(step)).collect()
}

fn files(plan: &Plan) -> String {
    let files: Vec<String> = plan.names.iter().map(|name| format!("`{name}`")).collect();
    listed(&files)
}

/// Where a client will not take its file, nothing else is promised of it.
fn mend(untaken: &Untaken) -> String {
    let Untaken { client, name, has_server } = untaken;
    let until = if *has_server { "starts no server" } else { "heeds nothing in it" };
    format!(
        "{client}: mend `{name}` at the place named above, as it {until} until then; \
         `team-table doctor` then says what is next"
    )
}

/// What a command that only this machine knows asks for.
fn local_step(args: &Args, extras: Extras, server: &Server, plan: &Plan) -> Option<String> {
    let (command, again) = (plan.local.as_ref()?, again(args, extras, server));
    Some(format!(
        "the command is `{command}`, as PATH does not lead to this program: put it there and run \
         `{again}` again before you share {}",
        files(plan)
    ))
}

/// What has to be there before clients are led to servers on the network; if need be without what is
/// there already.
fn network_steps(plan: &Plan, only_missing: bool) -> Vec<String> {
    let mut steps = Vec::new();
    for (_, network) in &plan.called {
        let url = network.url.split('?').next().unwrap_or_default();
        let is_set = |name: &&String| only_missing && config::is_set(name);
        let variable = network.token_env.iter().filter(|name| !is_set(name)).map(|name| {
            format!(
                "`{name}` has to hold a token where you start each client: `team-table token add \
                 NAME` makes one, where the table is"
            )
        });
        let server = format!(
            "the server at `{url}` has to run: `{}`, where the table is",
            address::serve_command(&network.url)
        );
        let server = Some(server).filter(|_| !only_missing || !address::is_answered(&network.url));
        for step in server.into_iter().chain(variable) {
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
    }
    steps
}

/// The command that does the same elsewhere.
fn again(args: &Args, extras: Extras, server: &Server) -> String {
    let with = [(extras.hooks, "hooks"), (extras.wake, "wake"), (extras.allow, "allow")];
    let with: Vec<&str> = with.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
    let mut command = "team-table init".to_owned();
    if !args.client.is_empty() {
        command.extend([" --client ", &args.client.join(",")]);
    }
    if !with.is_empty() {
        command.extend([" --with ", &with.join(",")]);
    }
    if let Link::Network(network) = &server.link {
        command.extend([" --url ", &platform::shell_word(&network.url)]);
        if let Some(name) = &network.token_env {
            command.extend([" --token-env ", name]);
        }
    }
    command
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn listed(items: &[String]) -> String {
    match items {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        items => items.concat(),
    }
}

/// Three lines that tell agents to look at the table at all.
const FOR_AGENTS: &str = "\
    Other agents and a human work here too: the `team-table` tools reach them.\n\
    Call `register` when you begin and `get_messages` before you end.\n\
    When a result says that messages are unread, read and answer them first.\n";

/// What shows that it works.
const FIRST_WORDS: &str = "\n\
    then type, in each of two sessions:\n\n\
    Who else sits at the team table? Say hello to them, then wait for an answer.\n";

/// An item of a list, in lines of at most 80 columns; what stands in backticks is not torn.
pub(super) fn item(text: &str) -> String {
    let mut shown = String::from("-");
    let mut width = 1;
    let mut quoted = false;
    let words = text.split(|c| {
        quoted ^= c == '`';
        c == ' ' && !quoted
    });
    for word in words {
        let n = word.chars().count();
        if width > 1 && width + 1 + n > 80 {
            shown.push_str("\n ");
            width = 1;
        }
        shown.extend([" ", word]);
        width += 1 + n;
    }
    shown.push('\n');
    shown
}

/// What is left when our parts are taken out.
pub(super) fn after_removal(plan: &Plan) -> String {
    if plan.is_empty() {
        return String::new();
    }
    "next:\n\
     - sessions that are open keep the server until they end\n\
     - the table stays; delete `.agent-comms/` if nobody needs it any more\n"
        .to_owned()
}

/// A checkout: `.git` is a file (a linked worktree, a submodule) or a folder with a `HEAD`;
/// sandboxes leave empty folders of that name.
fn is_git(top: &Path) -> bool {
    let git = top.join(".git");
    git.is_file() || git.join("HEAD").is_file()
}

#[cfg(test)]
mod tests {
    use super::item;

    #[test]
    fn items_fit_a_terminal_and_keep_commands_whole() {
        assert_eq!(item("commit it"), "- commit it\n");
        let x = "x".repeat(66);
        assert_eq!(
            item(&format!("{x} run `team-table init`")),
            format!("- {x} run\n  `team-table init`\n")
        );
        let path = "y".repeat(100);
        assert_eq!(item(&format!("{path} then")), format!("- {path}\n  then\n"));
    }
}
