//! `web`: prints an address at which the person can write on the board's page.

use std::{
    io::Write,
    net::{IpAddr, Ipv6Addr},
};

use super::{address::is_served, flush, print, say};
use crate::{
    config::{Config, PORT},
    domain::token,
    error::{Error, Result},
    platform,
    store::TOKEN_LIFE,
    tools::Desk,
    transport::{event_loop, queue::Queue},
};

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
    #[arg(long, default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Its address where a reverse proxy is in front: `https://table.example`
    #[arg(long, value_name = "URL", conflicts_with_all = ["host", "port"], value_parser = origin)]
    url: Option<String>,
}

/// Prints the address.
///
/// # Errors
/// An agent runs this; there is no table, or it cannot be written.
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
    // What stands in front may answer others alone.
    if args.url.is_none() && !is_served(&host(args), args.port) {
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
    args.url.clone().unwrap_or_else(|| format!("http://{}:{}", host(args), args.port))
}

/// An address of scheme, host and perhaps a port, as a browser writes it. What else it may carry the
/// page does not serve, or it would hide who is meant.
fn origin(given: &str) -> Result<String, String> {
    let (scheme, rest) = given.trim().split_once("://").unwrap_or_default();
    let scheme = scheme.to_ascii_lowercase();
    if !["http", "https"].contains(&scheme.as_str()) {
        return Err("it has to begin with `https://` or `http://`".to_owned());
    }
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#', '@', '\\']) {
        return Err("only a host and perhaps a port may follow: the board has no path".to_owned());
    }
    let at = authority.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match authority.get(at..).unwrap_or_default().split_once(':') {
        Some((host, port)) => (authority.get(..at + host.len()).unwrap_or_default(), Some(port)),
        None => (authority, None),
    };
    let is_named = || {
        host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
            && host.contains(|c: char| c.is_ascii_alphanumeric())
    };
    let is_ip = |ip: &str| ip.parse::<Ipv6Addr>().is_ok();
    if !is_named() && !host.strip_prefix('[').and_then(|ip| ip.strip_suffix(']')).is_some_and(is_ip)
    {
        return Err(format!("`{host}` is not the name of a host"));
    }
    if port.is_some_and(|port| port.parse::<u16>().unwrap_or(0) == 0) {
        return Err("the port is not a number from 1 to 65535".to_owned());
    }
    Ok(format!("{scheme}://{}", authority.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::{Args, address, origin};

    #[test]
    fn addresses_for_a_browser() {
        let check = |host: &str, shown: &str| {
            assert_eq!(address(&Args { host: host.to_owned(), port: 8741, url: None }), shown);
        };
        check("127.0.0.1", "http://127.0.0.1:8741");
        check("0.0.0.0", "http://127.0.0.1:8741");
        check("::", "http://[::1]:8741");
        check("[fe80::1]", "http://[fe80::1]:8741");
        check("localhost", "http://localhost:8741");
    }

    #[test]
    fn addresses_of_a_proxy() {
        let good = |given: &str, shown: &str| assert_eq!(origin(given).unwrap(), shown, "{given}");
        good("https://table.example", "https://table.example");
        good(" HTTPS://Table.Example/ ", "https://table.example");
        good("http://10.0.0.7:80", "http://10.0.0.7:80");
        good("https://[2001:DB8::1]:8443/", "https://[2001:db8::1]:8443");
        let bad = |given: &str, why: &str| {
            let told = origin(given).unwrap_err();
            assert!(told.contains(why), "{given}: {told}");
        };
        for given in ["", "table.example", "ftp://table.example", "javascript://x", "//x", "://x"] {
            bad(given, "begin with");
        }
        for given in
            ["https://x/board", "https://x//", "https://x/?a", "https://x#t=1", "https://a@x"]
        {
            bad(given, "no path");
        }
        for given in [
            "https://",
            "https:///",
            "https://:443",
            "https://a b",
            "https://[::1",
            "https://[x]",
            "https://ex\u{e4}mple",
            "https://..",
            "https://[::1]x",
        ] {
            bad(given, "host");
        }
        for given in [
            "https://x:",
            "https://x:0",
            "https://x:65536",
            "https://x:y",
            "https://[::1]:",
            "https://a:b:1",
        ] {
            bad(given, "port");
        }
    }
}
