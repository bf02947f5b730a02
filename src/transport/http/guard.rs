//! What stands in front of every route: whom the request takes us for, from which page it comes,
//! and a body of a kind, a size and a speed that we take.

use std::{
    borrow::Cow,
    future::poll_fn,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::{
        HeaderMap, HeaderName, Method, StatusCode, Uri, header, request::Parts, uri::Authority,
    },
    response::{IntoResponse as _, Response},
};
use hyper::{
    Request,
    body::{Body as _, Incoming},
};
use tokio::{sync::Semaphore, time::timeout};

use super::{super::surrogates, Net, wire::Line};
use crate::view::sanitize;

/// No text that a tool takes comes near it.
const BODY_BYTES: usize = 4 * 1024 * 1024;
/// Nearly all requests are smaller.
const LARGE: usize = 64 * 1024;
/// Bodies are read before it is known who sends them: of larger ones so many at once, so that
/// nobody can fill the memory with them.
pub(super) const LARGE_BODIES: usize = 64;
pub(super) const BODY_TIME: Duration = Duration::from_secs(30);

/// What this server may be called. Pages of others get at it by a name of their own that they let
/// lead to this machine (DNS rebinding); so a name that nobody gave it is refused.
pub(super) struct Names {
    allowed: Vec<String>,
    /// It listens at every address that the machine has: each of them is right.
    is_anywhere: bool,
    port: u16,
    /// The names that `--allow-host` gave.
    given: Vec<String>,
}

/// A request that passed the guard, with all of its body.
#[derive(Clone)]
pub(super) struct Arrived {
    pub parts: Parts,
    pub body: Bytes,
    /// The connection that it came by.
    pub line: Line,
    /// It was sent to a name or address of this machine alone.
    pub is_to_loopback: bool,
}

impl Arrived {
    /// As services take it.
    pub(super) fn whole(self) -> Request<Body> {
        Request::from_parts(self.parts, Body::from(self.body))
    }
}

impl Names {
    pub(super) fn new(host: &str, address: SocketAddr, given: &[String]) -> Names {
        let given: Vec<String> = given.iter().map(|name| plain(name)).collect();
        let mut allowed = vec![plain(host), address.ip().to_string()];
        allowed.extend(given.iter().cloned());
        Names { allowed, is_anywhere: address.ip().is_unspecified(), port: address.port(), given }
    }

    fn allows(&self, host: &str) -> bool {
        is_loopback(host)
            || self.allowed.iter().any(|name| name == host)
            || (self.is_anywhere && host.parse::<IpAddr>().is_ok())
    }

    /// Whether a page of this origin may send requests: one of our own, or one that comes through a
    /// proxy under a name that was given.
    fn allows_origin(&self, origin: &str, host: &Authority) -> bool {
        let Ok(uri) = origin.parse::<Uri>() else { return false };
        let (Some(scheme), Some(page)) = (uri.scheme_str(), uri.authority()) else { return false };
        if !matches!(scheme, "http" | "https") {
            return false;
        }
        let ports = if scheme == "https" { 443 } else { 80 };
        let port = page.port_u16().unwrap_or(ports);
        let name = plain(page.host());
        page == host || (is_loopback(&name) && port == self.port) || self.given.contains(&name)
    }
}

/// A name as it is compared: in small letters, without the brackets of IPv6 and the dot at the end.
fn plain(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Whether a request that passed the guard comes from this machine, as far as it tells: under a name
/// of this machine alone, and through no proxy.
pub(in crate::transport) fn is_from_here(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.and_then(|host| host.parse::<Authority>().ok());
    host.is_some_and(|host| is_loopback(&plain(host.host()))) && !is_passed_on(headers)
}

/// Whether a proxy passed the request on, as far as it tells: it comes from elsewhere then.
pub(super) fn is_passed_on(headers: &HeaderMap) -> bool {
    static ADDED: [HeaderName; 5] = [
        header::FORWARDED,
        header::VIA,
        HeaderName::from_static("x-forwarded-for"),
        HeaderName::from_static("x-forwarded-host"),
        HeaderName::from_static("x-real-ip"),
    ];
    ADDED.iter().any(|name| headers.contains_key(name))
}

/// Lets a request in, once all of it is there.
pub(super) async fn guard(
    net: &Net,
    line: Line,
    request: Request<Incoming>,
) -> Result<Arrived, Box<Response>> {
    let (parts, body) = request.into_parts();
    let host = host(&parts)?;
    let name = plain(host.host());
    let forbidden = |text: &str| Err(Box::new(refuse(StatusCode::FORBIDDEN, text)));
    if !net.names.allows(&name) {
        let name = sanitize::quote(&name);
        let text = format!("this server is not called {name}; `--allow-host` gives it a name");
        return forbidden(&text);
    }
    let mut origins = parts.headers.get_all(header::ORIGIN).iter();
    if !origins.all(|it| it.to_str().is_ok_and(|it| net.names.allows_origin(it, &host))) {
        return forbidden("pages of other origins may not send requests");
    }
    let body = whole(&parts, body, net).await?;
    Ok(Arrived { parts, body, line, is_to_loopback: is_loopback(&name) })
}

/// Whom the request takes us for.
fn host(request: &Parts) -> Result<Authority, Box<Response>> {
    let mut hosts = request.headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()),
        _ => None,
    };
    let host = match request.uri.authority() {
        // Of two that differ, nobody knows which one a proxy went by.
        Some(named) => host.filter(|host| host == named),
        None => host,
    };
    host.filter(|host| !host.as_str().contains('@')).ok_or_else(|| {
        Box::new(refuse(StatusCode::BAD_REQUEST, "a request says in `Host` whom it is for, once"))
    })
}

/// All of the body.
async fn whole(parts: &Parts, mut body: Incoming, net: &Net) -> Result<Bytes, Box<Response>> {
    let refused = |status, text: &str| Err(Box::new(refuse(status, text)));
    if parts.method == Method::POST && !is_json(&parts.headers) {
        let text = "the body must be JSON: `Content-Type: application/json`";
        return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
    }
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large = || refused(StatusCode::PAYLOAD_TOO_LARGE, "the body has over 4 MiB");
    if body.size_hint().lower() > BODY_BYTES as u64 {
        return too_large();
    }
    match timeout(net.body_time, collect(&mut body, &net.large_bodies)).await {
        Ok(Ok(Some(bytes))) => Ok(match surrogates::mend(&bytes) {
            Cow::Borrowed(_) => bytes.into(),
            Cow::Owned(mended) => mended.into(),
        }),
        Ok(Ok(None)) => too_large(),
        Ok(Err(err)) => {
            tracing::debug!("a body was cut: {err}");
            refused(StatusCode::BAD_REQUEST, "the body was cut")
        }
        Err(_) => refused(StatusCode::REQUEST_TIMEOUT, "the body took over 30 s"),
    }
}

/// The body; `None` where it is too large.
async fn collect(body: &mut Incoming, turns: &Semaphore) -> hyper::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut turn = None;
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        match frame.transpose()? {
            None => return Ok(Some(bytes)),
            Some(frame) => bytes.extend_from_slice(frame.data_ref().map_or(&[], |it| it)),
        }
        if bytes.len() > BODY_BYTES {
            return Ok(None);
        }
        if bytes.len() > LARGE && turn.is_none() {
            turn = turns.acquire().await.ok();
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// A request that no tool sees.
pub(super) fn refuse(status: StatusCode, text: impl Into<String>) -> Response {
    let text = text.into();
    tracing::debug!("refused with {status}: {text}");
    (status, text + "\n").into_response()
}

#[cfg(test)]
mod tests {
    use super::{Authority, Names};

    fn names(host: &str, address: &str, given: &[&str]) -> Names {
        let given: Vec<String> = given.iter().map(|&name| name.to_owned()).collect();
        Names::new(host, address.parse().unwrap(), &given)
    }

    #[test]
    fn only_its_own_names_are_right() {
        let here = names("localhost", "127.0.0.1:8741", &["Table.Example."]);
        for host in ["localhost", "127.0.0.1", "127.1.2.3", "::1", "table.example"] {
            assert!(here.allows(host), "{host}");
        }
        for host in ["evil.example", "10.0.0.1", "localhost.evil.example", ""] {
            assert!(!here.allows(host), "{host}");
        }
        assert!(names("0.0.0.0", "0.0.0.0:1", &[]).allows("10.0.0.1"));
        assert!(!names("0.0.0.0", "0.0.0.0:1", &[]).allows("evil.example"));
    }

    #[test]
    fn only_pages_of_its_own_send_requests() {
        let here = names("127.0.0.1", "127.0.0.1:8741", &["table.example"]);
        let host: Authority = "127.0.0.1:8741".parse().unwrap();
        for origin in ["http://127.0.0.1:8741", "http://localhost:8741", "https://table.example"] {
            assert!(here.allows_origin(origin, &host), "{origin}");
        }
        for origin in [
            "null",
            "http://localhost:3000",
            "http://localhost",
            "https://evil.example",
            "file:///x",
            "http://table.example.evil.example",
            "",
        ] {
            assert!(!here.allows_origin(origin, &host), "{origin}");
        }
    }
}
