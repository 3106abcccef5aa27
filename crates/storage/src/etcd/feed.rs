//! What etcd tells, put into the engine.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join;
use tokio::time::{Instant, sleep_until};
use watchkeeper_etcd::{
    Change, ChangeKind, Client, Error as EtcdError, Found, Header, Keys, Notice, Range, Watch,
};

use super::layout::Layout;
use super::mirror::Mirror;
use super::{number, revision, unavailable};
use crate::commit::Operation;
use crate::engine::Engine;
use crate::tree::Tree;
use crate::{Error, Options, Progress, Revision};

/// So many keys are asked for at a time; fewer, if they turn out to be too large for one answer. For each answer etcd counts all keys that are left, so
/// that small pages of many keys cost more than what is in them.
const PAGE: i64 = 10_000;

/// How often everything is read again that was compacted while it was read.
const ATTEMPTS: usize = 3;

/// How long to wait before etcd is asked again.
const RETRY_DELAY: Duration = Duration::from_millis(50);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);

/// Who was followed for so long is lost for once, and not again and again.
const STEADY: Duration = Duration::from_secs(5);

/// After so much silence, etcd is asked how far it is: a member that is stopped or cut off without a word is noticed, also if nobody reads.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// How often it is asked again. What is asked while the watch catches up is not answered.
const ASK_INTERVAL: Duration = Duration::from_millis(500);

/// How long etcd may leave questions unanswered before another member is asked.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(2);

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

/// What is mirrored: everything under a prefix of a cluster, written in some layout.
pub(super) struct Place {
    pub(super) client: Client,
    pub(super) prefix: Arc<str>,
    pub(super) layout: Layout,
}

/// Reads everything under the prefix, as it was a little while ago if etcd still knows it: the watch tells the rest.
pub(super) async fn start(place: &Place, lookback: Revision, options: Options) -> Result<Arc<Mirror>, Error> {
    let Place { client, prefix, layout } = place;
    let Header { cluster, revision: head, .. } = head(client).await.map_err(|error| unavailable(&error))?;
    let head = revision(head);
    for back in [lookback, lookback / 10, 0] {
        let at = head.saturating_sub(back).max(1);
        match snapshot_at(client, prefix, layout, at, &|_| ()).await {
            Ok(tree) => return Ok(Arc::new(Mirror::new(Engine::new(tree, options), cluster))),
            Err(Unread::Etcd(error)) if error.is_compacted() && back > 0 => {}
            Err(unread) => return Err(unread.into()),
        }
    }
    Err(too_often())
}

/// Reads everything under the prefix, as it is now. `progress` is told how many keys were read.
pub(crate) async fn snapshot(
    client: &Client,
    prefix: &str,
    layout: &Layout,
    progress: Progress<'_>,
) -> Result<Tree, Error> {
    let prefix = prefix.trim_end_matches('/');
    for _ in 0..ATTEMPTS {
        let head = head(client).await.map_err(|error| unavailable(&error))?;
        match snapshot_at(client, prefix, layout, revision(head.revision), progress).await {
            Err(Unread::Etcd(error)) if error.is_compacted() => {}
            read => return Ok(read?),
        }
    }
    Err(too_often())
}

fn too_often() -> Error {
    Error::Unavailable { reason: "etcd is compacted more often than it can be read".into() }
}

/// Follows etcd for as long as the storage is open. After a panic, it is not known how far the mirror is: everything is read again.
pub(super) async fn run(place: Arc<Place>, mirror: Arc<Mirror>) {
    let _unless_it_panics = mirror.fed();
    let mut delay = RETRY_DELAY;
    loop {
        let (before, begun, mut began) = (mirror.revision(), Instant::now(), false);
        let ended = follow(&place, &mirror, &mut began).await;
        let reason = match ended {
            // A member that is lost is no trouble as long as another one answers at once.
            Ended::Lost(reason) if began && begun.elapsed() > STEADY => {
                tracing::info!(%reason, "another member of etcd is followed");
                delay = RETRY_DELAY;
                continue;
            }
            Ended::Lost(reason) => reason,
            Ended::Behind(reason) => {
                tracing::warn!(%reason, "everything is read from etcd again, and all watches end");
                match again(&place, &mirror).await {
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
            delay = RETRY_DELAY;
        }
        tokio::time::sleep(delay.mul_f64(0.5 + fastrand::f64())).await;
        delay = (delay * 2).min(MAX_RETRY_DELAY);
    }
}

/// Reads everything anew. Whoever watches has missed something.
async fn again(place: &Place, mirror: &Mirror) -> Result<(), String> {
    let Place { client, prefix, layout } = place;
    let Header { cluster, revision: head, .. } = head(client).await.map_err(|error| error.to_string())?;
    let tree =
        snapshot_at(client, prefix, layout, revision(head), &|_| ()).await.map_err(
            |unread| match unread {
                Unread::Etcd(error) => error.to_string(),
                Unread::Key(key) => format!("{key} in etcd is no key of ours"),
            },
        )?;
    mirror.replace(tree, cluster);
    Ok(())
}

/// Watches, from where the mirror is; `began` says whether that came about.
async fn follow(place: &Place, mirror: &Mirror, began: &mut bool) -> Ended {
    match watch(place, mirror, began).await {
        Err(ended) => ended,
        Ok(never) => match never {},
    }
}

async fn watch(place: &Place, mirror: &Mirror, began: &mut bool) -> Result<std::convert::Infallible, Ended> {
    let Place { client, prefix, layout } = place;
    if mirror.is_in_doubt() {
        return Err(Ended::Behind("the task that follows etcd panicked".into()));
    }
    // Asked first: of a revision to come, etcd says nothing, for ever.
    let Header { cluster, revision: head, .. } = head(client).await?;
    let (head, reached) = (revision(head), mirror.revision());
    if cluster != mirror.cluster() {
        return Err(Ended::Behind(format!(
            "this is cluster {cluster:x}, and was {:x}: a restored backup?",
            mirror.cluster()
        )));
    }
    if head < reached {
        return Err(Ended::Behind(format!(
            "etcd is at revision {head}, and was at {reached}: a restored backup?"
        )));
    }
    check_last(place, mirror).await?;
    let mut watcher = client.watcher().await?;
    let keys = Keys::prefix(format!("{prefix}/"));
    watcher.watch(&Watch::of(keys).from(number(reached + 1)).progress()).await?;
    let mut gathered = Vec::new();
    // The watch itself is the first question.
    let mut silence = Silence::asked(Instant::now());
    loop {
        let notice = tokio::select! {
            notice = watcher.next() => notice?,
            () = mirror.progress_wanted.notified() => {
                watcher.request_progress().await?;
                silence.ask(Instant::now());
                continue;
            }
            () = sleep_until(silence.until()) => {
                if silence.is_too_long(Instant::now()) {
                    watcher.give_up().await;
                    return Err(Ended::Lost(format!("no answer after {SILENCE_TIMEOUT:?}")));
                }
                watcher.request_progress().await?;
                silence.ask(Instant::now());
                continue;
            }
        };
        silence = Silence::heard(Instant::now());
        match notice {
            Notice::Created { .. } => {
                *began = true;
                if let Some(reason) = mirror.trouble() {
                    tracing::info!(%reason, "etcd is followed again");
                }
                mirror.in_trouble(None);
            }
            Notice::Changes { changes, complete, .. } => {
                gathered.extend(changes);
                if complete {
                    apply(mirror, prefix, layout, &std::mem::take(&mut gathered))?;
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

/// Makes sure that etcd remembers the last change as the mirror does. Who restores a backup and goes on writing before anybody looks has a
/// cluster that is further than the mirror, with another past.
async fn check_last(place: &Place, mirror: &Mirror) -> Result<(), Ended> {
    let Place { client, prefix, layout: Layout::Own } = place else { return Ok(()) };
    let Some(last) = mirror.engine.read().history.last().cloned() else { return Ok(()) };
    let keys = Keys::one([prefix.as_bytes(), last.key().as_bytes()].concat());
    let found = match client.range(&Range::of(keys).at(number(last.revision))).await {
        Ok(found) => found,
        // The watch will say so as well, if it needs what was forgotten.
        Err(error) if error.is_compacted() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let remembered = found.kvs.first().map(|pair| (revision(pair.mod_revision), &pair.value));
    if remembered == last.entry().map(|entry| (entry.modified, &entry.value)) {
        return Ok(());
    }
    Err(Ended::Behind(format!("etcd remembers revision {} otherwise: a restored backup?", last.revision)))
}

/// How long nothing was heard of etcd.
struct Silence {
    /// When the first question was asked that is not answered yet.
    unanswered: Option<Instant>,
    /// When something was heard or asked last.
    last: Instant,
}

impl Silence {
    fn heard(now: Instant) -> Self {
        Self { unanswered: None, last: now }
    }

    fn asked(now: Instant) -> Self {
        Self { unanswered: Some(now), last: now }
    }

    /// Somebody asks something.
    fn ask(&mut self, now: Instant) {
        self.unanswered.get_or_insert(now);
        self.last = now;
    }

    /// When to look again.
    fn until(&self) -> Instant {
        match self.unanswered {
            Some(since) => (self.last + ASK_INTERVAL).min(since + SILENCE_TIMEOUT),
            None => self.last + HEARTBEAT,
        }
    }

    fn is_too_long(&self, now: Instant) -> bool {
        self.unanswered.is_some_and(|since| now >= since + SILENCE_TIMEOUT)
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
fn apply(mirror: &Mirror, prefix: &str, layout: &Layout, changes: &[Change]) -> Result<(), Ended> {
    let mut tree = mirror.engine.now();
    let mut events = Vec::with_capacity(changes.len());
    for change in changes {
        let at = revision(change.kv.mod_revision);
        if at <= mirror.revision() {
            return Err(Ended::Behind(format!("revision {at} is told a second time")));
        }
        let Some(key) = layout.key(prefix, &change.kv.key) else {
            if matches!(layout, Layout::Own) {
                tracing::warn!("a key in etcd that is not a text is not served");
            }
            continue;
        };
        let value = match change.kind {
            ChangeKind::Put => layout.value(prefix, &change.kv.key, &change.kv.value),
            ChangeKind::Delete => None,
        };
        let key = key.as_ref().into();
        let operation = match value {
            Some(value) => Operation::Put { key, value, lifetime: None },
            None => Operation::Delete { key },
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

/// The newest revision, and of which cluster.
async fn head(client: &Client) -> Result<Header, EtcdError> {
    let found = client.range(&Range::of(Keys::one("\0")).count_only()).await?;
    Ok(found.header)
}

/// Why a snapshot could not be read.
enum Unread {
    Etcd(EtcdError),
    Key(String),
}

impl From<Unread> for Error {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::Etcd(error) => unavailable(&error),
            Unread::Key(key) => {
                Self::Invalid(format!("{key} in etcd is no key of ours: is the prefix right?"))
            }
        }
    }
}

/// Everything under the prefix, at a revision.
async fn snapshot_at(
    client: &Client,
    prefix: &str,
    layout: &Layout,
    at: Revision,
    progress: Progress<'_>,
) -> Result<Tree, Unread> {
    let all = Keys::prefix(format!("{prefix}/"));
    let (mut entries, mut read) = (Vec::new(), 0);
    let mut page = page(client, all.clone(), PAGE, at).await?;
    loop {
        let (found, limit) = page;
        // The next page comes while this one is read.
        let next = match found.kvs.last() {
            Some(last) if found.more => Some(self::page(client, all.after(&last.key), limit, at)),
            // Another layout may order its keys in another way.
            _ => None,
        };
        read += found.kvs.len();
        let found = async {
            for pair in &found.kvs {
                match layout.entry(prefix, pair) {
                    Some(entry) => entries.push(Arc::new(entry)),
                    None if matches!(layout, Layout::Own) => {
                        return Err(Unread::Key(pair.key.escape_ascii().to_string()));
                    }
                    None => {}
                }
            }
            progress(read);
            Ok(())
        };
        let Some(next) = next else {
            found.await?;
            return Ok(Tree::gather(at, entries));
        };
        let (next, ()) = try_join(next, found).await?;
        page = next;
    }
}

/// So many keys at a revision, or fewer if they are too large; and how many were asked for in the end.
async fn page(client: &Client, keys: Keys, mut limit: i64, at: Revision) -> Result<(Found, i64), Unread> {
    loop {
        match client.range(&Range::of(keys.clone()).at(number(at)).limit(limit)).await {
            Ok(found) => return Ok((found, limit)),
            Err(EtcdError::TooLarge { .. }) if limit > 1 => limit = (limit / 4).max(1),
            Err(error) => return Err(Unread::Etcd(error)),
        }
    }
}
