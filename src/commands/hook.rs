//! `hook` and `wake`: what a client runs by itself, as a hook of the kind that is a command.

use std::{
    fmt,
    io::{self, IsTerminal as _, Read as _},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};

use crate::{
    config::Config,
    domain::time::Time,
    error::{Error, Kind, Result},
    platform,
    tools::{Desk, Job, Who},
    transport::{
        event_loop,
        hook::{NOTHING_TO_SAY, answered},
        queue::Queue,
    },
    view::text::Front,
    workspace::Workspace,
};

/// What a hook hands over: a tool's input and output may be in it.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// A client says it at once; some end a hook only after a minute.
const SAYS_WITHIN: Duration = Duration::from_secs(5);
/// A waiting process looks so often whether anybody has written to the table,
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// and after so many of these looks, whether its session is still there.
const LOOKS_PER_SESSION: u32 = 20;
/// The session may be at work: then a hook in it tells it of new mail first.
const GRACE: Duration = Duration::from_secs(1);
/// A session that is not found by then has no server of ours here, or none that can be told from
/// another's: each of its turns would leave a process behind.
const SITS_DOWN_WITHIN: Duration = Duration::from_secs(10);
/// Claude Code wakes an idle session with what a background hook says on stderr where it ends so.
/// Source: Claude Code 2.1.332.
const WAKES: u8 = 2;

/// Answers on stdout as the client reads it. Nothing that fails in here disturbs the client; it is
/// noted in `hook.log`.
///
/// # Errors
/// A person runs it, or stdout cannot be written to.
pub fn run(workspace: &Workspace, config: &Arc<Config>, out: &mut dyn io::Write) -> Result<u8> {
    for_clients_only("hook")?;
    let told = said().and_then(|said| tell(said, workspace, config)).unwrap_or_else(|err| {
        workspace.note_hook_failure(&Time(config.now()).utc(), "hook", &err.explain());
        NOTHING_TO_SAY.to_owned()
    });
    super::print(out, &told)?;
    Ok(0)
}

fn tell(said: Map<String, Value>, workspace: &Workspace, config: &Arc<Config>) -> Result<String> {
    let Some(queue) = beside(&said, workspace, config) else {
        return Ok(NOTHING_TO_SAY.to_owned());
    };
    let job = Job::hook(said)?;
    match event_loop()?.block_on(answered(queue.call(&job, None, |_, _| {}))) {
        // A client without our server, or whose server sits nowhere yet.
        Err(err) if err.kind() == Kind::NotFound => Ok(NOTHING_TO_SAY.to_owned()),
        told => told,
    }
}

/// Waits beside an idle session until there is mail for it that nobody has announced, and says so
/// on stderr with the exit code that wakes it. One process per session; it ends with the session.
///
/// # Errors
/// A person runs it.
pub fn wake(workspace: &Workspace, config: &Arc<Config>) -> Result<u8> {
    for_clients_only("wake")?;
    let woken = said().and_then(|said| {
        let Some(queue) = beside(&said, workspace, config) else { return Ok(None) };
        event_loop()?.block_on(wait(&queue))
    });
    match woken {
        Ok(Some(told)) => {
            super::say(&told);
            Ok(WAKES)
        }
        Ok(None) => Ok(0),
        Err(err) => {
            workspace.note_hook_failure(&Time(config.now()).utc(), "wake", &err.explain());
            Ok(0)
        }
    }
}

/// What to wake the session with; `None` where it is gone, or another process waits beside it.
async fn wait(queue: &Queue) -> Result<Option<String>> {
    let client = platform::parent_pid();
    let job = Job::idle()?;
    let began = Instant::now();
    let mut place = None;
    loop {
        tokio::time::sleep(GRACE).await;
        let before = {
            let mut desk = queue.desk().await;
            desk.look_again();
            // Whoever waits makes no table where somebody has just removed it.
            if !desk.table_exists() {
                return Ok(None);
            }
            desk.pulse()
        };
        match queue.call(&job, None, |_, _| {}).await {
            Ok(answer) if !answer.body.is_empty() => return Ok(Some(answer.body)),
            // It sits nowhere yet, or not any more; or the table is in the way for now.
            Ok(_) => {}
            Err(err) if err.kind() == Kind::NotFound && place.is_none() => {}
            Err(err) if err.kind() == Kind::NotFound => return Ok(None),
            Err(err) if matches!(err.kind(), Kind::Busy | Kind::Storage) => {}
            Err(err) => return Err(err),
        }
        let pulse = {
            let desk = queue.desk().await;
            if place.is_none()
                && let Some(name) = desk.sits_at()
            {
                let Some(taken) = desk.wait_beside(&name)? else { return Ok(None) };
                place = Some(taken);
            }
            // What somebody wrote during the look is looked at in the next one.
            before.or_else(|| desk.pulse())
        };
        if place.is_none() && began.elapsed() >= SITS_DOWN_WITHIN {
            return Ok(None);
        }
        for _ in 0..LOOKS_PER_SESSION {
            tokio::time::sleep(LOOK_EVERY).await;
            if platform::parent_pid() != client {
                return Ok(None);
            }
            if queue.desk().await.pulse() != pulse {
                break;
            }
        }
    }
}

/// A desk for the session that this hook belongs to; `None` where there is no table.
fn beside(said: &Map<String, Value>, workspace: &Workspace, config: &Arc<Config>) -> Option<Queue> {
    if !workspace.table.exists() {
        return None;
    }
    let key = said.get("session_id").and_then(Value::as_str).map(str::to_owned);
    let who = Who::Hook { key, above: platform::processes_above() };
    Some(Queue::new(Desk::new(workspace.clone(), Arc::clone(config), who, Front::Tools)))
}

/// What the client hands over on stdin. It counts as whole with the object's last brace, as a client
/// may leave its end open; and one that says nothing is not waited for.
fn said() -> Result<Map<String, Value>> {
    let no_object = |why: &dyn fmt::Display| {
        Error::invalid(format!("stdin is no JSON object of a hook: {why}"))
    };
    let (sender, receiver) = mpsc::channel();
    // A thread in read(2) cannot be ended: it goes with the process.
    thread::spawn(move || {
        // It is taken byte by byte, which costs little from such a buffer.
        let stdin = io::BufReader::new(io::stdin().lock().take(MOST_BYTES));
        let mut objects = serde_json::Deserializer::from_reader(stdin).into_iter();
        // Who gave up waiting has dropped the receiver.
        drop(sender.send(objects.next()));
    });
    match receiver.recv_timeout(SAYS_WITHIN) {
        Ok(Some(said)) => said.map_err(|err| no_object(&err)),
        Ok(None) => Err(no_object(&"there is nothing on it")),
        Err(_) => Err(no_object(&format!("none came within {} s", SAYS_WITHIN.as_secs()))),
    }
}

fn for_clients_only(command: &str) -> Result<()> {
    if !io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "`{command}` is run by agents' clients, which hand it an event on stdin"
    ))
    .hint("`team-table init --with hooks` tells them to; `team-table doctor` shows when they did"))
}
