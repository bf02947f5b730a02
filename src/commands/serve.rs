//! `serve`: the MCP server that an agent's client starts.

use std::{io::IsTerminal as _, sync::Arc};

use clap::ValueEnum;

use crate::{
    config::Config,
    domain::name::MemberName,
    error::{Error, Result},
    tools::{Agent, Desk, Who},
    transport::stdio,
    view::{sanitize, text::Front},
    workspace::Workspace,
};

/// Serve one agent over MCP; an agent's client starts this
///
/// The server speaks JSON-RPC on stdin and stdout and ends when stdin ends. The agent is given a
/// name at its first call, such as claude-1. With --transport streamable-http or sse it serves any
/// number of agents over the network until it is stopped; `team-table token` says who they are.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Wish for this name instead of one made from the client's
    #[arg(long)]
    name: Option<String>,
    /// Wake the session when mail comes while it is idle (Codex)
    #[arg(long)]
    wake: bool,
    /// How clients are connected: by pipes if not set, or over the network
    #[arg(long, value_enum)]
    transport: Option<Transport>,
    /// Listen at this address; 127.0.0.1 if not set
    #[arg(long)]
    host: Option<String>,
    /// Listen at this port; 8741 if not set, 0 for any that is free
    #[arg(long)]
    port: Option<u16>,
    /// Answer to this name, too, as clients or a reverse proxy say it (can be repeated)
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    Stdio,
    StreamableHttp,
    Sse,
}

#[cfg(feature = "http")]
const HOST: &str = "127.0.0.1";

/// Serves until the client is gone.
///
/// # Errors
/// A name that is none (exit code 2), or no event loop.
pub fn run(args: &Args, workspace: Workspace, config: &Arc<Config>) -> Result<u8> {
    let transport = transport(args, config)?;
    if transport != Transport::Stdio {
        return over_network(args, transport, workspace, config);
    }
    let mut notices = Vec::new();
    let wish = match (&args.name, config.name.as_deref().map(str::trim)) {
        (Some(name), _) => Some(MemberName::parse(name).map_err(|err| err.in_usage("--name"))?),
        (None, None | Some("")) => None,
        // Inherited from who knows where; a server that does not start tells nobody why.
        (None, Some(name)) => MemberName::parse(name)
            .inspect_err(|err| notices.push(format!("TEAM_TABLE_NAME is not used: {err}")))
            .ok(),
    };
    if std::io::stdin().is_terminal() {
        super::say(
            "serve speaks MCP on stdin and stdout: an agent's client starts it (Ctrl-C ends it)",
        );
    }
    let agent = Agent { family: "agent".to_owned(), ..Agent::default() };
    let who = Who::Session { agent, wish };
    let desk = Desk::new(workspace, Arc::clone(config), who, Front::Tools).with_notices(notices);
    stdio::serve(desk, config, args.wake)?;
    Ok(0)
}

/// How clients are connected, and whether the other flags go with it.
fn transport(args: &Args, config: &Config) -> Result<Transport> {
    let transport = match (args.transport, config.transport.as_deref()) {
        (Some(transport), _) => transport,
        (None, None) => Transport::Stdio,
        (None, Some(text)) => Transport::from_str(text, false).map_err(|_| {
            Error::usage(format!(
                "TEAM_TABLE_TRANSPORT must be stdio, streamable-http or sse, got {}",
                sanitize::quote(text)
            ))
        })?,
    };
    let wants_network = args.host.is_some() || args.port.is_some() || !args.allow_host.is_empty();
    if transport == Transport::Stdio && wants_network {
        return Err(Error::usage("--host, --port and --allow-host are for servers on the network")
            .hint("add --transport streamable-http"));
    }
    if transport != Transport::Stdio && (args.wake || args.name.is_some()) {
        return Err(Error::usage("--name and --wake are for the one agent on stdin and stdout")
            .hint("over the network a token says who asks: `team-table token add NAME`"));
    }
    Ok(transport)
}

#[cfg(feature = "http")]
fn over_network(
    args: &Args,
    transport: Transport,
    workspace: Workspace,
    config: &Arc<Config>,
) -> Result<u8> {
    use crate::{
        config::PORT,
        transport::http::{self, Listening},
    };
    let host = args.host.as_deref().or(config.host.as_deref()).unwrap_or(HOST).to_owned();
    let port = args.port.or(config.port).unwrap_or(PORT);
    let is_sse = transport == Transport::Sse;
    let listening = Listening { host, port, names: args.allow_host.clone(), is_sse };
    http::serve(listening, workspace, config, &mut |text| super::say(text))?;
    Ok(0)
}

#[cfg(not(feature = "http"))]
fn over_network(_: &Args, _: Transport, _: Workspace, _: &Arc<Config>) -> Result<u8> {
    Err(Error::usage("this build of team-table has no network transports")
        .hint("build it with the feature `http`, which is on if not switched off"))
}
