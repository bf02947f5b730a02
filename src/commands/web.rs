//! `web`: prints an address at which the person can write on the board's page.

use std::{
    io::Write,
    net::{IpAddr, TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use super::{flush, print, say};
use crate::{
    config::Config,
    domain::token,
    error::{Error, Result},
    platform,
    store::TOKEN_LIFE,
    tools::Desk,
    transport::{event_loop, queue::Queue},
};

/// How long to look for somebody who serves there.
const PATIENCE: Duration = Duration::from_millis(300);

/// Print an address that lets you write on the board in your browser
///
/// The address is good for once, within 15 minutes. The board itself is served by
/// `team-table serve --transport streamable-http`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the board is served
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// On which port it is served
    #[arg(long, default_value_t = 8741, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
}

/// Prints the address.
///
/// # Errors
/// An agent runs this; the table cannot be written.
pub fn run(args: &Args, desk: Desk, config: &Config, out: &mut dyn Write) -> Result<u8> {
    let agent = &config.agent;
    let session = agent.claude_session.as_ref().or(agent.codex_thread.as_ref());
    if session.or(agent.copilot_session.as_ref()).or(agent.marker.as_ref()).is_some() {
        return Err(Error::refused("an agent runs this, and whoever enters writes as the human")
            .hint("the person runs `team-table web` in a terminal of their own"));
    }
    let address = address(args);
    let token = token::text(&platform::random()?);
    let hash = token::hash(&token);
    let queue = Queue::new(desk);
    event_loop()?.block_on(queue.write(|desk, turn| desk.promise_entry(turn, &hash)))?;
    print(out, &format!("{address}/#t={token}"))?;
    flush(out)?;
    say(&format!(
        "good for once, within {} minutes; write as the human there",
        TOKEN_LIFE / 60_000
    ));
    if !is_served(args) {
        say(&format!(
            "nobody answers at {address} yet: run `team-table serve --transport streamable-http`"
        ));
    }
    Ok(0)
}

/// The host as a browser takes it: one that means "all of this machine's" is this machine.
fn host(args: &Args) -> String {
    match args.host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) if ip.is_unspecified() => "127.0.0.1".to_owned(),
        Ok(IpAddr::V6(ip)) if ip.is_unspecified() => "[::1]".to_owned(),
        Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
        _ => args.host.clone(),
    }
}

fn address(args: &Args) -> String {
    format!("http://{}:{}", host(args), args.port)
}

fn is_served(args: &Args) -> bool {
    let found = format!("{}:{}", host(args), args.port).to_socket_addrs();
    found.is_ok_and(|mut all| all.any(|at| TcpStream::connect_timeout(&at, PATIENCE).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::{Args, address};

    #[test]
    fn addresses_for_a_browser() {
        let check = |host: &str, shown: &str| {
            assert_eq!(address(&Args { host: host.to_owned(), port: 8741 }), shown);
        };
        check("127.0.0.1", "http://127.0.0.1:8741");
        check("0.0.0.0", "http://127.0.0.1:8741");
        check("::", "http://[::1]:8741");
        check("[fe80::1]", "http://[fe80::1]:8741");
        check("localhost", "http://localhost:8741");
    }
}
