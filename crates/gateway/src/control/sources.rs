use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kube_core::discovery::ApiResource;
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use watchkeeper_connection::Connection;
use watchkeeper_core::{Error, Freshness, Key, Source};
use watchkeeper_informer::{Entry, Informer, InformerMetrics, Object};
use watchkeeper_sources::kubernetes::Kubernetes;
use watchkeeper_supervision::Supervisor;

use super::{From, SourceView};
use crate::compile::ai::PROVIDER_KEY;
use crate::compile::{Place, REMEMBERED, source_number};
use crate::object::{InputKind, ObjectId};

/// How long after something can be read again its objects may take to be told.
const MENDED: Duration = Duration::from_secs(1);
/// How many entries of a journal may wait.
const WAITING: usize = 1_024;

/// Which informer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Follower(usize);

impl Follower {
    /// Its place among all.
    pub(super) fn index(self) -> usize {
        self.0
    }
}

/// What an informer has to say.
pub(super) enum News {
    /// An object is another, or is gone.
    Changed(Follower, Key, Option<Object<Value>>),
    /// Something could not be read: where, if that is known, and why.
    Rejected(Follower, Option<Key>, String),
    /// What could not be read can be now, or is gone.
    Mended(Follower, Key),
    /// Everything was told once.
    Synced(Follower),
    /// The source failed.
    Failed(Follower, String),
}

/// The sources of a gateway, and how they are.
pub(super) struct Sources {
    followers: Vec<Following>,
    names: Vec<String>,
    /// What came from the state file, until its source has spoken of it, or has told everything.
    remembered: HashMap<Place, ObjectId>,
    /// What sources have and cannot be read, and since when it can be.
    doubts: HashMap<Place, Option<Instant>>,
    /// The sources whose objects the state file has.
    stored: Vec<usize>,
    tasks: Vec<JoinHandle<()>>,
}

struct Following {
    number: usize,
    /// The kind, if it is of a cluster.
    kind: Option<InputKind>,
    source: Arc<dyn Source>,
    informer: Informer<Value>,
    synced: bool,
    error: Option<String>,
}

impl Sources {
    pub(super) fn start(from: Vec<From>, news: &mpsc::Sender<News>, supervisor: &Supervisor) -> Self {
        let mut sources = Self {
            followers: Vec::new(),
            names: Vec::new(),
            remembered: HashMap::new(),
            doubts: HashMap::new(),
            stored: Vec::new(),
            tasks: Vec::new(),
        };
        let metrics = InformerMetrics::register(&mut Registry::default()).supervised_by(supervisor);
        let follow = |sources: &mut Self, number, kind, source| {
            sources.follow(number, kind, source, news, &metrics, supervisor);
        };
        for (number, from) in from.into_iter().enumerate() {
            match from {
                From::Source(source) => {
                    sources.names.push(source.name().to_owned());
                    follow(&mut sources, number, None, source);
                }
                From::Kubernetes(connection) => {
                    sources.names.push("kubernetes".to_owned());
                    for kind in InputKind::ALL {
                        follow(&mut sources, number, Some(kind), Arc::new(resource(&connection, kind)));
                    }
                    let keys =
                        resource(&connection, InputKind::Secret).fields(&format!("type={PROVIDER_KEY}"));
                    follow(&mut sources, number, Some(InputKind::Secret), Arc::new(keys));
                }
            }
        }
        sources
    }

    fn follow(
        &mut self,
        number: usize,
        kind: Option<InputKind>,
        source: Arc<dyn Source>,
        news: &mpsc::Sender<News>,
        metrics: &InformerMetrics,
        supervisor: &Supervisor,
    ) {
        let follower = Follower(self.followers.len());
        let (journal, entries) = mpsc::channel(WAITING);
        let informer = Informer::<Value>::builder()
            .name(source.name())
            .first_snapshot(Freshness::Newest)
            .metrics(metrics)
            .journal(journal)
            .start(Arc::clone(&source));
        // A cluster need not have the kinds of Gateway API.
        let may_lack = kind.is_some_and(InputKind::is_optional);
        let (supervisor, task) = (supervisor.clone(), format!("source {}", source.name()));
        let reading = (follower, entries, news.clone());
        self.tasks.push(tokio::spawn(async move {
            supervisor
                .run_with(&task, reading, move |(follower, entries, news)| {
                    Box::pin(read(*follower, may_lack, entries, news))
                })
                .await;
        }));
        self.followers.push(Following { number, kind, source, informer, synced: false, error: None });
    }

    /// The number of the source that an informer follows.
    pub(super) fn number(&self, follower: Follower) -> usize {
        self.followers.get(follower.0).map_or(0, |following| following.number)
    }

    /// The key of an object among all kinds of its source.
    pub(super) fn place(&self, follower: Follower, key: &Key) -> Key {
        match self.kind(follower) {
            Some(kind) => Key::new(Some(kind.names().2), &key.to_string()),
            None => key.clone(),
        }
    }

    /// The kind of the objects that an informer follows, if it is of a cluster. There, an object is called as its key says.
    pub(super) fn kind(&self, follower: Follower) -> Option<InputKind> {
        self.followers.get(follower.0).and_then(|following| following.kind)
    }

    /// Which informer tells of the objects of a kind that a source has.
    pub(super) fn follower(&self, number: usize, kind: InputKind) -> Option<Follower> {
        let tells = |following: &Following| {
            following.number == number && following.kind.is_none_or(|told| told == kind)
        };
        self.followers.iter().position(tells).map(Follower)
    }

    /// The name of the source that an informer follows.
    pub(super) fn name(&self, follower: Follower) -> &str {
        self.followers.get(follower.0).map_or("", |following| following.source.name())
    }

    /// An object in words.
    pub(super) fn shown(&self, follower: Follower, key: &Key) -> String {
        format!("{}: {key}", self.name(follower))
    }

    pub(super) fn handles(&self) -> Vec<Arc<dyn Source>> {
        self.followers.iter().map(|following| Arc::clone(&following.source)).collect()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    pub(super) fn synced(&mut self, follower: Follower) {
        if let Some(following) = self.followers.get_mut(follower.0) {
            (following.synced, following.error) = (true, None);
        }
    }

    pub(super) fn failed(&mut self, follower: Follower, reason: String) {
        let Some(following) = self.followers.get_mut(follower.0) else { return };
        if following.error.as_ref() != Some(&reason) {
            tracing::warn!("{}: {reason}", following.source.name());
            following.error = Some(reason);
        }
    }

    /// Whether all sources have told everything once.
    pub(super) fn is_synced(&self) -> bool {
        self.followers.iter().all(|following| following.synced)
    }

    /// Whether all that may protect a route was told, by its source or the state file.
    pub(super) fn has_policies(&self) -> bool {
        self.followers.iter().all(|following| !self.is_awaited(following))
    }

    /// Whether an informer may yet tell of something that protects a route.
    fn is_awaited(&self, following: &Following) -> bool {
        following.kind.is_none_or(InputKind::protects)
            && !following.synced
            && !self.stored.contains(&following.number)
    }

    pub(super) fn views(&self) -> Vec<SourceView> {
        let view = |following: &Following| SourceView {
            name: following.source.name().to_owned(),
            synced: following.synced,
            stored: self.stored.contains(&following.number),
            awaited: self.is_awaited(following),
            error: following.error.clone(),
        };
        self.followers.iter().map(view).collect()
    }

    /// Notes that the state file has the objects of these sources.
    pub(super) fn set_stored(&mut self, stored: Vec<usize>) {
        self.stored = stored;
    }

    /// Notes that an object came from the state file.
    pub(super) fn remember(&mut self, place: &Place, id: &ObjectId) {
        self.remembered.insert(place.clone(), id.clone());
    }

    /// Notes that a source has something that cannot be read.
    pub(super) fn doubt(&mut self, place: Place) {
        self.doubts.insert(place, None);
    }

    /// Notes that something can be read again, or is gone. Its objects are told after that, if there are any.
    pub(super) fn mended(&mut self, follower: Follower, key: &Key) {
        if self.doubts.is_empty() {
            return;
        }
        let place = (self.number(follower), self.place(follower, key));
        if let Some(since) = self.doubts.get_mut(&place) {
            since.get_or_insert_with(Instant::now);
        }
    }

    /// Forgets what was mended long enough ago for all of its objects to be told. Says whether there was anything.
    pub(super) fn forget_mended(&mut self) -> bool {
        let before = self.doubts.len();
        self.doubts.retain(|_, since| since.is_none_or(|since| since.elapsed() < MENDED));
        self.doubts.len() != before
    }

    /// What the state file has of a place of which its source has spoken.
    pub(super) fn take_told(&mut self, (number, key): &Place) -> Option<(Place, ObjectId)> {
        if self.remembered.is_empty() {
            return None;
        }
        self.remembered.remove_entry(&(REMEMBERED + number, key.clone()))
    }

    /// The objects of the state file whose sources have told everything: what they did not tell of is gone, unless it may be what they
    /// have and cannot be read.
    pub(super) fn take_replaced(&mut self) -> Vec<(Place, ObjectId)> {
        let is_synced = |number: usize| {
            self.followers
                .iter()
                .filter(|following| following.number == number)
                .all(|following| following.synced)
        };
        // A file that is no YAML does not say which objects it has.
        let is_vague = |(number, key): &&Place| {
            let mut followers = self.followers.iter().filter(|following| following.number == *number);
            followers.any(|following| following.kind.is_none())
                && !self.remembered.contains_key(&(REMEMBERED + number, key.clone()))
        };
        let vague: HashSet<usize> = self.doubts.keys().filter(is_vague).map(|(number, _)| *number).collect();
        let is_replaced = |place: &Place| {
            let number = source_number(place);
            is_synced(number)
                && !vague.contains(&number)
                && !self.doubts.contains_key(&(number, place.1.clone()))
        };
        let replaced: Vec<Place> =
            self.remembered.keys().filter(|place| is_replaced(place)).cloned().collect();
        replaced
            .into_iter()
            .filter_map(|place| self.remembered.remove(&place).map(|id| (place, id)))
            .collect()
    }

    pub(super) async fn stop(&mut self) {
        for task in self.tasks.drain(..) {
            task.abort();
        }
        for following in &self.followers {
            following.informer.stop().await;
        }
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// A kind of a cluster. Of Secrets, only those with certificates.
fn resource(connection: &Connection, kind: InputKind) -> Kubernetes {
    let (api_version, name, plural) = kind.names();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: name.to_owned(),
        plural: plural.to_owned(),
    };
    // What nobody reads here is not kept: what was applied last is as large as an object.
    let dropped = [
        "/metadata/annotations",
        "/metadata/finalizers",
        "/metadata/ownerReferences",
        "/metadata/resourceVersion",
        "/metadata/uid",
    ];
    let source = Kubernetes::resource(connection.clone(), &resource);
    let source = dropped.into_iter().fold(source, Kubernetes::drop);
    match kind {
        InputKind::Secret => source.fields("type=kubernetes.io/tls"),
        _ => source,
    }
}

/// Makes news of the entries of a journal.
async fn read(
    follower: Follower,
    may_lack: bool,
    entries: &mut mpsc::Receiver<Entry<Value>>,
    news: &mpsc::Sender<News>,
) {
    while let Some(entry) = entries.recv().await {
        let piece = match entry {
            // It is decoded when it is its turn: trees of all that waits would take more memory than all else.
            Entry::Changed(change) => News::Changed(follower, change.key, change.new),
            Entry::Complete(_) | Entry::Resumed => News::Synced(follower),
            Entry::Rejected(rejection) => News::Rejected(follower, rejection.key, rejection.detail),
            Entry::Mended(key) => News::Mended(follower, key),
            Entry::Interrupted { error: Some(Error::Missing(_)), .. } if may_lack => News::Synced(follower),
            Entry::Interrupted { error: Some(error), .. } => News::Failed(follower, error.to_string()),
            _ => continue,
        };
        if news.send(piece).await.is_err() {
            return;
        }
    }
}
