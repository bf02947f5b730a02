//! MCP over the network: one process that serves any number of agents.
//!
//! ```text
//! guard       in front of everything: host, origin, the body's kind, size and speed
//! auth        who asks: a token, or a name in the address
//! presence    the desks that this process has, for members and for sessions
//! call        one request, from its arrival until its reply was written
//! streamable  `/mcp`: sessions, and the stateless requests of 2026-07-28
//! quick       plain calls, past rmcp
//! pass        what lets a client in, until it is revoked
//! wire        a connection, and whether it breaks
//! stream      what streams have in common
//! sse         `/sse` and `/messages`: for clients that know only that
//! ```

mod auth;
mod call;
mod guard;
mod pass;
mod presence;
mod quick;
mod sse;
mod stream;
mod streamable;
mod wire;

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    pin::pin,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use axum::{Router, response::Response};
use hyper::{
    Request,
    body::Incoming,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

pub(super) use self::guard::is_from_here;
use self::{
    auth::{Caller, Slowdown},
    guard::{Arrived, Names},
    pass::Passes,
    presence::{Ends, Registry},
    sse::Streams,
    stream::PING_EVERY,
    streamable::Mcp,
    wire::{Line, Wire},
};
use super::{event_loop, interrupted, queue::Queue, web};
use crate::{
    config::{AgentEnv, Config, PORT},
    error::{Error, Result},
    platform,
    tools::{Desk, SharedStore, Who},
    view::{sanitize, text::Front},
    workspace::Workspace,
};

/// Where to listen, and for what.
#[derive(Debug)]
pub struct Listening {
    pub host: String,
    pub port: u16,
    /// Further names that clients may call this server by.
    pub names: Vec<String>,
    /// HTTP+SSE of 2024-11-05 instead of streamable HTTP.
    pub is_sse: bool,
}

/// More than 1,000 sessions need, each with a stream of its own.
const CONNECTIONS: usize = 4_000;
/// A session has a connection, a seat, a bell and a look at the table.
const FILES: u64 = 65_536;
/// An idle connection is kept longer than clients keep one (90 s, reqwest and Go), so that none is
/// closed under a request; and a request's head may take so long.
const HEAD_TIME: Duration = Duration::from_secs(120);
/// A client that takes nothing of its reply for so long is gone.
const WRITE_TIME: Duration = Duration::from_secs(60);
/// When the system has no more files for us.
const BETWEEN_ACCEPTS: Duration = Duration::from_millis(50);
/// Behind a signal, calls that are under way have so long to be answered,
const LAST_WORDS: Duration = Duration::from_millis(400);
/// connections so long to end then.
const GRACE: Duration = Duration::from_secs(1);
/// And so long what was read has to be written down then.
pub(super) const SETTLE: Duration = Duration::from_millis(300);
/// How often to look for sessions and seats whose time is up.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// How often to look whether the tokens of those who are here have been revoked.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// What all requests share.
struct Net {
    /// For looks at the tokens.
    looker: Queue,
    /// For writing down that a token was used: whoever looks does not wait for that.
    writer: Arc<Queue>,
    is_noting: Arc<AtomicBool>,
    /// The address that is listened at is not this machine's alone.
    is_public: bool,
    names: Names,
    /// A body has to be there by then.
    body_time: Duration,
    /// How often each stream shows that it lives.
    ping_every: Duration,
    /// So many large bodies are read at once.
    large_bodies: Semaphore,
    slowdown: Slowdown,
    registry: Arc<Registry>,
    passes: Passes,
    /// A signal came: who waits is told so.
    stop: CancellationToken,
    /// The last words were said: streams end.
    end: CancellationToken,
}

/// Who answers: behind the guard the agents' transport at its paths, at all others the page.
struct Reception {
    net: Arc<Net>,
    agents: Agents,
    page: TowerToHyperService<Router>,
}

enum Agents {
    Streamable(Mcp),
    Sse(Streams),
}

impl Reception {
    /// What agents ask goes past axum's routes: its layers make all that lies behind them anew for
    /// each request.
    async fn answer(
        &self,
        line: Line,
        request: Request<Incoming>,
    ) -> Result<Response, Box<Response>> {
        let request = guard::guard(&self.net, line, request).await?;
        if !self.agents.are_at(request.parts.uri.path()) {
            let Ok(response) = Box::pin(self.page.call(request.whole())).await;
            return Ok(response);
        }
        let caller = auth::identify(&self.net, &request).await?;
        let pass = caller.pass.clone();
        // Pinned here: whoever is given it to wait for would move all of it about.
        let answer = pin!(self.agents.attend(caller, request));
        pass.bound(answer).await.ok_or_else(|| Box::new(auth::ended()))
    }
}

impl Agents {
    fn are_at(&self, path: &str) -> bool {
        match self {
            Agents::Streamable(_) => path == "/mcp",
            Agents::Sse(_) => path == "/sse" || path == "/messages",
        }
    }

    async fn attend(&self, caller: Caller, request: Arrived) -> Response {
        match self {
            Agents::Streamable(mcp) => mcp.attend(caller, &request).await,
            Agents::Sse(streams) => streams.attend(caller, request).await,
        }
    }
}

/// Serves until a signal comes; `say` is told where it listens.
///
/// # Errors
/// The address cannot be listened at, or is open to others and nobody has a token.
pub fn serve(
    listening: Listening,
    workspace: Workspace,
    config: &Config,
    say: &mut dyn FnMut(&str),
) -> Result<()> {
    platform::allow_files(FILES);
    let runtime = event_loop()?;
    let served = runtime.block_on(run(listening, workspace, config, say));
    // A thread may still wait for its turn to write: never join it.
    runtime.shutdown_background();
    served
}

async fn run(
    listening: Listening,
    workspace: Workspace,
    config: &Config,
    say: &mut dyn FnMut(&str),
) -> Result<()> {
    let addresses = resolve(&listening).await?;
    // What an agent's client left in our environment says nothing of those who come.
    let config = Arc::new(Config { agent: AgentEnv::default(), ..config.clone() });
    // One connection for all: where somebody deletes the log, all of a process have to be closed
    // before the table can be read again, as they share what SQLite keeps of it.
    let store = SharedStore::default();
    let human = |front| {
        let desk = Desk::new(workspace.clone(), Arc::clone(&config), Who::Human, front);
        desk.sharing(Arc::clone(&store))
    };
    let looker = Queue::new(human(Front::Commands));
    let writer = Arc::new(Queue::new(human(Front::Commands)));
    let is_public = !addresses.iter().all(|address| address.ip().is_loopback());
    if is_public && !auth::has_tokens(&looker).await? {
        return Err(without_tokens(&listening));
    }
    let (listener, address) = bind(&listening, &addresses).await?;

    let (stop, end) = (CancellationToken::new(), CancellationToken::new());
    let first_delay = config.hurried(auth::FIRST_DELAY);
    let body_time = config.hurried(guard::BODY_TIME);
    let ends = Ends { calls: stop.clone(), streams: end.clone() };
    let registry =
        Arc::new(Registry::new(workspace.clone(), Arc::clone(&config), Arc::clone(&store), ends));
    let net = Arc::new(Net {
        looker,
        writer,
        is_noting: Arc::default(),
        is_public,
        names: Names::new(&listening.host, address, &listening.names),
        body_time,
        ping_every: config.hurried(PING_EVERY),
        large_bodies: Semaphore::new(guard::LARGE_BODIES),
        slowdown: Slowdown::new(first_delay),
        registry: Arc::clone(&registry),
        passes: Passes::default(),
        stop: stop.clone(),
        end: end.clone(),
    });
    let (agents, path) = if listening.is_sse {
        (Agents::Sse(Streams::new(&net)), "sse")
    } else {
        (Agents::Streamable(Mcp::with_sessions(&net)), "mcp")
    };
    let page = web::routes(human(Front::Tools), is_public, stop.clone());
    let reception =
        Reception { net: Arc::clone(&net), agents, page: TowerToHyperService::new(page) };
    let reception = Arc::new(reception);
    say(&format!("listening on http://{address}/{path} (Ctrl-C ends it)"));
    say(&format!(
        "the board is at http://{address}/; `{}` lets you write there",
        web_command(address)
    ));

    let chores = [tokio::spawn(sweep(Arc::clone(&registry))), tokio::spawn(check_passes(net))];
    let mut connections = JoinSet::new();
    tokio::select! {
        () = accept(&listener, &reception, &config, &stop, &mut connections) => {}
        () = interrupted() => {}
    }
    drop(listener);
    stop.cancel();
    // Who takes no answer keeps nobody else waiting.
    drop(timeout(LAST_WORDS, registry.answered()).await);
    end.cancel();
    let ended = async { while connections.join_next().await.is_some() {} };
    // What has not ended by then ends with us.
    drop(timeout(GRACE, ended).await);
    for chore in chores {
        chore.abort();
    }
    drop(timeout(SETTLE, registry.settle(SETTLE)).await);
    Ok(())
}

/// What leads a person to the board at this address.
fn web_command(address: SocketAddr) -> String {
    let mut command = "team-table web".to_owned();
    // It means 127.0.0.1 and this port itself.
    if !address.ip().is_unspecified() && address.ip() != IpAddr::V4(Ipv4Addr::LOCALHOST) {
        command.extend([" --host ", &address.ip().to_string()]);
    }
    if address.port() != PORT {
        command.extend([" --port ", &address.port().to_string()]);
    }
    command
}

async fn accept(
    listener: &TcpListener,
    reception: &Arc<Reception>,
    config: &Config,
    stop: &CancellationToken,
    connections: &mut JoinSet<()>,
) {
    let patience = config.hurried(WRITE_TIME);
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                while connections.try_join_next().is_some() {}
                if connections.len() >= CONNECTIONS {
                    tracing::warn!("{CONNECTIONS} connections are open: {from} was turned away");
                    continue;
                }
                // Replies are small, and each would wait for the one before it to be acknowledged.
                if let Err(err) = stream.set_nodelay(true) {
                    tracing::debug!("no TCP_NODELAY: {err}");
                }
                let wire = Wire::new(stream, from.ip().to_canonical(), patience);
                connections.spawn(connection(wire, Arc::clone(reception), stop.clone()));
            }
            Err(err) => {
                tracing::warn!("cannot accept a connection: {err}");
                sleep(BETWEEN_ACCEPTS).await;
            }
        }
    }
}

async fn connection(wire: Wire, reception: Arc<Reception>, stop: CancellationToken) {
    let line = wire.line.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (reception, line) = (Arc::clone(&reception), line.clone());
        // hyper keeps room for this in each connection, also in one that is idle: of a box, not of 4 KB.
        Box::pin(async move {
            let answered = reception.answer(line, request).await;
            Ok::<_, Infallible>(answered.unwrap_or_else(|refusal| *refusal))
        })
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(wire), service);
    tokio::pin!(served);
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(err) = ended {
        tracing::debug!("a connection ended: {err}");
    }
}

/// Once a second, and so within one, what was revoked is cut.
async fn check_passes(net: Arc<Net>) {
    loop {
        sleep(CHECK_EVERY).await;
        if net.passes.is_idle() {
            continue;
        }
        match auth::live(&net.looker).await {
            Ok(is_live) => net.passes.check(is_live),
            Err(err) => tracing::debug!("the tokens cannot be read: {err}"),
        }
    }
}

async fn sweep(registry: Arc<Registry>) {
    loop {
        drop(timeout(SWEEP_EVERY, registry.ended.notified()).await);
        registry.sweep(SETTLE).await;
    }
}

/// The addresses of the host, those of this machine alone first.
async fn resolve(listening: &Listening) -> Result<Vec<SocketAddr>> {
    let Listening { host, port, .. } = listening;
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
    let found = tokio::net::lookup_host((bare, *port)).await.map(Vec::from_iter);
    match found {
        Ok(mut found) if !found.is_empty() => {
            found.sort_by_key(SocketAddr::is_ipv6);
            Ok(found)
        }
        Ok(_) | Err(_) => {
            Err(Error::usage(format!("{} is no address of this machine", sanitize::quote(host)))
                .hint("--host takes an address or a name, such as 127.0.0.1 or localhost"))
        }
    }
}

async fn bind(
    listening: &Listening,
    addresses: &[SocketAddr],
) -> Result<(TcpListener, SocketAddr)> {
    let bound = TcpListener::bind(addresses).await;
    let bound = bound.and_then(|it| it.local_addr().map(|address| (it, address)));
    bound.map_err(|err| {
        let Listening { host, port, .. } = listening;
        let host = sanitize::quote(host);
        let failed = match err.kind() {
            io::ErrorKind::AddrInUse => Error::refused(format!("port {port} of {host} is taken"))
                .hint("end the server that has it, or choose another one with --port"),
            io::ErrorKind::AddrNotAvailable => {
                Error::usage(format!("{host} is no address of this machine"))
                    .hint("--host takes an address or a name, such as 127.0.0.1 or localhost")
            }
            io::ErrorKind::PermissionDenied => {
                Error::refused(format!("this user may not listen at port {port} of {host}"))
                    .hint("ports from 1024 on are free for all users: --port 8741")
            }
            _ => Error::refused(format!("cannot listen at port {port} of {host}: {err}")),
        };
        failed.source(err)
    })
}

fn without_tokens(listening: &Listening) -> Error {
    let transport = if listening.is_sse { "sse" } else { "streamable-http" };
    let host = &listening.host;
    Error::refused(format!(
        "{} can be reached by others, and nobody has a token",
        sanitize::quote(host)
    ))
    .hint(format!(
        "first `team-table token add NAME`, for each agent, then `team-table serve --transport \
         {transport} --host {host}`"
    ))
}
