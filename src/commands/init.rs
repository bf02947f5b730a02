//! `team-table init`: puts the server, and hooks where they are asked for, into the clients' files,
//! and takes them out again.
//!
//! Every file is read and every change is computed before the first one is written: once to be
//! shown, and once more when no other `init` of the workspace can write.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{
    plan::Plan,
    receipt::{Drawer, Receipt},
};
use crate::{
    clients::{self, CLIENTS, Client, Extras, KEY, Server},
    domain::name::MemberName,
    error::{Error, Result},
    platform,
};

/// Make the table and write the clients' configuration files
///
/// Edits `.mcp.json` and `.codex/config.toml` at the top of the checkout, and where there is a
/// `.gemini` folder `.gemini/settings.json`: shows what will change, asks on a terminal, keeps a
/// copy in `.agent-comms/backup/`. Everything else in these files stays as it is, byte for byte.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Only this client's files (can be repeated)
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = clap::builder::PossibleValuesParser::new(
            CLIENTS.iter().map(|client| client.name)
        )
    )]
    pub client: Vec<String>,

    /// The name that every session of these clients wishes for
    #[arg(long, value_name = "NAME", conflicts_with = "remove")]
    pub name: Option<String>,

    /// Set up more than the server (can be repeated)
    ///
    /// Both write into the clients' settings, beside what is there. What is not named here is left
    /// as it is.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', conflicts_with = "remove")]
    pub with: Vec<With>,

    /// Show the changes and write nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask
    #[arg(long)]
    pub yes: bool,

    /// Take out what init put in, and delete the files that it made
    #[arg(long)]
    pub remove: bool,
}

/// What `init` can set up beside the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum With {
    /// Tell agents of new messages: at the prompt, after a tool and at the end of a turn
    Hooks,
    /// Give an idle session a turn when a message comes (Claude Code, Codex)
    Wake,
}

/// Where `init` runs and whom it talks to.
pub struct Setup<'a> {
    /// The top of the checkout: where the clients' files are.
    pub top: PathBuf,
    /// The workspace's `.agent-comms`; none where the table was named by its path.
    pub comms: Option<PathBuf>,
    pub cwd: PathBuf,
    /// `PATH`.
    pub path: OsString,
    pub current_exe: PathBuf,
    /// There is a person to ask.
    pub interactive: bool,
    /// Standard output: the diff.
    pub out: &'a mut dyn Write,
    /// Standard error: everything else.
    pub talk: &'a mut dyn Write,
    /// Asks a question that is answered by yes or no.
    pub ask: &'a mut dyn FnMut(&str) -> Result<bool>,
    /// UTC milliseconds.
    pub now: i64,
    /// Runs what writes while no other `init` of the workspace does; before it makes the table, and
    /// with it `.agent-comms`, if it is not there yet and nothing is to be removed. Agents wait
    /// meanwhile: nobody may be asked or told anything in there.
    pub in_turn: &'a mut dyn FnMut(Work<'_>) -> Result<()>,
}

/// The part of a run that writes.
pub type Work<'a> = &'a mut dyn FnMut() -> Result<()>;

/// What is to be done to which files.
struct Job<'a> {
    clients: &'a [&'static Client],
    /// Those among them that were not asked for, but have a folder here.
    found: &'a [&'static Client],
    top: &'a Path,
    cwd: &'a Path,
    drawer: Option<Drawer>,
    /// What goes into the files; none where it comes out of them.
    server: Option<Server>,
    extras: Extras,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read, understood or written, a bad name, or a no to the question.
pub fn run(args: &Args, cx: &mut Setup<'_>) -> Result<()> {
    let (clients, found) = chosen(args, &cx.top)?;
    let has = |wanted| args.with.contains(&wanted);
    let extras = Extras { hooks: has(With::Hooks), wake: has(With::Wake) };
    let server = if args.remove { None } else { Some(server(args, cx)?) };
    // A removal does not make the folder of backups only to put one in.
    let comms = cx.comms.as_deref().filter(|comms| !args.remove || comms.is_dir());
    let drawer = comms.map(Drawer::new);
    let (top, cwd) = (&cx.top, &cx.cwd);
    let job = Job { clients: &clients, found: &found, top, cwd, drawer, server, extras };
    let (shown, _) = job.plan()?;
    say(cx.out, &shown.diff())?;
    say(cx.talk, &shown.remarks())?;
    if args.dry_run {
        return Ok(());
    }
    if !shown.is_empty() && cx.interactive && !args.yes && !(cx.ask)("write these changes?")? {
        return Err(Error::refused("nothing was written, as the answer was no"));
    }
    let mut written = None;
    (cx.in_turn)(&mut || {
        // Somebody may have written since the files were looked at.
        let (mut plan, receipt) = job.plan()?;
        let news = plan.news_since(&shown)?;
        let done = match &job.drawer {
            Some(drawer) => plan.write_recorded(drawer, receipt, cx.now),
            None => plan.write(),
        }?;
        written = Some((plan, news + &done));
        Ok(())
    })?;
    let Some((plan, done)) = written else {
        return Err(Error::internal("the turn to write passed without a write"));
    };
    say(cx.talk, &done)?;
    let next =
        if args.remove { after_removal(&plan) } else { next_steps(cx, &clients, extras, &plan) };
    say(cx.talk, &next)
}

impl Job<'_> {
    /// What there is to do as the files are now, and the receipt as it is now.
    fn plan(&self) -> Result<(Plan, Receipt)> {
        let receipt = self.drawer.as_ref().map(Drawer::receipt).transpose()?.unwrap_or_default();
        let mut plan = Plan::new(self.cwd);
        for client in self.found {
            let folder = client.folder.unwrap_or_default();
            plan.remark(format!("{client} is set up too, as `{folder}/` is here"));
        }
        for client in self.clients {
            if let Some(server) = &self.server {
                plan.put_in(client, self.top, server, self.extras)?;
                continue;
            }
            for file in client.files {
                let path = self.top.join(file.path);
                let made = self.drawer.as_ref().and_then(|drawer| drawer.made(&receipt, &path));
                plan.take_out(file, path, made)?;
            }
        }
        Ok((plan, receipt))
    }
}

/// What the clients are to start, and as whom.
fn server(args: &Args, cx: &Setup<'_>) -> Result<Server> {
    let name = args.name.as_deref().map(MemberName::parse).transpose();
    let name = name.map_err(|err| err.in_usage("--name"))?.map(|name| name.to_string());
    Ok(Server {
        command: command(&cx.path, &cx.current_exe)?,
        name,
        wake: args.with.contains(&With::Wake),
    })
}

/// The rows of the names that were given, in the table's order; without a name all that are set up
/// unasked, and beside them those of these that are only because their folder is here. Everything
/// comes out again unasked.
fn chosen(args: &Args, top: &Path) -> Result<(Vec<&'static Client>, Vec<&'static Client>)> {
    let names = &args.client;
    if let Some(unknown) = names.iter().find(|name| Client::named(name).is_none()) {
        let known: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        return Err(Error::usage(format!("no client named `{unknown}`"))
            .hint(format!("there are: {}", known.join(", "))));
    }
    if !names.is_empty() || args.remove {
        let is_named = |client: &&Client| names.iter().any(|name| name == client.name);
        let chosen = CLIENTS.iter().filter(|client| names.is_empty() || is_named(client));
        return Ok((chosen.collect(), Vec::new()));
    }
    let is_here = |client: &&Client| client.folder.is_none_or(|folder| top.join(folder).is_dir());
    let chosen: Vec<&Client> = CLIENTS.iter().filter(is_here).collect();
    let found = chosen.iter().copied().filter(|client| client.folder.is_some()).collect();
    Ok((chosen, found))
}

/// What the clients are to start: our name where `path` (of the environment) leads to this very
/// program, since that is right on other machines too; else its path.
///
/// # Errors
/// No file can name this program so that we would know it again.
pub(super) fn command(path: &OsStr, current_exe: &Path) -> Result<String> {
    let file = format!("{KEY}{}", std::env::consts::EXE_SUFFIX);
    let found = platform::find_on_path(path, &file);
    if found.is_some_and(|path| platform::same_file(&path, current_exe)) {
        return Ok(KEY.to_owned());
    }
    let shown = current_exe.display();
    let Some(command) = current_exe.to_str() else {
        return Err(Error::refused(format!("`{shown}` is not Unicode, so no file can name it"))
            .hint("put team-table into a folder of PATH"));
    };
    if !clients::starts_us(command) {
        return Err(Error::refused(format!("this program is `{shown}`, not `{file}`"))
            .hint("give it its name back: by that init knows an entry of ours again"));
    }
    Ok(command.to_owned())
}

/// What the person has to do now, and what to expect.
fn next_steps(cx: &Setup<'_>, clients: &[&Client], extras: Extras, plan: &Plan) -> String {
    let mut steps: Vec<String> = Vec::new();
    for client in clients {
        steps.push(format!("{client}: {}", client.next));
        if extras.hooks {
            steps.push(format!("{client}, hooks: {}", client.next_hooks));
        }
        if extras.wake {
            steps.push(format!("{client}, wake: {}", client.next_wake));
        }
    }
    let files = clients.iter().flat_map(|client| client.files);
    let files: Vec<String> = files
        .filter(|file| file.server.is_some() || file.has_hooks(extras))
        .map(|file| format!("`{}`", file.path))
        .collect();
    let files = listed(&files);
    let again = match extras {
        Extras { hooks: false, wake: false } => "team-table init",
        Extras { hooks: true, wake: false } => "team-table init --with hooks",
        Extras { hooks: false, wake: true } => "team-table init --with wake",
        Extras { hooks: true, wake: true } => "team-table init --with hooks,wake",
    };
    if let Some(command) = &plan.local {
        steps.push(format!(
            "the command is `{command}`, as PATH does not lead to this program: put it there and \
             run `{again}` again before you share {files}"
        ));
    }
    if is_git(&cx.top) {
        steps.push(format!(
            "commit {files}, so that every clone and worktree has them, or run `{again}` in each \
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
    let steps: String = steps.iter().map(|step| item(step)).collect();
    format!(
        "next:\n{steps}- for AGENTS.md and CLAUDE.md, if you like (init does not write them):\n\n\
         {FOR_AGENTS}"
    )
}

/// `a`, `a and b`, `a, b and c`.
fn listed(items: &[String]) -> String {
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

fn after_removal(plan: &Plan) -> String {
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

fn say(to: &mut dyn Write, text: &str) -> Result<()> {
    let failed = |err: io::Error| Error::io("write to", Path::new("the terminal"), err);
    to.write_all(text.as_bytes()).and_then(|()| to.flush()).map_err(failed)
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
