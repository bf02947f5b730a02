//! Who asks: a bearer token says which member it is. On this machine alone, and as long as nobody
//! has a token, `?name=NAME` in the address does.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use tokio::time::{Instant, sleep};

use super::{
    super::queue::Queue,
    Net,
    guard::{Arrived, is_passed_on, refuse},
    pass::{Key, Pass},
};
use crate::{
    domain::{
        name::MemberName,
        time::{MINUTE, Time},
        token,
    },
    error::{Error, Kind, Result},
    store::Tx,
    view::sanitize,
};

/// Who asks.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// Nobody in particular, where a session is to find its name by itself.
    pub name: Option<MemberName>,
    /// What let them in.
    pub pass: Pass,
}

/// A wrong token is answered so much later,
pub(super) const FIRST_DELAY: Duration = Duration::from_millis(100);
/// twice as much each time, up to this,
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// until none has come from there for so long.
const FORGET_AFTER: Duration = Duration::from_secs(600);
/// So many addresses are remembered.
const ADDRESSES: usize = 1_000;
/// So many wrong tokens in a row are logged from each.
const LOGGED: u32 = 5;

pub(super) async fn has_tokens(looker: &Queue) -> Result<bool> {
    let found = looker.read(|tx, _| tx.has_tokens()).await?;
    Ok(found.unwrap_or(false))
}

/// What lets clients in now.
pub(super) async fn live(looker: &Queue) -> Result<impl Fn(Key) -> bool + use<>> {
    let tokens = looker.read(|tx, _| tx.tokens()).await?.unwrap_or_default();
    Ok(move |key| match key {
        Key::Token(id) => tokens.iter().any(|token| token.id == id),
        Key::Open => tokens.is_empty(),
    })
}

/// Finds out who asks.
pub(super) async fn identify(net: &Net, request: &Arrived) -> Result<Caller, Box<Response>> {
    let wish = named(request.parts.uri.query())
        .map_err(|text| Box::new(refuse(StatusCode::BAD_REQUEST, text)))?;
    let hash = shown(&request.parts.headers).map(token::hash);
    let look = net.looker.read(|tx, now| {
        let token = match &hash {
            Some(hash) => tx.token(hash)?,
            None => None,
        };
        let is_noted = |at: Time| now.since(at).0 < MINUTE;
        let is_new = token.as_ref().is_some_and(|token| !token.used_at.is_some_and(is_noted));
        // Where a token is shown, that alone lets in.
        let has_tokens = hash.is_none() && tx.has_tokens()?;
        Ok((token, has_tokens, is_new))
    });
    let (token, has_tokens, is_new) = match look.await {
        Ok(found) => found.unwrap_or_default(),
        Err(err) => return Err(Box::new(unreadable(&err))),
    };
    match (hash, token) {
        (Some(_), Some(token)) => {
            if is_new {
                note(net, token.id);
            }
            if wish.is_some_and(|name| name != token.name) {
                let text = format!("the token is that of `{}`; leave `?name=` away", token.name);
                return Err(Box::new(refuse(StatusCode::FORBIDDEN, text)));
            }
            Ok(Caller { name: Some(token.name), pass: net.passes.pass(Key::Token(token.id)) })
        }
        (Some(_), None) => {
            net.slowdown.wrong(request.line.peer).await;
            Err(Box::new(ended()))
        }
        (None, _) if has_tokens || !is_local(net, request) => {
            Err(Box::new(unauthorized("Bearer realm=\"team-table\"")))
        }
        (None, _) => Ok(Caller { name: wish, pass: net.passes.pass(Key::Open) }),
    }
}

/// Whether the request comes from this machine, as far as that can be told.
fn is_local(net: &Net, request: &Arrived) -> bool {
    let is_from_loopback = request.line.peer.is_loopback();
    !net.is_public
        && request.is_to_loopback
        && is_from_loopback
        && !is_passed_on(&request.parts.headers)
}

/// The token that the request shows: an empty one, which is nobody's, where it shows what is none.
fn shown(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let first = all.next()?;
    if all.next().is_some() {
        return Some("");
    }
    let token = first.to_str().ok().and_then(|text| {
        let (scheme, token) = text.trim().split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    Some(token.filter(|token| token.starts_with(token::PREFIX)).unwrap_or_default())
}

/// The name in the address, if there is one.
fn named(query: Option<&str>) -> Result<Option<MemberName>, String> {
    let pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let mut names = pairs.filter(|(key, _)| *key == "name").map(|(_, value)| value);
    match (names.next(), names.next()) {
        (None, _) => Ok(None),
        // The characters of a name are never encoded.
        (Some(name), None) => MemberName::parse(name).map(Some).map_err(|err| err.explain()),
        (Some(_), Some(_)) => Err("the address has two names; one request is one member's".into()),
    }
}

/// Writes down that a token was used: once a minute, and nobody waits for it.
fn note(net: &Net, id: i64) {
    let (writer, is_noting) = (Arc::clone(&net.writer), Arc::clone(&net.is_noting));
    if is_noting.swap(true, Ordering::Relaxed) {
        return;
    }
    tokio::spawn(async move {
        let used = |tx: &Tx<'_>, now: Time| tx.token_used(id, now);
        if let Err(err) = writer.write(|desk, turn| desk.write(turn, used)).await {
            tracing::debug!("cannot note that a token was used: {err}");
        }
        is_noting.store(false, Ordering::Relaxed);
    });
}

fn unreadable(err: &Error) -> Response {
    let status = match err.kind() {
        Kind::Busy | Kind::NeedsWrite => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    tracing::error!("the tokens cannot be read: {err}");
    refuse(status, "the tokens cannot be read now; the server's log says more")
}

/// What let a client in is no good, or not any more.
pub(super) fn ended() -> Response {
    unauthorized("Bearer realm=\"team-table\", error=\"invalid_token\"")
}

fn unauthorized(challenge: &'static str) -> Response {
    let text = "a token is needed: `Authorization: Bearer TOKEN`; `team-table token add NAME` on \
                the server makes one";
    let mut response = refuse(StatusCode::UNAUTHORIZED, text);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}

/// Who shows wrong tokens waits longer each time. Right ones are never kept waiting.
#[derive(Debug)]
pub(super) struct Slowdown {
    first_delay: Duration,
    by_address: Mutex<HashMap<IpAddr, Wrong>>,
}

#[derive(Debug, Clone, Copy)]
struct Wrong {
    n: u32,
    at: Instant,
}

impl Slowdown {
    pub(super) fn new(first_delay: Duration) -> Slowdown {
        Slowdown { first_delay, by_address: Mutex::default() }
    }

    async fn wrong(&self, from: IpAddr) {
        let n = self.count(from, Instant::now());
        if n <= LOGGED {
            let from = sanitize::quote(&from.to_string());
            tracing::warn!("a wrong or revoked token came from {from} ({n} in a row)");
        }
        sleep(self.delay(n)).await;
    }

    fn delay(&self, n: u32) -> Duration {
        self.first_delay.saturating_mul(1 << n.saturating_sub(1).min(10)).min(LONGEST_DELAY)
    }

    fn count(&self, from: IpAddr, now: Instant) -> u32 {
        let from = network(from);
        let mut all = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, wrong| now.duration_since(wrong.at) < FORGET_AFTER);
        if all.len() >= ADDRESSES
            && !all.contains_key(&from)
            && let Some(oldest) = all.iter().min_by_key(|(_, it)| it.at).map(|(from, _)| *from)
        {
            all.remove(&oldest);
        }
        let wrong = all.entry(from).or_insert(Wrong { n: 0, at: now });
        *wrong = Wrong { n: wrong.n.saturating_add(1), at: now };
        wrong.n
    }
}

/// Whoever has one address of IPv6 has the whole network.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(it) => {
            let [a, b, c, d, ..] = it.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{ADDRESSES, FIRST_DELAY, FORGET_AFTER, LONGEST_DELAY, Slowdown, named};

    #[test]
    fn one_name_in_the_address() {
        let name = |query: &str| named(Some(query)).map(|it| it.map(|it| it.to_string()));
        assert_eq!(name("name=ada"), Ok(Some("ada".to_owned())));
        assert_eq!(name("x=1&name=ada&y"), Ok(Some("ada".to_owned())));
        assert_eq!((name("x=1"), named(None)), (Ok(None), Ok(None)));
        for wrong in ["name=", "name=human", "name=a&name=b", "name=a%20b"] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn wrong_tokens_take_longer_each_time_up_to_a_bound() {
        let slowdown = Slowdown::new(FIRST_DELAY);
        let now = Instant::now();
        let ada = "10.0.0.1".parse().unwrap();
        let delays: Vec<Duration> =
            (0..8).map(|_| slowdown.delay(slowdown.count(ada, now))).collect();
        assert!(delays.is_sorted() && delays[0] < delays[1], "{delays:?}");
        assert_eq!(slowdown.delay(u32::MAX), LONGEST_DELAY);
        assert_eq!(slowdown.count("10.0.0.2".parse().unwrap(), now), 1);
        assert_eq!(slowdown.count(ada, now + FORGET_AFTER), 1);
        for n in 0..2 * u32::try_from(ADDRESSES).unwrap() {
            slowdown.count(std::net::Ipv4Addr::from_bits(n).into(), now);
        }
        assert!(slowdown.by_address.lock().unwrap().len() <= ADDRESSES);
        // One network of IPv6 is one address.
        assert_eq!(slowdown.count("2001:db8::1".parse().unwrap(), now), 1);
        assert_eq!(slowdown.count("2001:db8::2".parse().unwrap(), now), 2);
    }
}
