//! `serve`: the MCP server that an agent's client starts.

use std::{io::IsTerminal as _, sync::Arc};

use clap::ValueEnum;

use crate::{
    config::Config,
    domain::name::MemberName,
    error::Result,
    tools::{Agent, Desk, Who},
    transport::stdio,
    view::text::Front,
    workspace::Workspace,
};

/// Serve one agent over MCP; an agent's client starts this
///
/// The server speaks JSON-RPC on stdin and stdout and ends when stdin ends. The agent is given a
/// name at its first call, such as claude-1.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Wish for this name instead of one made from the client's
    #[arg(long)]
    name: Option<String>,
    /// Wake the session when mail comes while it is idle (Codex)
    #[arg(long)]
    wake: bool,
    /// How the client is connected
    #[arg(long, value_enum, default_value = "stdio")]
    transport: Transport,
    /// Where to listen, over the network
    #[cfg(feature = "http")]
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// On which port
    #[cfg(feature = "http")]
    #[arg(long, default_value_t = 8741)]
    port: u16,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Transport {
    Stdio,
    #[cfg(feature = "http")]
    StreamableHttp,
}

/// Serves until the client is gone.
///
/// # Errors
/// A name that is none (exit code 2), or no event loop.
pub fn run(args: &Args, workspace: Workspace, config: &Arc<Config>) -> Result<u8> {
    match args.transport {
        Transport::Stdio => {}
        #[cfg(feature = "http")]
        Transport::StreamableHttp => {
            let board = Desk::new(workspace, Arc::clone(config), Who::Human, Front::Tools);
            crate::transport::http::serve(board, &args.host, args.port)?;
            return Ok(0);
        }
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
