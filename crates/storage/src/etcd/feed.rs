//! What etcd tells, put into the engine.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use watchkeeper_etcd::{
    Change, ChangeKind, Client, Error as EtcdError, KeyValue, Keys, Notice, Range, Watch,
};

use super::mirror::Mirror;
use super::{number, revision, unavailable};
use crate::commit::Operation;
use crate::engine::Engine;
use crate::tree::Tree;
use crate::{Entry, Error, Options, Revision};

/// So many keys are asked for at a time; fewer, if they turn out to be too large for one answer.
const PAGE: i64 = 1000;

/// How long to wait before etcd is asked again.
const SOON: Duration = Duration::from_millis(50);
const AT_MOST: Duration = Duration::from_secs(2);

/// What ends a stretch of following.
enum Ended {
    /// The stream, and nothing else: go on where it ended.
    Lost(String),
    /// What would come next is not known any more: read everything again.
    Behind(String),
}

impl From<EtcdError> for Ended {
    fn from(error: EtcdError) -> Self {
        Self::Lost(error.to_string())
    }
}

/// Reads everything under the prefix, as it was a little while ago if etcd still knows it: the watch tells the rest.
pub(super) async fn start(
    client: &Client,
    prefix: &str,
    lookback: Revision,
    options: Options,
) -> Result<Arc<Mirror>, Error> {
    let head = head(client).await.map_err(|error| unavailable(&error))?;
    for back in [lookback, lookback / 10, 0] {
        let at = head.saturating_sub(back).max(1);
        match snapshot(client, prefix, at).await {
            Ok(tree) => return Ok(Arc::new(Mirror::new(Engine::new(tree, options)))),
            Err(Unread::Etcd(error)) if error.is_compacted() && back > 0 => {}
            Err(Unread::Etcd(error)) => return Err(unavailable(&error)),
            Err(Unread::Key(key)) => {
                return Err(Error::Invalid(format!("{key} in etcd is no key of ours: is the prefix right?")));
            }
        }
    }
    Err(Error::Unavailable { reason: "etcd is compacted more often than it can be read".into() })
}

/// Follows etcd for as long as the storage is open.
pub(super) async fn run(client: Client, prefix: Arc<str>, mirror: Arc<Mirror>) {
    let mut delay = SOON;
    loop {
        let before = mirror.revision();
        let ended = follow(&client, &prefix, &mirror).await;
        let reason = match ended {
            Ended::Lost(reason) => reason,
            Ended::Behind(reason) => {
                tracing::warn!(%reason, "everything is read from etcd again, and all watches end");
                match again(&client, &prefix, &mirror).await {
                    Ok(()) => continue,
                    Err(reason) => reason,
                }
            }
        };
        if mirror.trouble().is_none() {
            tracing::warn!(%reason, "etcd is not followed");
        }
        mirror.in_trouble(Some(reason));
        if mirror.revision() > before {
            delay = SOON;
        }
        tokio::time::sleep(delay.mul_f64(0.5 + fastrand::f64())).await;
        delay = (delay * 2).min(AT_MOST);
    }
}

/// Reads everything anew. Whoever watches has missed something.
async fn again(client: &Client, prefix: &str, mirror: &Mirror) -> Result<(), String> {
    let head = head(client).await.map_err(|error| error.to_string())?;
    let tree = snapshot(client, prefix, head).await.map_err(|unread| match unread {
        Unread::Etcd(error) => error.to_string(),
        Unread::Key(key) => format!("{key} in etcd is no key of ours"),
    })?;
    mirror.engine.replace(tree);
    mirror.reached(head);
    Ok(())
}

/// Watches, from where the mirror is.
async fn follow(client: &Client, prefix: &str, mirror: &Mirror) -> Ended {
    match watch(client, prefix, mirror).await {
        Err(ended) => ended,
        Ok(never) => match never {},
    }
}

async fn watch(client: &Client, prefix: &str, mirror: &Mirror) -> Result<std::convert::Infallible, Ended> {
    // Asked first: of a revision to come, etcd says nothing, for ever.
    let head = head(client).await?;
    let reached = mirror.revision();
    if head < reached {
        return Err(Ended::Behind(format!(
            "etcd is at revision {head}, and was at {reached}: a restored backup?"
        )));
    }
    let mut watcher = client.watcher().await?;
    let keys = Keys::prefix(format!("{prefix}/"));
    watcher.watch(&Watch::of(keys).from(number(reached + 1)).progress()).await?;
    let mut gathered = Vec::new();
    loop {
        let notice = tokio::select! {
            notice = watcher.next() => notice?,
            () = mirror.progress_wanted.notified() => {
                watcher.request_progress().await?;
                continue;
            }
        };
        match notice {
            Notice::Created { .. } => {
                if let Some(reason) = mirror.trouble() {
                    tracing::info!(%reason, "etcd is followed again");
                }
                mirror.in_trouble(None);
            }
            Notice::Changes { changes, complete, .. } => {
                gathered.extend(changes);
                if complete {
                    apply(mirror, prefix, &std::mem::take(&mut gathered))?;
                }
            }
            Notice::Progress { revision: told, .. } => advance(mirror, revision(told)),
            Notice::Cancelled { compacted: Some(oldest), .. } => {
                return Err(Ended::Behind(format!(
                    "what comes after {reached} was compacted, up to {oldest}"
                )));
            }
            Notice::Cancelled { reason, .. } => return Err(Ended::Lost(reason)),
            _ => {}
        }
    }
}

/// Nothing has changed up to this revision.
fn advance(mirror: &Mirror, to: Revision) {
    let mut tree = mirror.engine.now();
    if to > tree.revision() {
        tree.advance(to);
        mirror.engine.publish(tree, Vec::new());
        mirror.reached(to);
    }
}

/// Puts whole revisions of changes into the engine.
fn apply(mirror: &Mirror, prefix: &str, changes: &[Change]) -> Result<(), Ended> {
    let mut tree = mirror.engine.now();
    let mut events = Vec::with_capacity(changes.len());
    for change in changes {
        let at = revision(change.kv.mod_revision);
        if at <= mirror.revision() {
            return Err(Ended::Behind(format!("revision {at} is told a second time")));
        }
        let Some(key) = own_key(prefix, &change.kv.key) else {
            tracing::warn!("a key in etcd that is not a text is not served");
            continue;
        };
        let operation = match change.kind {
            ChangeKind::Put => Operation::Put { key: key.into(), value: change.kv.value.clone() },
            ChangeKind::Delete => Operation::Delete { key: key.into() },
        };
        events.extend(tree.follow(&operation, at));
    }
    if let Some(last) = changes.last() {
        let last = revision(last.kv.mod_revision);
        tree.advance(last);
        mirror.engine.publish(tree, events);
        mirror.reached(last);
    }
    Ok(())
}

/// The newest revision.
async fn head(client: &Client) -> Result<Revision, EtcdError> {
    let found = client.range(&Range::of(Keys::one("\0")).count_only()).await?;
    Ok(revision(found.header.revision))
}

/// Why a snapshot could not be read.
enum Unread {
    Etcd(EtcdError),
    Key(String),
}

/// Everything under the prefix, at a revision.
async fn snapshot(client: &Client, prefix: &str, at: Revision) -> Result<Tree, Unread> {
    let all = Keys::prefix(format!("{prefix}/"));
    let (mut keys, mut limit, mut entries) = (all.clone(), PAGE, Vec::new());
    loop {
        let found = match client.range(&Range::of(keys.clone()).at(number(at)).limit(limit)).await {
            Ok(found) => found,
            Err(EtcdError::TooLarge { .. }) if limit > 1 => {
                limit = (limit / 4).max(1);
                continue;
            }
            Err(error) => return Err(Unread::Etcd(error)),
        };
        for pair in &found.kvs {
            let entry =
                entry(prefix, pair).ok_or_else(|| Unread::Key(pair.key.escape_ascii().to_string()))?;
            entries.push(Arc::new(entry));
        }
        match found.kvs.last() {
            Some(last) if found.more => keys = all.after(&last.key),
            _ => return Ok(Tree::restore(at, entries)),
        }
    }
}

/// An entry as the storage knows it, without the prefix.
pub(super) fn entry(prefix: &str, pair: &KeyValue) -> Option<Entry> {
    Some(Entry {
        key: own_key(prefix, &pair.key)?.into(),
        // A copy of its own: the value is a small part of a large answer, which it would keep alive.
        value: Bytes::copy_from_slice(&pair.value),
        created: revision(pair.create_revision),
        modified: revision(pair.mod_revision),
    })
}

fn own_key<'a>(prefix: &str, key: &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(key.strip_prefix(prefix.as_bytes())?).ok()
}
