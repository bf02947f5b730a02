//! The stream of changes, for as long as somebody watches.
//!
//! What other processes write is seen by a look at the table's count of commits, four times a
//! second; what comes through this page, at once.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::body::{Body, Bytes};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::{Instant, sleep},
};

use super::{
    Page,
    board::{self, Before, Change, Cursor},
};
use crate::{
    error::{Kind, Result},
    store::Pulse,
};

/// Between two looks at the table's count of commits.
const LOOK: Duration = Duration::from_millis(250);
/// States change by themselves, as time goes by.
const LOOK_ANYWAY: Duration = Duration::from_secs(10);
/// A word now and then, so that both sides see when the other is gone.
const KEEP: Duration = Duration::from_secs(15);

struct Watcher {
    page: Arc<Page>,
    since: Cursor,
    before: Before,
    pulse: Option<Pulse>,
    changed: watch::Receiver<u64>,
    looked_at: Option<Instant>,
    said_at: Instant,
    /// What was said of what is in the way.
    trouble: Option<String>,
    has_ended: bool,
    _place: OwnedSemaphorePermit,
}

/// The body of the stream, for one who has seen so much.
pub(super) fn stream(page: Arc<Page>, since: Cursor, place: OwnedSemaphorePermit) -> Body {
    let watcher = Watcher {
        changed: page.changed.subscribe(),
        page,
        since,
        before: Before::default(),
        pulse: None,
        looked_at: None,
        said_at: Instant::now(),
        trouble: None,
        has_ended: false,
        _place: place,
    };
    Body::from_stream(stream::unfold(watcher, |mut watcher| async move {
        let said = watcher.next().await?;
        Some((Ok::<Bytes, Infallible>(said.into()), watcher))
    }))
}

impl Watcher {
    /// The next words for the page; `None` ends the stream.
    async fn next(&mut self) -> Option<String> {
        while !self.has_ended {
            if self.looked_at.is_some() {
                let stop = self.page.stop.clone();
                tokio::select! {
                    () = stop.cancelled() => return None,
                    () = sleep(LOOK) => {}
                    _ = self.changed.changed() => self.pulse = None,
                }
            }
            let said = if self.has_news().await { self.look().await } else { None };
            if let Some(said) = said {
                self.said_at = Instant::now();
                return Some(said);
            }
            if self.said_at.elapsed() >= KEEP {
                self.said_at = Instant::now();
                return Some(": still here\n\n".to_owned());
            }
        }
        None
    }

    async fn has_news(&mut self) -> bool {
        let pulse = self.page.queue.desk().await.pulse();
        let is_other = pulse.is_none() || pulse != self.pulse;
        // Of before the look, so that what comes during it is news then.
        self.pulse = pulse;
        is_other || self.looked_at.is_none_or(|at| at.elapsed() >= LOOK_ANYWAY)
    }

    async fn look(&mut self) -> Option<String> {
        let (since, before) = (&mut self.since, &mut self.before);
        let found: Result<Option<Change>> =
            self.page.look(|cx| board::changes(cx, since, before)).await;
        let is_first = self.looked_at.replace(Instant::now()).is_none();
        match found {
            Ok(Some(Change::All)) => {
                self.has_ended = true;
                Some(event("again", &Value::Null))
            }
            // The table is gone; one that was never there is not news.
            Ok(None) if self.since != Cursor::default() => {
                self.has_ended = true;
                Some(event("again", &Value::Null))
            }
            Ok(Some(Change::Some(change))) => {
                self.trouble = None;
                Some(event("change", &change))
            }
            Ok(_) if self.trouble.take().is_some() || is_first => Some(event("change", &json!({}))),
            Ok(_) => None,
            // Another program is in the way for a moment.
            Err(err) if matches!(err.kind(), Kind::Busy | Kind::NeedsWrite) => {
                self.pulse = None;
                None
            }
            Err(err) => {
                let told = err.to_string();
                let is_new = self.trouble.as_ref() != Some(&told);
                self.trouble = Some(told);
                is_new.then(|| event("trouble", &super::as_json(&err)))
            }
        }
    }
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}
