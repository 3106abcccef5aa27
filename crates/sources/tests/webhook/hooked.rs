//! What becomes of a delivery.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use serde_json::{Value, json};
use watchkeeper_core::contract::{Memory, World, check};
use watchkeeper_core::{
    Capabilities, Document, Error, Event, Feed, Follow, Freshness, Key, Order, Source, Start, Version,
};
use watchkeeper_informer::{Informer, Subscription};
use watchkeeper_sources::channel::{Channel, Sender, channel};
use watchkeeper_sources::files::Files;
use watchkeeper_sources::http::Http;
use watchkeeper_sources::webhook::Payload;

use crate::sender::Shop;
use crate::service::Service;

/// A source that has to be asked: what changes in it is seen in the next snapshot only.
#[derive(Clone)]
pub(crate) struct Polled {
    channel: Channel,
    interval: Duration,
    opened: Arc<AtomicUsize>,
}

impl Polled {
    pub(crate) fn new(interval: Duration) -> (Sender, Self) {
        let (sender, channel) = channel("orders");
        (sender, Self { channel, interval, opened: Arc::default() })
    }

    fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }
}

impl Source for Polled {
    fn name(&self) -> &str {
        "orders"
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.channel.capabilities();
        capabilities.follow = Follow::Poll(self.interval);
        capabilities
    }

    fn open(&self, start: Start) -> Feed {
        self.opened.fetch_add(1, Ordering::Relaxed);
        Box::pin(until_complete(self.channel.open(start)))
    }
}

/// Ends a feed with its snapshot.
fn until_complete(feed: Feed) -> impl Stream<Item = Result<Event, Error>> + Send {
    stream::unfold(Some(feed), |feed| async {
        let mut feed = feed?;
        let event = feed.next().await?;
        let last = matches!(event, Ok(Event::Complete(_)) | Err(_));
        Some((event, (!last).then_some(feed)))
    })
}

fn key(name: &str) -> Key {
    Key::new(None, name)
}

pub(crate) async fn until_value(changes: &mut Subscription<Value>, name: &str, value: &Value) {
    loop {
        let change = tokio::time::timeout(Duration::from_secs(30), changes.next()).await.unwrap().unwrap();
        if change.key == key(name) && change.new.is_some_and(|object| object.get().unwrap()["v"] == *value) {
            return;
        }
    }
}

#[tokio::test]
async fn a_delivery_makes_the_other_source_be_read_again() {
    let shop = Shop::standard();
    let (sender, polled) = Polled::new(Duration::from_secs(3600));
    sender.put(&key("a"), &json!({"v": 1})).unwrap();
    let informer = Informer::<Value>::builder().start(shop.receiver.hints_for(polled.clone()));
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    sender.put(&key("a"), &json!({"v": 2})).unwrap();
    assert_eq!(shop.deliver("1", r#"{"whatever": "it says"}"#).await, 202);
    until_value(&mut changes, "a", &json!(2)).await;
    assert_eq!(polled.opened(), 2);

    // Many at once are one reason to look, and what is not believed is none.
    sender.put(&key("a"), &json!({"v": 3})).unwrap();
    let deliveries = (0..20).map(|number| {
        let shop = &shop;
        async move { shop.deliver(&format!("many-{number}"), "{}").await }
    });
    futures_util::future::join_all(deliveries).await;
    shop.send("POST", "", "{}").await;
    until_value(&mut changes, "a", &json!(3)).await;
    assert!(polled.opened() <= 12, "{}", polled.opened());
}

#[tokio::test]
async fn a_delivery_that_was_lost_is_made_up_for_at_the_interval() {
    let shop = Shop::standard();
    let (sender, polled) = Polled::new(Duration::from_millis(20));
    let informer = Informer::<Value>::builder().start(shop.receiver.hints_for(polled));
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    sender.put(&key("a"), &json!({"v": 1})).unwrap();
    until_value(&mut changes, "a", &json!(1)).await;
}

pub(crate) fn payload() -> Payload {
    Payload {
        object: "/data".into(),
        key: "/id".into(),
        version: "/v".into(),
        deleted: Some("/deleted".into()),
    }
}

#[tokio::test]
async fn a_delivery_with_a_version_is_a_state_unless_a_newer_one_is_known() {
    let shop = Shop::standard();
    let (sender, polled) = Polled::new(Duration::from_secs(3600));
    sender.put(&key("a"), &json!({"id": "a", "v": 5})).unwrap();
    sender.put(&key("still"), &json!({"id": "still", "v": 1})).unwrap();
    let informer = Informer::<Value>::builder().start(shop.receiver.states_of(polled.clone(), payload()));
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    let state = |id: &str, version: u64| json!({"data": {"id": id, "v": version}}).to_string();
    shop.deliver("1", &state("a", 7)).await;
    until_value(&mut changes, "a", &json!(7)).await;
    // Older ones that were late change nothing; what comes after them shows that they were passed over.
    shop.deliver("2", &state("a", 6)).await;
    shop.deliver("3", &state("a", 4)).await;
    shop.deliver("4", &state("b", 1)).await;
    until_value(&mut changes, "b", &json!(1)).await;
    assert_eq!(informer.store().get(&key("a")).unwrap().get().unwrap()["v"], 7);
    shop.deliver("5", &json!({"data": {"id": "a", "v": 8}, "deleted": true}).to_string()).await;
    while informer.store().contains(&key("a")) {
        changes.next().await.unwrap();
    }
    assert_eq!(polled.opened(), 1, "nobody had to be asked");
    assert!(informer.store().contains(&key("still")));

    // In the end, the other source has the last word: it knows nothing of these states.
    until_value(&mut changes, "a", &json!(5)).await;
    while informer.store().contains(&key("b")) {
        changes.next().await.unwrap();
    }
}

struct Hooks(Memory, Shop);

impl World for Hooks {
    fn source(&self) -> impl Source {
        self.1.receiver.hints_for(self.0.clone())
    }

    async fn put(&self, name: &str, value: u64) {
        World::put(&self.0, name, value).await;
    }

    async fn delete(&self, name: &str) {
        World::delete(&self.0, name).await;
    }

    async fn expire(&self) -> bool {
        World::expire(&self.0).await
    }

    async fn corrupt(&self, name: &str) -> bool {
        World::corrupt(&self.0, name).await
    }
}

/// Documents in a directory.
struct HookedFiles {
    directory: tempfile::TempDir,
    shop: Shop,
}

impl HookedFiles {
    fn write(&self, name: &str, value: &str) {
        let text = format!("apiVersion: e.com/v1\nkind: Order\nmetadata: {{name: {name}}}\nvalue: {value}\n");
        std::fs::write(self.directory.path().join(".new"), text).unwrap();
        std::fs::rename(self.directory.path().join(".new"), self.path(name)).unwrap();
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(format!("{name}.yaml"))
    }
}

impl World for HookedFiles {
    fn source(&self) -> impl Source {
        let files = Files::directory(self.directory.path()).kind("e.com/v1", "Order");
        self.shop.receiver.hints_for(files.status_directory(self.directory.path().join(".status")))
    }

    async fn put(&self, name: &str, value: u64) {
        self.write(name, &value.to_string());
    }

    async fn delete(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap();
    }

    async fn expire(&self) -> bool {
        false
    }

    async fn corrupt(&self, name: &str) -> bool {
        self.write(name, "[");
        true
    }

    fn has_statuses(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_hooked_source_holds_the_contract_of_the_other_one() {
    for (follow, promises) in
        [(Follow::Hints, 6), (Follow::Log, 8), (Follow::Poll(Duration::from_millis(5)), 6)]
    {
        let kept = check(&Hooks(Memory::following(follow), Shop::standard())).await.unwrap();
        assert_eq!(kept.len(), promises, "{follow:?}: {kept:?}");
    }
    let files = HookedFiles { directory: tempfile::tempdir().unwrap(), shop: Shop::standard() };
    let kept = check(&files).await.unwrap();
    assert_eq!(kept.len(), 6, "{kept:?}");
}

/// A list that is asked for once an hour, of a service that tells of each change with the new state. Its values are versions, too.
struct Telling {
    service: Service,
    shop: Shop,
    version: AtomicU64,
    /// The object that cannot be read. As long as there is one, the service says that something changed and not what: the list has to be read,
    /// which says so of the object.
    corrupt: Mutex<Option<String>>,
}

impl Telling {
    fn next(&self) -> u64 {
        self.version.fetch_add(1, Ordering::Relaxed)
    }

    async fn tell(&self, object: Value, deleted: bool) {
        let id = format!("delivery-{}", self.next());
        let status = self.shop.deliver(&id, &json!({"data": object, "deleted": deleted}).to_string()).await;
        assert_eq!(status, 202);
    }
}

impl World for Telling {
    fn source(&self) -> impl Source {
        let list = Http::get(&self.service.url("/items")).items("/items").key("/id");
        self.shop.receiver.states_of(
            list.interval(Duration::from_secs(3600)),
            Payload { version: "/value".into(), ..payload() },
        )
    }

    async fn put(&self, name: &str, _: u64) {
        let version = self.next();
        self.service.put(name, version);
        self.corrupt.lock().unwrap().take_if(|corrupt| corrupt == name);
        let id = if self.corrupt.lock().unwrap().is_some() { "di" } else { "id" };
        self.tell(json!({id: name, "value": version}), false).await;
    }

    async fn delete(&self, name: &str) {
        self.service.remove(name);
        self.tell(json!({"id": name, "value": self.next()}), true).await;
    }

    async fn expire(&self) -> bool {
        false
    }

    async fn corrupt(&self, name: &str) -> bool {
        self.service.corrupt(name);
        *self.corrupt.lock().unwrap() = Some(name.to_owned());
        self.tell(json!({"di": name, "value": self.next()}), false).await;
        true
    }

    async fn cut(&self) -> bool {
        self.service.lock().cut = true;
        true
    }

    async fn mend(&self) {
        self.service.lock().cut = false;
    }
}

#[tokio::test]
async fn a_source_whose_states_are_delivered_holds_the_contract() {
    let telling = Telling {
        service: Service::start().await,
        shop: Shop::standard(),
        version: AtomicU64::new(1),
        corrupt: Mutex::default(),
    };
    let kept = check(&telling).await.unwrap();
    assert_eq!(kept.len(), 6, "{kept:?}");
}

/// A source of what it is given: once, and then of nothing.
struct Given(Mutex<Option<Feed>>);

impl Source for Given {
    fn name(&self) -> &str {
        "given"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Order::Opaque, Follow::Hints)
    }

    fn open(&self, _: Start) -> Feed {
        self.0.lock().unwrap().take().unwrap_or_else(|| Box::pin(stream::pending()))
    }
}

#[tokio::test]
async fn an_older_delivery_that_comes_while_a_list_is_read_does_not_undo_what_the_list_says() {
    let shop = Shop::standard();
    let (give, given) = tokio::sync::mpsc::unbounded_channel::<Event>();
    let given = stream::unfold(given, |mut given| async { Some((Ok(given.recv().await?), given)) });
    let source = shop.receiver.states_of(Given(Mutex::new(Some(Box::pin(given)))), payload());
    let mut feed = source.open(Start::Snapshot(Freshness::Newest));
    let state = |id: &str, version: u64| json!({"id": id, "v": version});
    let item = |id: &str, version: u64| {
        Event::Item(Document::named(key(id), Version::from(version), state(id, version).to_string().into()))
    };
    let mut told = async || match feed.next().await.unwrap().unwrap() {
        Event::Item(document) | Event::Put { document, .. } => {
            String::from_utf8(document.body.into()).unwrap()
        }
        other => format!("{other:?}").chars().take(8).collect(),
    };
    give.send(Event::Begin).unwrap();
    give.send(item("early", 1)).unwrap();
    assert_eq!(told().await, "Begin");
    assert_eq!(told().await, r#"{"id":"early","v":1}"#);
    for (number, (id, version)) in [("a", 5), ("early", 2), ("early", 3)].into_iter().enumerate() {
        shop.deliver(&number.to_string(), &json!({"data": state(id, version)}).to_string()).await;
    }
    give.send(item("a", 6)).unwrap();
    give.send(Event::Complete(Version::from(1))).unwrap();
    assert_eq!(told().await, r#"{"id":"a","v":6}"#);
    assert_eq!(told().await, "Complete");
    shop.deliver("last", &json!({"data": state("b", 1)}).to_string()).await;
    let mut all = Vec::new();
    while all.last().is_none_or(|last| last != r#"{"id":"b","v":1}"#) {
        all.push(told().await);
    }
    // Only what the list had before it was delivered.
    assert_eq!(all, [r#"{"id":"early","v":3}"#, r#"{"id":"b","v":1}"#]);
}
