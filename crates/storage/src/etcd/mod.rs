//! A storage that several servers share: an etcd cluster, mirrored in memory.
//!
//! Everything under one prefix is held in the engine that the other backends have, fed by one watch (`feed.rs`). So reads, lists
//! and watches cost what they cost with a storage in this process. A commit is a transaction (`transaction.rs`), and is answered when
//! the mirror shows it. A read without a revision asks etcd for no more than the revision it is at, once for all who ask
//! meanwhile (`head.rs`), and waits until the mirror has come so far.

mod compaction;
mod feed;
mod head;
mod importing;
mod layout;
mod leading;
mod lifetimes;
mod mirror;
mod status;
mod transaction;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use watchkeeper_etcd::{Client, Code, Error as EtcdError, TxnDone};
use watchkeeper_supervision::Supervisor;

use crate::{
    Answer, ClusterStats, Commit, Committed, Error, Found, Leadership, Options, Page, Range, Revision, Stats,
    Storage, Watch,
};
pub(crate) use feed::snapshot;
pub(crate) use importing::{check_complete, exists, importing_key};
pub use layout::Layout;
pub(crate) use leading::key as leader_key;

use head::Heads;
use lifetimes::Leases;
use mirror::Mirror;
use transaction::Transaction;

/// Options of an [`Etcd`] storage.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// The prefix of all keys in etcd. Servers that share it share everything.
    pub prefix: String,
    /// How often old revisions are compacted, by whichever of the servers is first: what is kept is from one to two of
    /// these. `None`: somebody else does it.
    pub compaction_interval: Option<Duration>,
    /// So many revisions before the newest one can be asked for right after the start, as far as etcd still has them: clients that come
    /// from another server go on watching here. etcd tells what was before no quicker than a thousand revisions in a tenth of a second, and the start waits for it.
    pub lookback: Revision,
    /// The time for which a read waits for the mirror.
    pub timeout: Duration,
    /// Whether this process may become the one that does what only one should do.
    pub may_lead: bool,
    /// Who has written what is under the prefix. What others have written can only be read: commits are [`Error::Invalid`].
    pub layout: Layout,
    /// Watches over the tasks: `etcd-feed`, `etcd-status`, `etcd-leadership` and `etcd-compaction`.
    pub supervisor: Supervisor,
}

impl Default for EtcdOptions {
    fn default() -> Self {
        Self {
            prefix: "/watchkeeper".to_owned(),
            compaction_interval: Some(Duration::from_secs(300)),
            lookback: 5_000,
            timeout: Duration::from_secs(3),
            may_lead: true,
            layout: Layout::Own,
            supervisor: Supervisor::default(),
        }
    }
}

/// Begins a task, once more after a panic.
type Task = Box<dyn FnMut() -> BoxFuture<'static, ()> + Send>;

/// A storage in an etcd cluster. Any number of them share what has the same prefix.
///
/// Revisions are etcd's: strictly increasing, with gaps where somebody wrote something else. A commit may have as many operations and
/// bytes as etcd allows (`--max-txn-ops` 128, `--max-request-bytes` 1.5 MiB); larger ones are [`Error::TooLarge`].
///
/// While etcd cannot be reached, watches are kept, and told what happened when it can be reached again; reads and commits are
/// [`Error::Unavailable`]. If what happened meanwhile has been compacted, or a backup with older revisions was restored, watches end
/// with [`Error::Lagged`].
pub struct Etcd {
    client: Client,
    mirror: Arc<Mirror>,
    heads: Heads,
    leases: Leases,
    prefix: Arc<str>,
    timeout: Duration,
    commits: AtomicU64,
    leading: watch::Receiver<bool>,
    /// Says that it should not lead any more.
    retiring: watch::Sender<bool>,
    is_own: bool,
    tasks: Vec<JoinHandle<()>>,
}

impl Etcd {
    /// Reads everything under the prefix, and follows it from there.
    ///
    /// Must be called within a tokio runtime, whose tasks then belong to the storage until it is dropped.
    ///
    /// # Errors
    ///
    /// If the cluster does not answer, has a version that says wrong things about progress (before 3.4.31 and 3.5.13), or has
    /// something under the prefix whose key is not a text.
    pub async fn open(client: Client, options: EtcdOptions, storage: Options) -> Result<Self, Error> {
        let status = client.status().await.map_err(|error| match error.is_denied() {
            true => Error::Invalid(format!("etcd refuses this server: {error}")),
            false => unavailable(&error),
        })?;
        if !is_recent(&status.version) {
            return Err(Error::Invalid(format!(
                "etcd {} tells watchers of progress they have not made: use 3.5.13 or newer, or 3.4.31",
                status.version
            )));
        }
        // What is followed is followed from there, too. Any other member does as well, more slowly.
        if status.leader != status.header.member
            && let Err(error) = client.find_leader().await
        {
            tracing::debug!(%error, "the leader of etcd was not looked for");
        }
        let prefix: Arc<str> = options.prefix.trim_end_matches('/').into();
        check_complete(&client, &prefix).await?;
        let is_own = matches!(options.layout, Layout::Own);
        let place =
            feed::Place { client: client.clone(), prefix: Arc::clone(&prefix), layout: options.layout };
        let mirror = feed::start(&place, options.lookback, storage).await?;
        let (leader, leading) = watch::channel(false);
        let retiring = watch::Sender::new(false);
        let supervised = |name: &'static str, task: Task| {
            let supervisor = options.supervisor.clone();
            tokio::spawn(async move { supervisor.run(name, task).await })
        };
        let feed = {
            let (place, mirror) = (Arc::new(place), Arc::clone(&mirror));
            supervised(
                "etcd-feed",
                Box::new(move || Box::pin(feed::run(Arc::clone(&place), Arc::clone(&mirror)))),
            )
        };
        let status = {
            let (client, mirror) = (client.clone(), Arc::clone(&mirror));
            supervised(
                "etcd-status",
                Box::new(move || status::run(client.clone(), Arc::clone(&mirror)).boxed()),
            )
        };
        let mut tasks = vec![feed, status];
        if options.may_lead && is_own {
            let (client, prefix, leader) = (client.clone(), Arc::clone(&prefix), Arc::new(leader));
            let retiring = retiring.subscribe();
            let lead = move || {
                leading::run(client.clone(), Arc::clone(&prefix), Arc::clone(&leader), retiring.clone())
                    .boxed()
            };
            tasks.push(supervised("etcd-leadership", Box::new(lead)));
        }
        if let Some(interval) = options.compaction_interval.filter(|_| is_own) {
            let client = client.clone();
            let compact = move || compaction::run(client.clone(), interval).boxed();
            tasks.push(supervised("etcd-compaction", Box::new(compact)));
        }
        Ok(Self {
            heads: Heads::new(client.clone()),
            leases: Leases::new(client.clone()),
            client,
            mirror,
            prefix,
            timeout: options.timeout,
            commits: AtomicU64::new(0),
            leading,
            retiring,
            is_own,
            tasks,
        })
    }

    /// The reason why the mirror is not fed at the moment, if so.
    pub fn trouble(&self) -> Option<String> {
        self.mirror.trouble()
    }

    /// Waits until everything that was committed before is in the mirror, by whomever.
    async fn catch_up(&self) -> Result<(), Error> {
        let known = self.mirror.revision();
        let head = self.heads.read().await.map_err(|error| unavailable(&error))?;
        self.mirror.heard_of(head);
        // What is shown was never so, or not any more, until everything has been read again.
        if head < known && self.mirror.revision() > head {
            let reason =
                format!("etcd is at revision {head}, and was at {known}: what was restored is being read");
            return Err(Error::Unavailable { reason });
        }
        self.mirror.wait(head, self.timeout).await
    }

    /// Waits for a revision that the mirror may not have yet; one that etcd does not have either is in the future.
    async fn reach(&self, at: Option<Revision>) -> Result<(), Error> {
        match at {
            None => self.catch_up().await,
            Some(at) if at > self.mirror.revision() => self.catch_up().await,
            Some(_) => Ok(()),
        }
    }

    async fn commit_now(&self, commit: Commit) -> Result<Committed, Error> {
        commit.validate()?;
        if !self.is_own {
            return Err(Error::Invalid("what others have written to etcd is only read".into()));
        }
        let (transaction, answer) = self.send(commit).await?;
        let committed = match answer {
            Ok(done) => transaction.outcome(done)?,
            Err(error @ (EtcdError::Unknown(_) | EtcdError::Protocol(_) | EtcdError::TooLarge { .. })) => {
                self.look_up(&transaction, &error).await?
            }
            Err(error) => {
                let refused = refused(&error);
                if let Error::Full { reason } = &refused {
                    self.mirror.set_full(Some(reason.clone()));
                }
                return Err(refused);
            }
        };
        self.mirror.heard_of(committed.revision);
        self.commits.fetch_add(1, Relaxed);
        // It is durable; if the mirror takes longer, reads wait for it, too.
        let _ = self.mirror.wait(committed.revision, self.timeout).await;
        Ok(committed)
    }

    /// Sends a commit, with a lease if it needs one.
    async fn send(&self, mut commit: Commit) -> Result<(Transaction, Result<TxnDone, EtcdError>), Error> {
        let lifetime = commit.lifetime();
        let mut again = lifetime.is_some();
        loop {
            let lease = match lifetime {
                Some(lifetime) => self.leases.get(lifetime).await.map_err(|error| refused(&error))?,
                None => 0,
            };
            let transaction = Transaction::new(&self.prefix, commit, lease, &self.mirror.engine);
            let client = self.client.clone();
            // A task of its own: what has been sent is not cut off half-way if the caller goes away.
            let sent = tokio::spawn(async move {
                let answer = client.txn(&transaction.txn).await;
                (transaction, answer)
            });
            let (transaction, answer) = sent.await.map_err(|_| Error::Closed)?;
            // The lease was revoked, or is not in a backup that was restored.
            let is_lost = matches!(answer, Err(EtcdError::Refused { code: Code::NOT_FOUND, .. }));
            if !(again && is_lost) {
                return Ok((transaction, answer));
            }
            again = false;
            self.leases.forget(lease).await;
            commit = transaction.commit;
        }
    }

    /// Finds out whether a transaction without an answer has happened. That it has not cannot be known: it may still be under way.
    async fn look_up(&self, transaction: &Transaction, error: &EtcdError) -> Result<Committed, Error> {
        let unknown = || Error::Unknown { reason: error.to_string() };
        self.catch_up().await.map_err(|_| unknown())?;
        transaction.recognise(&self.mirror.engine).ok_or_else(unknown)
    }
}

impl Storage for Etcd {
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> Answer<'a, Found> {
        Box::pin(async move {
            self.reach(at).await?;
            self.mirror.engine.get(key, at)
        })
    }

    fn known<'a>(&'a self, key: &'a str) -> Answer<'a, Found> {
        Box::pin(async move { self.mirror.engine.get(key, None) })
    }

    fn range(&self, range: Range) -> Answer<'_, Page> {
        Box::pin(async move {
            self.reach(range.at).await?;
            self.mirror.engine.range(&range)
        })
    }

    fn commit(&self, commit: Commit) -> Answer<'_, Committed> {
        Box::pin(self.commit_now(commit))
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> Answer<'a, Watch> {
        Box::pin(async move {
            self.reach(Some(after)).await?;
            self.mirror.engine.watch(prefix, after)
        })
    }

    /// Forgets it here; etcd is compacted by the servers together.
    fn compact(&self, to: Revision) -> Answer<'_, ()> {
        Box::pin(async move {
            self.reach(Some(to)).await?;
            self.mirror.engine.compact(to)
        })
    }

    fn pack(&self) -> bool {
        self.mirror.engine.pack()
    }

    fn stats(&self) -> Stats {
        let commits = self.commits.load(Relaxed);
        let cluster = ClusterStats { leading: *self.leading.borrow(), ..self.mirror.stats() };
        Stats { commits, halted: self.trouble(), cluster: Some(cluster), ..self.mirror.engine.stats() }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn expires(&self) -> bool {
        self.is_own
    }

    fn epoch(&self) -> u64 {
        self.mirror.epoch()
    }

    fn leadership(&self) -> Leadership {
        Leadership::of(self.leading.clone())
    }

    fn retire(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.retiring.send_replace(true);
            let mut leading = self.leading.clone();
            // If etcd does not answer, others wait until the lease has run out.
            let _ = tokio::time::timeout(self.timeout, leading.wait_for(|leading| !leading)).await;
        })
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.mirror.engine.close();
    }
}

/// Whether the answers to requests for progress can be believed.
fn is_recent(version: &str) -> bool {
    let mut numbers = version.split(['.', '-', '+']).map(|part| part.parse::<u64>().ok());
    let mut next = || numbers.next().flatten().unwrap_or(0);
    match (next(), next(), next()) {
        (3, 4, patch) => patch >= 31,
        (3, 5, patch) => patch >= 13,
        (major, minor, _) => (major, minor) > (3, 5),
    }
}

/// Nothing happened, and trying again may help.
pub(crate) fn unavailable(error: &EtcdError) -> Error {
    Error::Unavailable { reason: error.to_string() }
}

/// Why a transaction did not happen.
pub(crate) fn refused(error: &EtcdError) -> Error {
    match error {
        error if error.is_no_space() => Error::Full { reason: error.to_string() },
        EtcdError::Refused { message, .. }
            if ["too large", "larger than max", "too many operations"]
                .iter()
                .any(|text| message.contains(text)) =>
        {
            Error::TooLarge(message.clone())
        }
        EtcdError::Refused { code: watchkeeper_etcd::Code::INVALID_ARGUMENT, .. } if !error.is_denied() => {
            Error::Invalid(error.to_string())
        }
        error => unavailable(error),
    }
}

/// Revisions are positive in etcd's messages, too.
fn revision(number: i64) -> Revision {
    Revision::try_from(number).unwrap_or_default()
}

/// A revision as etcd wants it.
fn number(revision: Revision) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_with_wrong_progress_are_told() {
        for (version, recent) in [
            ("3.4.23", false),
            ("3.4.31", true),
            ("3.5.12", false),
            ("3.5.13", true),
            ("3.6.0-rc.1", true),
            ("4.0.0", true),
            ("nonsense", false),
        ] {
            assert_eq!(is_recent(version), recent, "{version}");
        }
    }
}
