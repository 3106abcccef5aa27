//! Ours and the peer, each doing the same work with the same bytes.

use std::fmt::Debug;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::NamespaceResourceScope;
use kube_client::Api;
use kube_core::{Resource, ResourceExt};
use kube_runtime::WatchStreamExt;
use kube_runtime::reflector::{self, Store};
use kube_runtime::watcher::{self, watcher};
use tokio::sync::watch;
use watchkeeper_core::Version;
use watchkeeper_informer::{Informer, Policy, Readable};
use watchkeeper_sources::kubernetes::Kubernetes;

use crate::server::Fixture;

/// What both sides can hold.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Readable + Clone + Debug
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Readable + Clone + Debug
{
}

/// A running client of a fixture, and the switch that lets its log go.
pub struct Ours<K: Kind> {
    /// The informer.
    pub informer: Informer<K>,
    /// Lets the log go.
    pub go: watch::Sender<bool>,
}

/// Starts an informer and waits until it is synced.
pub async fn ours<K: Kind>(fixture: &Arc<Fixture>, policy: Policy) -> Ours<K> {
    let (go, gate) = watch::channel(false);
    let informer = Informer::builder().policy(policy).start(Kubernetes::of::<K>(fixture.connection(gate)));
    if let Err(error) = informer.synced().await {
        panic!("the fixture was not understood: {error}");
    }
    Ours { informer, go }
}

impl<K: Kind> Ours<K> {
    /// Waits until the store has reached the last change.
    pub async fn reach(&self, version: u64) {
        let store = self.informer.store();
        let last = Some(Version::from(version));
        while store.positions()[0] != last {
            tokio::task::yield_now().await;
        }
    }
}

/// The peer's root stream: it has to be polled for anything to happen.
pub struct Peer<K: Kind> {
    /// The reader of its store.
    pub store: Store<K>,
    /// Its events.
    pub events: std::pin::Pin<Box<dyn Stream<Item = watcher::Event<K>> + Send>>,
    /// Lets the log go.
    pub go: watch::Sender<bool>,
}

/// Starts the peer's watcher and reflector, as its documentation shows them.
pub fn peer<K: Kind>(fixture: &Arc<Fixture>) -> Peer<K> {
    let (go, gate) = watch::channel(false);
    let (store, writer) = reflector::store();
    let api: Api<K> = Api::all(fixture.client(gate));
    let events = watcher(api, watcher::Config::default()).default_backoff().reflect(writer);
    Peer { store, events: sound(events), go }
}

/// The same, with subscribers to its shared stream.
pub fn shared_peer<K: Kind>(
    fixture: &Arc<Fixture>,
    subscribers: usize,
) -> (Peer<K>, Vec<impl Stream<Item = Arc<K>> + use<K>>) {
    let (go, gate) = watch::channel(false);
    let (store, writer) = reflector::store_shared(1_024);
    let handles = (0..subscribers).filter_map(|_| writer.subscribe()).collect();
    let api: Api<K> = Api::all(fixture.client(gate));
    let events = watcher(api, watcher::Config::default()).default_backoff().reflect_shared(writer);
    (Peer { store, events: sound(events), go }, handles)
}

fn sound<K: Kind>(
    events: impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + 'static,
) -> std::pin::Pin<Box<dyn Stream<Item = watcher::Event<K>> + Send>> {
    // An expired version is an error of the peer's stream, after which it goes on.
    events.into_stream().filter_map(|event| async { event.ok() }).boxed()
}

impl<K: Kind> Peer<K> {
    /// Polls until a list is complete.
    pub async fn sync(&mut self) {
        while let Some(event) = self.events.next().await {
            if matches!(event, watcher::Event::InitDone) {
                return;
            }
        }
    }

    /// Polls until an object has this version.
    pub async fn reach(&mut self, version: u64) {
        let version = version.to_string();
        while let Some(event) = self.events.next().await {
            if matches!(event, watcher::Event::Apply(object) if object.resource_version().as_ref() == Some(&version))
            {
                return;
            }
        }
    }
}
