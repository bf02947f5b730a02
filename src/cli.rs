//! The command line: the clap tree from `tools::TABLE` plus commands; prints text or `--json`.
//!
//! stdout is data, stderr is talk. Exit codes: 0 done, 1 refused or failed (`wait`: nothing new),
//! 2 wrong usage, 3 busy, 4 escalated (`poll`), 70 internal. A reader that closes the pipe ends us
//! quietly with 0.

use std::{
    ffi::OsString,
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    sync::Arc,
};

use clap::{
    Arg, ArgAction, ArgMatches, Args as _, Command,
    error::{ContextKind, ContextValue},
    value_parser,
};

use crate::{
    commands::{self, doctor, init, log, plugin, poll, reset, serve, token},
    config::Config,
    domain::name::{self, MemberName},
    error::{Error, Result},
    fault,
    tools::{Desk, Entry, TABLE, Who},
    transport::{event_loop, queue::Queue},
    view::text::Front,
    workspace::Workspace,
};

const ABOUT: &str =
    "Lets the AI coding agents in one project folder find each other and write to each other";

const AFTER_HELP: &str = "\
Begin with `team-table init` in a repository; agents then find the tools by themselves.
`team-table status` shows who is here, `team-table log -f` what is said.";

const SERVE: &str = "serve";

/// Runs the program and returns its exit code.
pub fn main(argv: impl IntoIterator<Item = OsString>) -> u8 {
    let argv: Vec<OsString> = argv.into_iter().collect();
    let done = Config::from_env().and_then(|config| {
        fault::arm(config.fault.as_deref());
        start_log(&config)?;
        run(&argv, &Arc::new(config))
    });
    match done {
        Ok(code) => code,
        Err(err) if is_broken_pipe(&err) => 0,
        Err(err) => {
            say(&format!("error: {}", commands::in_commands(&err.explain())));
            if is_hook(&argv) { hook_failed() } else { err.exit_code() }
        }
    }
}

/// Whether a client runs this as one of its hooks, also where the rest of the line is wrong.
fn is_hook(argv: &[OsString]) -> bool {
    !io::stdin().is_terminal()
        && tree()
            .ignore_errors(true)
            .try_get_matches_from(argv)
            .is_ok_and(|matches| matches!(matches.subcommand_name(), Some("hook" | "wake")))
}

/// A hook that cannot even begin has nothing to say: by the exit code 2, which elsewhere means wrong
/// usage, it would keep its session from stopping or wake it, again and again.
fn hook_failed() -> u8 {
    // A client that closed stdout does not read it.
    let _unread = writeln!(io::stdout(), "{{}}");
    0
}

fn run(argv: &[OsString], config: &Arc<Config>) -> Result<u8> {
    let matches = match read(argv).map_err(harmless) {
        Ok(matches) => matches,
        Err(err) if err.use_stderr() && is_hook(argv) => {
            say(&err.to_string());
            return Ok(hook_failed());
        }
        Err(err) => {
            let code = u8::try_from(err.exit_code()).unwrap_or(2);
            err.print().map_err(Error::unprintable)?;
            return Ok(code);
        }
    };
    let Some((command, matches)) = matches.subcommand() else { return Ok(2) };
    let db_path = matches.get_one::<PathBuf>("db_path").map(PathBuf::as_path);
    if command == "completions" {
        return completions(matches);
    }
    if command == "plugin" {
        return package(&parsed::<plugin::Args>(matches)?, config);
    }
    if command == "doctor" {
        let (wanted, json) = (parsed::<doctor::Args>(matches)?, matches.get_flag("json"));
        let workspace = Workspace::find(config, db_path);
        return doctor::run(&wanted, workspace, config, json, &mut io::stdout().lock());
    }
    let workspace = Workspace::find(config, db_path)?;
    if command != "where" {
        for warning in &workspace.warnings {
            tracing::warn!("{warning}");
        }
    }
    let mut out = io::stdout().lock();
    if let Some(entry) = Entry::with_command(command) {
        let who = who(matches, config)?;
        let job = entry.job_from_args(matches)?;
        let desk = Desk::new(workspace, Arc::clone(config), who, Front::Commands);
        return commands::tool::run(desk, &job, matches.get_flag("json"), &mut out);
    }
    let looker = |workspace| Desk::new(workspace, Arc::clone(config), Who::Human, Front::Commands);
    match command {
        SERVE => {
            drop(out);
            serve::run(&parsed::<serve::Args>(matches)?, workspace, config)
        }
        "init" => {
            let wanted = parsed::<init::Args>(matches)?;
            if db_path.is_some() {
                return Err(Error::usage("init writes files for the workspace's own table")
                    .hint("to use another table, set TEAM_TABLE_DB where you start your agents"));
            }
            set_up(&wanted, looker(workspace), config, &mut out)
        }
        "status" => {
            commands::status::run(&mut looker(workspace), matches.get_flag("json"), &mut out)
        }
        "log" => {
            let wanted = parsed::<log::Args>(matches)?;
            log::run(&wanted, looker(workspace), matches.get_flag("json"), &mut out)
        }
        "poll" => poll::run(&parsed::<poll::Args>(matches)?, looker(workspace), &mut out),
        "reset" => reset::run(&parsed::<reset::Args>(matches)?, looker(workspace)),
        "hook" => commands::hook::run(&workspace, config, &mut out),
        "wake" => {
            drop(out);
            commands::hook::wake(&workspace, config)
        }
        "token" => token::run(&parsed::<token::Args>(matches)?, looker(workspace), &mut out),
        "where" => commands::which::run(&workspace, matches.get_flag("json"), &mut out).map(|()| 0),
        "web" => {
            let wanted = parsed::<commands::web::Args>(matches)?;
            commands::web::run(&wanted, looker(workspace), config, &mut out)
        }
        other => Err(Error::internal(format!("the command {other} leads nowhere"))),
    }
}

/// A slip is not to lead to what cannot be undone.
fn harmless(mut err: clap::Error) -> clap::Error {
    let kind = ContextKind::SuggestedSubcommand;
    let Some(ContextValue::Strings(mut names)) = err.remove(kind) else { return err };
    names.retain(|name| name != "reset");
    let slip = match err.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(slip)) => slip.to_ascii_lowercase(),
        _ => String::new(),
    };
    if slip.starts_with("reserv") {
        // What is reserved, `status` shows.
        names = vec!["reserve".to_owned(), "status".to_owned()];
    }
    if !names.is_empty() {
        err.insert(kind, ContextValue::Strings(names));
    }
    err
}

/// Reads the command line. A text may begin with a dash, and so does a mistyped option: only what goes
/// on with a blank or a digit is text, such as the item of a list. All else needs `--` before it.
fn read(argv: &[OsString]) -> clap::error::Result<ArgMatches> {
    let tree = tree_for(argv);
    if argv.iter().any(|word| word.to_str().is_some_and(|it| Entry::with_command(it).is_some())) {
        let mut is_text = false;
        let words = argv.iter().map(|word| {
            is_text |= word == "--";
            match word.to_str().filter(|_| !is_text).and_then(stand_in) {
                Some(text) => text.into(),
                None => word.clone(),
            }
        });
        strict(tree.clone()).try_get_matches_from(words)?;
    }
    tree.try_get_matches_from(argv)
}

/// For a text with a dash in front that clap takes for options: the same with another dash.
fn stand_in(word: &str) -> Option<String> {
    let rest = word.strip_prefix('-')?;
    let is_text = rest.starts_with(|c: char| c.is_whitespace() || c.is_ascii_digit());
    (is_text && word.parse::<f64>().is_err()).then(|| format!("\u{2010}{rest}"))
}

/// The tree whose texts do not begin with a dash.
fn strict(tree: Command) -> Command {
    tree.mut_subcommands(|command| {
        command.mut_args(|arg| {
            if arg.is_allow_hyphen_values_set() {
                arg.allow_hyphen_values(false).allow_negative_numbers(true)
            } else {
                arg
            }
        })
    })
}

/// The tree as far as this command line needs it. A server is started for each agent and stays: the
/// help of all the other commands would be a part of what it touches, and of the time that it takes
/// to start.
fn tree_for(argv: &[OsString]) -> Command {
    match argv.get(1) {
        Some(name) if name == SERVE => root().subcommand(serve_command()),
        _ => tree(),
    }
}

/// The program without its commands.
fn root() -> Command {
    Command::new("team-table")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(AFTER_HELP)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(
            Arg::new("db_path")
                .long("db-path")
                .value_name("PATH")
                .value_parser(value_parser!(PathBuf))
                .global(true)
                .help("Use this database file instead of the workspace's"),
        )
}

fn serve_command() -> Command {
    serve::Args::augment_args(Command::new(SERVE))
}

/// The whole tree, from the rows of the tools and the commands beside them.
pub fn tree() -> Command {
    let json = Arg::new("json")
        .long("json")
        .action(ArgAction::SetTrue)
        .help("Print the same facts as JSON");
    let speaker = Arg::new("as")
        .long("as")
        .value_name("NAME")
        .help("Speak as this member; in a terminal you are `human`");
    let tools = TABLE.iter().map(|entry| {
        commands::help_in_commands((entry.clap)()).arg(speaker.clone()).arg(json.clone())
    });
    let plain = |name: &'static str, about: &'static str| Command::new(name).about(about);
    root()
        .subcommand(init::Args::augment_args(Command::new("init")))
        .subcommand(serve_command())
        .subcommand(
            plain("status", "Show who sits here, what waits for you, and the table")
                .arg(json.clone()),
        )
        .subcommand(log::Args::augment_args(Command::new("log")).arg(json.clone()))
        .subcommands(tools)
        .subcommand(plain("hook", "Answer a hook of an agent's client").hide(true))
        .subcommand(plain("wake", "Wait beside an idle session, as a hook").hide(true))
        .subcommand(poll::Args::augment_args(Command::new("poll")))
        .subcommand(reset::Args::augment_args(Command::new("reset")))
        .subcommand(token::Args::augment_args(Command::new("token")))
        .subcommand(plugin::Args::augment_args(Command::new("plugin")))
        .subcommand(plain("where", "Print which table is used here, and why").arg(json.clone()))
        .subcommand(doctor::Args::augment_args(Command::new("doctor")).arg(json))
        .subcommand(
            plain("completions", "Print a script that completes commands in a shell").arg(
                Arg::new("shell")
                    .help("The shell that the script is for")
                    .required(true)
                    .value_parser(value_parser!(clap_complete::Shell)),
            ),
        )
        .subcommand(commands::web::Args::augment_args(Command::new("web")))
}

fn parsed<T: clap::FromArgMatches>(matches: &ArgMatches) -> Result<T> {
    T::from_arg_matches(matches).map_err(|err| Error::usage(err.to_string()))
}

/// As whom a command speaks: `--as`, the agent in whose shell it runs, or the human at a terminal.
fn who(matches: &ArgMatches, config: &Config) -> Result<Who> {
    if let Some(wanted) = matches.get_one::<String>("as") {
        if wanted.eq_ignore_ascii_case(name::HUMAN) {
            return Ok(Who::Human);
        }
        let name = MemberName::parse(wanted).map_err(|err| err.in_usage("--as"))?;
        return Ok(Who::Named(name));
    }
    let agent = &config.agent;
    let sessions = [
        ("claude", &agent.claude_session),
        ("codex", &agent.codex_thread),
        ("copilot", &agent.copilot_session),
    ];
    if let Some((family, key)) =
        sessions.into_iter().find_map(|(family, key)| key.clone().map(|key| (family, key)))
    {
        return Ok(Who::Shell { family: family.to_owned(), key });
    }
    if let Some(marker) = &agent.marker {
        return Err(Error::usage(format!(
            "{marker} is set, so an agent runs this, and it cannot be told which one"
        ))
        .hint("name the member that speaks with --as NAME"));
    }
    if io::stdin().is_terminal() || io::stderr().is_terminal() {
        return Ok(Who::Human);
    }
    Err(Error::usage("no terminal is there, so a script runs this, and nobody is named")
        .hint("name the member that speaks with --as NAME (`--as human` for yourself)"))
}

/// Hands `init` what it needs of the workspace and the terminal.
fn set_up(args: &init::Args, desk: Desk, config: &Config, out: &mut dyn io::Write) -> Result<u8> {
    let workspace = desk.workspace().clone();
    let current_exe = this_program()?;
    let queue = Queue::new(desk);
    let seats = workspace.seats;
    let mut in_turn = |work: init::Work<'_>| {
        // A removal does not make a table only to wait at it.
        if args.remove && !seats.is_dir() {
            return work();
        }
        let runtime = event_loop()?;
        runtime.block_on(queue.write(|desk, turn| {
            if !args.remove {
                desk.make_table(turn)?;
            }
            work()
        }))
    };
    let mut setup = init::Setup {
        top: workspace.checkout,
        comms: workspace.folder,
        cwd: config.cwd.clone(),
        path: config.path.clone().unwrap_or_default(),
        current_exe,
        interactive: io::stdin().is_terminal(),
        out,
        talk: &mut io::stderr(),
        ask: &mut |question| commands::asked(&format!("{question} [y/N]")),
        now: config.now(),
        in_turn: &mut in_turn,
    };
    init::run(args, &mut setup).map(|()| 0)
}

/// Hands `plugin` what it needs of the machine; no table is in it.
fn package(args: &plugin::Args, config: &Config) -> Result<u8> {
    let mut cx = plugin::Setup {
        cwd: config.cwd.clone(),
        path: config.path.clone().unwrap_or_default(),
        current_exe: this_program()?,
        talk: &mut io::stderr(),
    };
    plugin::run(args, &mut cx).map(|()| 0)
}

fn this_program() -> Result<PathBuf> {
    std::env::current_exe()
        .map_err(|err| Error::internal("cannot tell which program this is").source(err))
}

fn completions(matches: &ArgMatches) -> Result<u8> {
    let Some(shell) = matches.get_one::<clap_complete::Shell>("shell") else { return Ok(2) };
    let mut script = Vec::new();
    clap_complete::generate(*shell, &mut tree(), "team-table", &mut script);
    let mut out = io::stdout().lock();
    out.write_all(&script).and_then(|()| out.flush()).map_err(Error::unprintable)?;
    Ok(0)
}

/// What `TEAM_TABLE_LOG` asks for goes to stderr; of rmcp errors alone, since it logs bodies.
fn start_log(config: &Config) -> Result<()> {
    use tracing_subscriber::{
        filter::{LevelFilter, Targets},
        fmt,
        layer::SubscriberExt as _,
        util::SubscriberInitExt as _,
    };
    let level: LevelFilter = match config.log.as_deref() {
        None => LevelFilter::WARN,
        Some(text) => text.parse().map_err(|_| {
            Error::usage(format!("TEAM_TABLE_LOG must be a level, got `{text}`"))
                .hint("one of off, error, warn, info, debug, trace")
        })?,
    };
    let targets = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target("rmcp", level.min(LevelFilter::ERROR))
        .with_target("team_table", level);
    let plain =
        fmt::layer().with_writer(io::stderr).with_ansi(false).without_time().with_target(false);
    // Only a second start in one process could fail here; it changes nothing.
    let _started = tracing_subscriber::registry().with(targets).with(plain).try_init();
    Ok(())
}

fn is_broken_pipe(err: &Error) -> bool {
    std::error::Error::source(err)
        .and_then(|source| source.downcast_ref::<io::Error>())
        .is_some_and(|source| source.kind() == io::ErrorKind::BrokenPipe)
}

#[expect(clippy::print_stderr, reason = "stderr is talk")]
fn say(text: &str) {
    eprintln!("{text}");
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{tree, tree_for};

    #[test]
    fn the_tree_is_sound() {
        tree().debug_assert();
    }

    #[test]
    fn a_server_reads_its_line_as_the_whole_tree_does() {
        let read = |line: &str| {
            let argv: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let by = |tree: clap::Command| {
                let read = tree.try_get_matches_from(&argv);
                read.map(|matches| format!("{:?}", matches.subcommand()))
                    .map_err(|err| err.to_string())
            };
            (by(tree_for(&argv)), by(tree()))
        };
        for line in [
            "team-table serve --name a --db-path x",
            "team-table serve --help",
            "team-table serve -h",
            "team-table serve --nmae a",
            "team-table serve send",
            "team-table serve --port x",
            "team-table --db-path x serve --wake",
        ] {
            let (short, whole) = read(line);
            assert_eq!(short, whole, "{line}");
        }
    }
}
