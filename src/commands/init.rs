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
    address, next,
    plan::Plan,
    receipt::{Drawer, Receipt},
};
use crate::{
    clients::{self, CLIENTS, Client, Extras, KEY, Lack, Link, Program, Server},
    domain::name::MemberName,
    error::{Error, Result},
    platform,
};

/// Make the table and write the clients' configuration files
#[derive(Debug, Default, clap::Args)]
#[command(long_about = long_about())]
pub struct Args {
    /// Only this client's files (can be repeated)
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = clap::builder::PossibleValuesParser::new(CLIENTS.iter().map(|client| {
            let help = format!("{client}: `{}`", client.server_file().path);
            clap::builder::PossibleValue::new(client.name).help(help)
        }))
    )]
    pub client: Vec<String>,

    /// The name that every session of these clients wishes for
    #[arg(long, value_name = "NAME", conflicts_with = "remove")]
    pub name: Option<String>,

    /// Set up more than the server (can be repeated)
    ///
    /// All write into the clients' settings, beside what is there. What is not named here is left
    /// as it is.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', conflicts_with = "remove")]
    pub with: Vec<With>,

    /// Lead the clients to a server on the network, such as http://127.0.0.1:8741/mcp
    ///
    /// Run it once per client, with --client and a token or name of its own: one is one member.
    /// Without --url such an entry is left as it is; --remove takes it out.
    ///
    /// An address that ends in /sse is one of `serve --transport sse`. Without --token-env only a
    /// server on this machine, as whom `?name=NAME` says.
    #[arg(long, value_name = "URL", conflicts_with = "remove")]
    pub url: Option<String>,

    /// The environment variable in which each client finds its token
    #[arg(long, value_name = "VAR", requires = "url")]
    pub token_env: Option<String>,

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
    /// Let the tools of team-table run without asking
    Allow,
}

/// What `--help` says, from the rows of the clients.
fn long_about() -> String {
    let (usual, others): (Vec<&Client>, Vec<&Client>) =
        CLIENTS.iter().partition(|client| client.is_usual());
    let named = |clients: &[&Client]| {
        let names = clients.iter().map(|client| client.title.to_owned());
        next::listed(&names.collect::<Vec<_>>())
    };
    format!(
        "Make the table and write the clients' configuration files\n\nEdits the files of {} at the \
         top of the checkout, and those of {} where one of their files or folders is there: shows \
         what will change, asks on a terminal, keeps a copy in `.agent-comms/backup/` (not where \
         TEAM_TABLE_DB names the table). Everything else in these files stays as it is, byte for \
         byte.",
        named(&usual),
        named(&others)
    )
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
    clients: Chosen,
    top: &'a Path,
    cwd: &'a Path,
    drawer: Option<Drawer>,
    /// What goes into the files; none where it comes out of them.
    server: Option<Server>,
    /// What hooks start.
    program: String,
    extras: Extras,
}

/// Whose files are edited.
#[derive(Default)]
struct Chosen {
    clients: Vec<&'static Client>,
    /// What is to be said of that.
    remarks: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read, understood or written, a bad name or address, or a no to the
/// question.
pub fn run(args: &Args, cx: &mut Setup<'_>) -> Result<()> {
    let has = |wanted| args.with.contains(&wanted);
    let extras = Extras { hooks: has(With::Hooks), wake: has(With::Wake), allow: has(With::Allow) };
    let mut clients = chosen(args, &cx.top)?;
    let server = if args.remove { None } else { Some(server(args, cx)?) };
    if let Some(server) = &server {
        clients = clients.with_a_form_for(&server.link)?;
    }
    let program = match server.as_ref().map(|server| &server.link) {
        Some(Link::Program(program)) => program.command.clone(),
        _ => KEY.to_owned(),
    };
    // A removal does not make the folder of backups only to put one in.
    let comms = cx.comms.as_deref().filter(|comms| !args.remove || comms.is_dir());
    let drawer = comms.map(Drawer::new);
    let (top, cwd) = (&cx.top, &cx.cwd);
    let job = Job { clients, top, cwd, drawer, server, program, extras };
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
    let next = match &job.server {
        Some(server) => next::after_setup(cx, &job.clients.clients, args, extras, server, &plan),
        None => next::after_removal(&plan),
    };
    say(cx.talk, &next)
}

impl Job<'_> {
    /// What there is to do as the files are now, and the receipt as it is now.
    fn plan(&self) -> Result<(Plan, Receipt)> {
        let receipt = self.drawer.as_ref().map(Drawer::receipt).transpose()?.unwrap_or_default();
        let mut plan = Plan::new(self.cwd);
        for remark in &self.clients.remarks {
            plan.remark(remark.clone());
        }
        for client in &self.clients.clients {
            match &self.server {
                Some(server) => {
                    plan.put_in(client, self.top, server, &self.program, self.extras)?;
                }
                None => plan.take_out(client, self.top, self.drawer.as_ref(), &receipt)?,
            }
        }
        self.remark_on_sharers(&mut plan);
        self.remark_on_one_member(&mut plan);
        Ok((plan, receipt))
    }

    /// A file that is changed for one client may be another one's too.
    fn remark_on_sharers(&self, plan: &mut Plan) {
        let is_chosen =
            |client: &Client| self.clients.clients.iter().any(|it| it.name == client.name);
        let files = self.clients.clients.iter().map(|client| client.server_file());
        for other in CLIENTS.iter().filter(|client| !is_chosen(client)) {
            let shared = files.clone().find(|file| {
                plan.changes(file.path) && other.server_file().paths().any(|path| path == file.path)
            });
            // That the usual ones have others with them is no news.
            if let Some(file) = shared.filter(|_| self.server.is_none() || other.is_usual()) {
                plan.remark(format!("{other} reads `{}` too", file.path));
            }
        }
    }

    /// Whoever comes with one token or one name is one member, with one inbox.
    fn remark_on_one_member(&self, plan: &mut Plan) {
        let Some(Link::Network(network)) = self.server.as_ref().map(|server| &server.link) else {
            return;
        };
        let (whose, own) = match (&network.token_env, network.member()) {
            (Some(variable), _) => (format!("the token in `{variable}`"), "--token-env"),
            (None, Some(name)) => (format!("the name `{name}`"), "`?name=`"),
            (None, None) => return,
        };
        let titles: Vec<String> =
            plan.called.iter().map(|(client, _)| client.title.to_owned()).collect();
        if titles.len() > 1 {
            plan.remark(format!(
                "{} come as one member, by {whose}, with one inbox: to have them talk to each \
                 other, run init once per client, with --client and its own {own}",
                next::listed(&titles)
            ));
        }
    }
}

impl Chosen {
    /// Without those that cannot be led to this server. Whoever is set up unasked is not left out
    /// in silence.
    fn with_a_form_for(self, link: &Link) -> Result<Chosen> {
        let (mut left, mut why) = (Chosen { remarks: self.remarks, ..Chosen::default() }, None);
        for client in self.clients {
            let Some(lack) = client.lacks(link) else {
                left.clients.push(client);
                continue;
            };
            let what = match lack {
                Lack::Network => format!("{client} knows no servers on the network"),
                Lack::Sse => format!(
                    "{client} knows streamable HTTP alone, not the transport of 2024 at `/sse`"
                ),
                Lack::Variable => format!(
                    "{client} takes no variable for a token, and a token in its file could be read \
                     by everybody"
                ),
            };
            if client.is_usual() {
                return Err(Error::refused(what).hint(match lack {
                    Lack::Sse => {
                        "give it an address that ends in /mcp, and leave it out here: \
                                  --client NAME is for the others"
                    }
                    _ => "leave it out: --client NAME is for the others",
                }));
            }
            left.remarks.push(format!("{what}: left out"));
            why = Some(what);
        }
        match why {
            Some(what) if left.clients.is_empty() => Err(Error::refused(what)),
            _ => Ok(left),
        }
    }
}

/// How the clients come to the server.
fn server(args: &Args, cx: &Setup<'_>) -> Result<Server> {
    let trust = args.with.contains(&With::Allow);
    let wake = args.with.contains(&With::Wake);
    if let Some(url) = &args.url {
        let network = address::parse(url, args.token_env.as_deref())?;
        if args.name.is_some() {
            return Err(Error::usage("`--name` is for servers that clients start")
                .hint("on the network a token says who comes, or `?name=NAME` in the address"));
        }
        if wake {
            return Err(Error::usage("`--with wake` is for servers that clients start")
                .hint("a server on the network cannot wake a session: leave `wake` away"));
        }
        return Ok(Server { link: Link::Network(network), trust });
    }
    let name = args.name.as_deref().map(MemberName::parse).transpose();
    let name = name.map_err(|err| err.in_usage("--name"))?.map(|name| name.to_string());
    let program = Program { command: command(&cx.path, &cx.current_exe)?, name, wake };
    Ok(Server { link: Link::Program(program), trust })
}

/// The rows of the names that were given, in the table's order; without a name all that are set up
/// unasked, and those of which something is here. Everything comes out again unasked.
fn chosen(args: &Args, top: &Path) -> Result<Chosen> {
    let names = &args.client;
    if let Some(unknown) = names.iter().find(|name| Client::named(name).is_none()) {
        let known: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        return Err(Error::usage(format!("no client named `{unknown}`"))
            .hint(format!("there are: {}", known.join(", "))));
    }
    if !names.is_empty() || args.remove {
        let is_named = |client: &&Client| names.iter().any(|name| name == client.name);
        let chosen = CLIENTS.iter().filter(|client| names.is_empty() || is_named(client));
        return Ok(Chosen { clients: chosen.collect(), remarks: Vec::new() });
    }
    let mut chosen = Chosen::default();
    for client in CLIENTS {
        let sign = client.signs.iter().map(|sign| (sign, top.join(sign)));
        if let Some((sign, path)) = sign.into_iter().find(|(_, path)| path.exists()) {
            let slash = if path.is_dir() { "/" } else { "" };
            chosen.remarks.push(format!("{client} is set up too, as `{sign}{slash}` is here"));
        } else if !client.is_usual() {
            continue;
        }
        chosen.clients.push(client);
    }
    Ok(chosen)
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

fn say(to: &mut dyn Write, text: &str) -> Result<()> {
    let failed = |err: io::Error| Error::io("write to", Path::new("the terminal"), err);
    to.write_all(text.as_bytes()).and_then(|()| to.flush()).map_err(failed)
}
