//! What lets a client in: a token, until it is revoked; or, where nobody has one, that. What is under
//! way then is cut, streams and sessions end.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    response::Response,
};
use hyper::body::{Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// By what somebody came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// The token of this id.
    Token(i64),
    /// Nobody has a token.
    Open,
}

/// All who are here by one key share it. Cancelled when the key is no good any more.
#[derive(Debug, Clone)]
pub(super) struct Pass(Arc<CancellationToken>);

/// The passes of those who are here; the lock is never held across an await.
#[derive(Debug, Default)]
pub(super) struct Passes(Mutex<HashMap<Key, Pass>>);

impl Passes {
    /// A pass for a key that has just been found good.
    pub(super) fn pass(&self, key: Key) -> Pass {
        self.all().entry(key).or_insert_with(|| Pass(Arc::default())).clone()
    }

    /// Whether nobody is here.
    pub(super) fn is_idle(&self) -> bool {
        self.all().is_empty()
    }

    /// Ends the passes whose key is no good any more, and forgets those that nobody has.
    pub(super) fn check(&self, is_live: impl Fn(Key) -> bool) {
        self.all().retain(|key, Pass(ended)| {
            let stays = is_live(*key);
            if !stays {
                ended.cancel();
            }
            stays && Arc::strong_count(ended) > 1
        });
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Key, Pass>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    pub(super) fn has_ended(&self) -> bool {
        self.0.is_cancelled()
    }

    /// The response, of which a stream ends with the pass; `None` where it has ended before.
    pub(super) async fn bound(
        self,
        response: Pin<&mut impl Future<Output = Response>>,
    ) -> Option<Response> {
        let response = self.0.run_until_cancelled(response).await?;
        if response.body().size_hint().exact().is_some() {
            return Some(response);
        }
        let ended = Box::pin(CancellationToken::clone(&self.0).cancelled_owned());
        Some(response.map(|body| Body::new(Bound { body, ended })))
    }
}

/// A body that ends with a pass.
struct Bound {
    body: Body,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl HttpBody for Bound {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Passes};

    #[test]
    fn what_is_revoked_ends_and_what_nobody_has_is_forgotten() {
        let passes = Passes::default();
        let (ada, again) = (passes.pass(Key::Token(1)), passes.pass(Key::Token(1)));
        let bob = passes.pass(Key::Token(2));
        drop(passes.pass(Key::Open));
        passes.check(|key| key != Key::Token(1));
        assert!(ada.has_ended() && again.has_ended() && !bob.has_ended());
        assert!(!passes.pass(Key::Token(1)).has_ended(), "a new pass is another one");
        drop((bob, ada, again));
        passes.check(|_| true);
        assert!(passes.is_idle());
    }
}
