//! Addresses of a server on the network, and names of variables, as they go into clients' files.

use std::{
    net::{IpAddr, Ipv6Addr, TcpStream, ToSocketAddrs as _},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::{
    clients::{Network, is_endpoint, is_sse, is_variable},
    config::PORT,
    domain::{name::MemberName, token},
    error::{Error, Result},
};

/// How long to look for somebody who serves at an address.
const PATIENCE: Duration = Duration::from_millis(300);

/// Reads `--url` and `--token-env`.
///
/// # Errors
/// What a client could not use, or what would not reach our server (exit code 2); the hint says
/// what would be right. What may be a secret is not repeated.
pub(super) fn parse(url: &str, token_env: Option<&str>) -> Result<Network> {
    if let Some(name) = token_env {
        check_variable(name)?;
    }
    let parts = Parts::of(url)?;
    let asked = parts.query.map(named).transpose()?;
    match token_env {
        Some(_) if asked.is_some() => {
            return Err(Error::usage("`--url` names a member, and so does a token")
                .hint("leave `?name=` away: the token says which member it is"));
        }
        None if !parts.is_loopback() => {
            let host = parts.host;
            return Err(Error::usage(format!(
                "`{host}` is another machine, which asks for a token"
            ))
            .hint(
                "make one there with `team-table token add NAME`, put it into a variable, and \
                     name that with --token-env",
            ));
        }
        _ => {}
    }
    let token_env = token_env.map(ToOwned::to_owned);
    Ok(Network { url: url.to_owned(), token_env })
}

/// The command that serves at an address of this machine; where another machine is meant, or
/// something else, without a port, which only whoever is there knows.
pub(super) fn serve_command(url: &str) -> String {
    let transport = if is_sse(url) { "sse" } else { "streamable-http" };
    let command = format!("team-table serve --transport {transport}");
    match Parts::of(url) {
        Ok(parts) if parts.is_loopback() && parts.port != PORT => {
            format!("{command} --port {}", parts.port)
        }
        _ => command,
    }
}

/// Whether an address is one of this machine.
pub(super) fn is_local(url: &str) -> bool {
    Parts::of(url).is_ok_and(|parts| parts.is_loopback())
}

/// Whether somebody takes connections at an address of a client's file; of one that is none, as
/// other looks say, it says yes.
pub(super) fn is_answered(url: &str) -> bool {
    Parts::of(url).map_or(true, |parts| is_served(parts.host, parts.port))
}

/// Whether somebody takes connections there; whoever does not say so soon does not.
pub(super) fn is_served(host: &str, port: u16) -> bool {
    let host = host.trim_matches(['[', ']']).to_owned();
    let (say, heard) = mpsc::channel();
    // To look a name up may take longer than anybody waits.
    thread::spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs();
        let is_served = found
            .is_ok_and(|mut all| all.any(|at| TcpStream::connect_timeout(&at, PATIENCE).is_ok()));
        say.send(is_served).ok();
    });
    heard.recv_timeout(PATIENCE).unwrap_or(false)
}

/// An address, in parts.
struct Parts<'a> {
    host: &'a str,
    port: u16,
    query: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Result<Parts<'a>> {
        const RIGHT: &str = "such as http://127.0.0.1:8741/mcp";
        let shown = url.split(['?', '#']).next().unwrap_or(url).escape_debug();
        let wrong = |what: &str| Error::usage(format!("`--url {shown}` {what}")).hint(RIGHT);
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(Error::usage("`--url` has no `http://` or `https://`").hint(RIGHT));
        };
        if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return Err(Error::usage(format!(
                "`--url` is no `http://` or `https://`, but {scheme:?}"
            ))
            .hint(RIGHT));
        }
        let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(authority_end);
        if authority.contains('@') {
            return Err(Error::usage(
                "`--url` holds a user or a password, which a file would show",
            )
            .hint("put a token into a variable, and name that with --token-env"));
        }
        if rest.contains('#') {
            return Err(wrong("has a part behind `#`, which no server is told"));
        }
        if rest.split_once('?').is_some_and(|(_, query)| query.contains(token::PREFIX)) {
            return Err(Error::usage("`--url` holds a token, which a file would show")
                .hint("put it into a variable, and name that with --token-env"));
        }
        if !url.chars().all(|char| char.is_ascii_graphic() && !"\"\\<>^`{|}$".contains(char)) {
            return Err(wrong("has a space or another character that no address has"));
        }
        let (host, port) = split_port(authority);
        let is_host = match host.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']').is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok()),
            None => is_host_name(host),
        };
        if !is_host {
            return Err(wrong("names no host"));
        }
        let usual = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
        let port = port.map_or(Ok(usual), str::parse::<u16>).ok().filter(|port| *port > 0);
        let Some(port) = port else {
            return Err(wrong("has a port that is no number from 1 to 65535"));
        };
        if !is_endpoint(url) {
            let base = url.get(..url.len() - rest.len()).unwrap_or_default();
            return Err(wrong("leads to no address of team-table: that ends in /mcp, or in /sse")
                .hint(format!("perhaps {base}/mcp")));
        }
        Ok(Parts { host, port, query: rest.split_once('?').map(|(_, query)| query) })
    }

    fn is_loopback(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
    }
}

/// The host, and the port where there is one; the colons in `[::1]` are none of it.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

fn is_host_name(host: &str) -> bool {
    !host.is_empty()
        && host.split('.').all(|label| {
            !label.is_empty()
                && !label.starts_with('-')
                && label.chars().all(|char| char.is_ascii_alphanumeric() || "-_".contains(char))
        })
}

/// The name in a query, which may hold nothing else.
fn named(query: &str) -> Result<MemberName> {
    let Some(name) = query.strip_prefix("name=").filter(|name| !name.contains('&')) else {
        return Err(Error::usage("`--url` has more than a name behind its `?`")
            .hint("all that may stand there is `?name=NAME`"));
    };
    MemberName::parse(name).map_err(|err| err.in_usage("--url"))
}

fn check_variable(name: &str) -> Result<()> {
    if name.starts_with(token::PREFIX) || (name.contains(token::PREFIX) && !is_variable(name)) {
        return Err(Error::usage("`--token-env` wants the name of a variable, got a token")
            .hint("put the token into a variable, as in `export ADA_TOKEN=...`, and name that"));
    }
    if is_variable(name) {
        return Ok(());
    }
    let shown = name.escape_debug();
    let hint = match name.trim_start_matches('$').trim_matches(['{', '}']) {
        plain if is_variable(plain) => format!("the name alone: {plain}"),
        _ => "letters, digits and `_`, no digit first, such as ADA_TOKEN".to_owned(),
    };
    Err(Error::usage(format!("`--token-env` wants the name of a variable, got `{shown}`"))
        .hint(hint))
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::error::Kind;

    #[test]
    fn what_a_client_can_use() {
        for url in [
            "http://127.0.0.1:8741/mcp",
            "http://localhost/mcp",
            "http://[::1]:8741/sse",
            "http://127.0.0.1:8741/mcp?name=ada",
        ] {
            assert!(parse(url, None).is_ok(), "{url}");
        }
        for url in ["https://table.example/mcp", "HTTP://10.0.0.7:1/a/b/mcp", "http://h_1/sse"] {
            assert!(parse(url, Some("ADA_TOKEN")).is_ok(), "{url}");
        }
    }

    #[test]
    fn what_it_could_not_use_is_refused_with_what_would_be_right() {
        let check = |url: &str, variable: Option<&str>, part: &str, hint: &str| {
            let err = parse(url, variable).unwrap_err();
            let text = err.explain();
            assert_eq!(err.kind(), Kind::Usage, "{url}");
            assert!(text.contains(part) && text.contains(hint), "{url}: {text}");
            assert!(!text.contains("secret"), "{text}");
        };
        let right = "http://127.0.0.1:8741/mcp";
        check("127.0.0.1:8741/mcp", None, "has no `http://`", right);
        check("", None, "has no `http://`", right);
        check("ftp://h/mcp", None, "but \"ftp\"", right);
        check("http://ada:secret@h/mcp", None, "a user or a password", "--token-env");
        check("http://127.0.0.1/mcp#a", None, "behind `#`", right);
        check("http://127.0.0.1/m cp", None, "a space", right);
        check("http://127.0.0.1/mcp\n", None, "\\n", right);
        assert!(parse(right, Some("matt_token")).is_ok());
        check("http://127.0.0.1/é/mcp", None, "character", right);
        check("http://${H}/mcp", None, "character", right);
        check("http:///mcp", None, "names no host", right);
        check("http://[::1/mcp", None, "names no host", right);
        check("http://a..b/mcp", None, "names no host", right);
        check("http://127.0.0.1:/mcp", None, "port", right);
        check("http://127.0.0.1:99999/mcp", None, "port", right);
        check("http://127.0.0.1:8741", None, "ends in /mcp", right);
        check("http://127.0.0.1:8741/", None, "ends in /mcp", right);
        check("http://127.0.0.1:8741/mcp/", None, "ends in /mcp", right);
        check("http://127.0.0.1/mcp?name=a&x=1", None, "more than a name", "`?name=NAME`");
        check("http://127.0.0.1/mcp?", None, "more than a name", "`?name=NAME`");
        check("http://127.0.0.1/mcp?name=human", None, "human", "");
        check("http://127.0.0.1/mcp?name=a", Some("A"), "names a member", "leave `?name=`");
        check("https://h/mcp", None, "another machine", "token add");
        check("http://0.0.0.0:8741/mcp", None, "another machine", "token add");
        check("http://127.0.0.1/mcp?token=tt_secret", None, "holds a token", "--token-env");
        check("http://127.0.0.1/mcp?name=tt_secret", None, "holds a token", "--token-env");
        check("http://127.0.0.1/mcp?x=secret", None, "more than a name", "`?name=NAME`");
        check("http://127.0.0.1/m cp?x=secret", None, "a space", right);
        check("http://127.0.0.1/mcp#secret", None, "behind `#`", right);
        check(right, Some("tt_secret"), "got a token", "export");
        check(right, Some("Bearer tt_secret"), "got a token", "export");
        check(right, Some("${ADA}"), "got `${ADA}`", "the name alone: ADA");
        check(right, Some("$ADA"), "got `$ADA`", "the name alone: ADA");
        check(right, Some("1A"), "got `1A`", "no digit first");
        check(right, Some(""), "got ``", "such as ADA_TOKEN");
        check(right, Some("A-B"), "got `A-B`", "letters");
    }
}
