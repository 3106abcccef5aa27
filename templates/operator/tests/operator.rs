//! The operator against an API server in this process. Time is virtual: waiting takes none.

use gadget_operator::{Gadget, GadgetSpec, operator};
use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper::prelude::*;
use watchkeeper::runtime::{Description, Running};
use watchkeeper_testkit::{TestEnv, consistently, eventually};

const NAME: &str = "gadget-operator";

/// A server with the operator, and somebody who uses it.
struct World {
    env: TestEnv,
    description: Description,
    operator: Running,
    user: Client,
}

impl World {
    /// The operator may do what it describes, and nothing else: as it will in a cluster.
    async fn start() -> Self {
        let env = TestEnv::builder().with_roles().start().await;
        let description = operator(Manager::from_environment(NAME)).description();
        let manager = Manager::new(NAME, env.connection_for(&description).await);
        let operator = operator(manager).start().await.unwrap();
        operator.ready().await;
        let user = Client::new(env.connection());
        Self {
            env,
            description,
            operator,
            user,
        }
    }

    /// What the ConfigMap says, if there is one.
    async fn message(&self) -> Option<String> {
        let map = self.user.live().get::<ConfigMap>(&map()).await.unwrap()?;
        map.data.as_ref()?.get("message").cloned()
    }

    /// Whether the condition `Ready` is true.
    async fn is_ready(&self) -> bool {
        let object = self.user.live().get::<Gadget>(&key()).await.unwrap();
        let status = object
            .and_then(|object| object.status.clone())
            .unwrap_or_default();
        let mut conditions = status.conditions.iter();
        conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
    }

    async fn create(&self) {
        self.user.create(&object("hello")).await.unwrap();
        eventually(|| async { self.message().await.as_deref() == Some("hello") }).await;
        eventually(|| self.is_ready()).await;
    }
}

/// Where the tests have their Gadget.
fn key() -> Key {
    // <!cluster>
    Key::new(Some("default"), "one")
    // </!cluster>
    // <cluster>
    //= Key::new(None, "one")
    // </cluster>
}

/// Where its ConfigMap is.
fn map() -> Key {
    Key::new(Some("default"), "one")
}

fn object(message: &str) -> Gadget {
    let spec = GadgetSpec {
        message: message.into(),
        // <cluster>
        //= namespace: "default".into(),
        // </cluster>
    };
    // <!cluster>
    let mut object = Gadget::new("one", spec);
    object.metadata.namespace = Some("default".into());
    object
    // </!cluster>
    // <cluster>
    //= Gadget::new("one", spec)
    // </cluster>
}

#[tokio::test(start_paused = true)]
async fn creates_and_follows() {
    let world = World::start().await;
    world.create().await;
    let change = |object: &mut Gadget| object.spec.message = "changed".into();
    world.user.modify(&key(), change).await.unwrap();
    eventually(|| async { world.message().await.as_deref() == Some("changed") }).await;
    world.operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn puts_back_what_drifts() {
    let world = World::start().await;
    world.create().await;
    let edit = |map: &mut ConfigMap| map.data = Some([("message".into(), "edited".into())].into());
    world.user.modify(&map(), edit).await.unwrap();
    eventually(|| async { world.message().await.as_deref() == Some("hello") }).await;
    world.user.delete_key::<ConfigMap>(&map()).await.unwrap();
    eventually(|| async { world.message().await.as_deref() == Some("hello") }).await;
    world.operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn is_quiet_when_nothing_changes() {
    let world = World::start().await;
    world.create().await;
    let before = world.env.request_count();
    let writes = || {
        world
            .env
            .count(|seen| seen.call.number > before && seen.call.is_write())
    };
    // Events about what happened before may still come.
    consistently(|| async { writes() == 0 }).await;
    world.operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deletes_with_its_owner() {
    let world = World::start().await;
    world.create().await;
    world.user.delete_key::<Gadget>(&key()).await.unwrap();
    eventually(|| async {
        let is_gone = world
            .user
            .live()
            .get::<Gadget>(&key())
            .await
            .unwrap()
            .is_none();
        is_gone && world.message().await.is_none()
    })
    .await;
    world.operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn asks_for_no_right_that_it_does_not_use() {
    let world = World::start().await;
    world.create().await;
    world.user.delete_key::<Gadget>(&key()).await.unwrap();
    eventually(|| async { world.message().await.is_none() }).await;
    world.operator.stop().await;
    // Of some rights not all verbs are used: what is read once is not read again. Of each at least one is.
    let unused = world.env.unused_rights(&world.description);
    let rights: Vec<_> = world.description.rights.iter().cloned().collect();
    let for_nothing: Vec<_> = unused
        .iter()
        .filter(|right| rights.contains(right))
        // Every operator may write events; whether one does is up to what happens.
        .filter(|right| right.resource.plural != "events")
        .collect();
    assert!(for_nothing.is_empty(), "{for_nothing:?}");
}
// <source>

#[tokio::test]
async fn a_file_declares_a_gadget() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.yaml");
    let text = include_str!("../samples/gadget.yaml");
    std::fs::write(&file, text.replace("name: example", "name: one")).unwrap();
    let env = TestEnv::builder().with_roles().start().await;
    let with_folder =
        |manager| operator(manager).controller(gadget_operator::folder(folder.path()));
    let description = with_folder(Manager::from_environment(NAME)).description();
    let manager = with_folder(Manager::new(NAME, env.connection_for(&description).await));
    let running = manager.start().await.unwrap();
    let user = Client::new(env.connection());
    eventually(|| async { user.live().get::<ConfigMap>(&map()).await.unwrap() }).await;
    std::fs::remove_file(&file).unwrap();
    eventually(|| async { user.live().get::<Gadget>(&key()).await.unwrap().is_none() }).await;
    running.stop().await;
}
// </source>
// <webhook>

/// Webhooks are asked over a socket, so that time is real here.
#[tokio::test]
async fn what_is_stored_was_asked_about() {
    let env = TestEnv::builder().with_roles().start().await;
    let whole = |manager| gadget_operator::webhooks(operator(manager));
    let description = whole(Manager::from_environment(NAME)).description();
    let manager = whole(Manager::new(NAME, env.connection_for(&description).await));
    let running = manager.start().await.unwrap();
    running.ready().await;
    let user = Client::new(env.connection());
    user.create(&object("  hello ")).await.unwrap();
    let stored = user.live().get::<Gadget>(&key()).await.unwrap().unwrap();
    assert_eq!(stored.spec.message, "hello");
    running.stop().await;
}
// </webhook>
