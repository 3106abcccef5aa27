//! Every way of writing is seen by the plug-ins, with what it is about.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use watchkeeper_storage::{Memory, Storage};

use super::*;
use crate::conversion::Converter;
use crate::metrics::WebhookMetrics;
use crate::registry::Registrar;
use crate::request::delete_options::DeleteOptions;
use crate::request::media::PatchFormat;
use crate::request::query::Query;
use crate::request::write_options::FieldValidation;
use crate::server::{Options, Server};
use crate::webhook_client::WebhookClient;
use crate::write::{
    Applying, Author, Eviction, Handles, Incoming, Patch, ScaleChange, Subresource, Writer, Written,
};

/// Writes down what it sees, and does what it is told to.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    fn note(&self, phase: &str, attributes: &Attributes<'_>, object: &Value) {
        let (resource, subresource) = (&attributes.target.resource.plural, attributes.subresource);
        let kind = object["kind"].as_str().unwrap_or("nothing");
        let old = attributes.old.map_or("nothing", |old| old["kind"].as_str().unwrap_or("?"));
        let author = if attributes.context.author.client().is_some() { "client" } else { "server" };
        self.0.lock().push(format!(
            "{phase} {:?} {resource}/{subresource}: {kind} for {old} by {author}",
            attributes.verb
        ));
    }

    /// What was seen since the last time.
    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Plugin for Recorder {
    fn handles(&self, _: &Scope<'_>) -> bool {
        true
    }

    fn mutate<'a>(&'a self, attributes: &'a Attributes<'a>, draft: &'a mut Draft) -> Admitted<'a> {
        self.note("mutate", attributes, &draft.object);
        if draft.object["metadata"]["name"] == "marked" {
            draft.object["metadata"]["labels"] = json!({"seen": "yes"});
        }
        done(Ok(()))
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: &'a Value,
        warnings: &'a mut Vec<String>,
    ) -> Admitted<'a> {
        self.note("validate", attributes, object);
        warnings.push("it was seen".to_owned());
        done(match attributes.target.name.as_str() {
            "refused" => Err(attributes.forbidden("the recorder said so")),
            _ => Ok(()),
        })
    }
}

/// Waits for as long as it is told to, before each write of a CRD or a ConfigMap that is called slow.
struct Slow(Arc<Notify>);

impl Plugin for Slow {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        scope.resource.is_crd() || scope.resource.is_core("configmaps")
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        _: &'a Value,
        _: &'a mut Vec<String>,
    ) -> Admitted<'a> {
        Box::pin(async move {
            if attributes.target.name.starts_with("slow") {
                self.0.notified().await;
            }
            Ok(())
        })
    }
}

async fn writer(plugins: Vec<Box<dyn Plugin>>) -> (Arc<Server>, Writer) {
    writer_with(plugins, |server| Arc::clone(&server.registrar)).await
}

async fn writer_with(
    plugins: Vec<Box<dyn Plugin>>,
    registrar: impl Fn(&Server) -> Arc<Registrar>,
) -> (Arc<Server>, Writer) {
    let server = crate::startup::start(
        Arc::new(Memory::new(watchkeeper_storage::Options::default())),
        Options::default(),
    )
    .await
    .unwrap();
    let handles = Handles {
        storage: Arc::clone(&server.storage),
        registrar: registrar(&server),
        access: Arc::clone(&server.access),
        budget: Arc::clone(&server.budget),
        clock: server.options.clock.clone(),
        stopping: server.stopping(),
        webhook_client: client(Arc::clone(&server.storage), &server.registrar),
        converter: Arc::clone(&server.converter),
        webhook_metrics: WebhookMetrics::default(),
        pod_security: PodSecurityConfiguration::default(),
        event_lifetime: server.options.event_lifetime,
    };
    let mut writer = Writer::new(handles, Chosen::default());
    writer.admission = writer.admission.with(plugins);
    (server, writer)
}

/// What calls webhooks.
fn client(storage: Arc<dyn Storage>, registrar: &Arc<Registrar>) -> Arc<WebhookClient> {
    Arc::new(WebhookClient::new(storage, Arc::clone(registrar), std::collections::BTreeMap::new()))
}

struct World {
    server: Arc<Server>,
    writer: Writer,
    recorder: Recorder,
    context: WriteContext,
}

impl World {
    async fn new() -> Self {
        let recorder = Recorder::default();
        let (server, writer) = writer(vec![Box::new(recorder.clone())]).await;
        let author = Author::Client(Arc::new(crate::authentication::Identity::admin()));
        let context = WriteContext { manager: "test".into(), author, ..WriteContext::default() };
        Self { server, writer, recorder, context }
    }

    fn target(&self, group: &str, plural: &str, name: &str) -> ObjectRef {
        let resource = self.server.registry().find(group, "v1", plural).unwrap();
        let namespace = resource.namespaced.then(|| "default".to_owned());
        ObjectRef { resource, namespace, name: name.to_owned() }
    }

    async fn write(
        &self,
        target: ObjectRef,
        subresource: Subresource,
        operation: Operation<'_>,
    ) -> Result<Written, StatusError> {
        let context = &self.context;
        self.writer.write(WriteRequest { target, subresource, operation, context }).await
    }

    async fn create(&self, group: &str, plural: &str, object: Value) -> Result<Written, StatusError> {
        let target = self.target(group, plural, "");
        let incoming = Incoming::of(&target.resource, object, Vec::new(), FieldValidation::Strict)?;
        self.write(target, Subresource::Main, Operation::Create(incoming)).await
    }
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn both(verb: &str, what: &str) -> Vec<String> {
    ["mutate", "validate"].map(|phase| format!("{phase} {verb} {what}")).into()
}

#[tokio::test]
async fn every_way_of_writing_is_seen_with_its_object_and_its_author() {
    let world = World::new().await;
    let seen = || world.recorder.seen();
    world.create("", "pods", pod("p")).await.unwrap();
    assert_eq!(seen(), both("Create", "pods/: Pod for nothing by client"));
    let patch = Patch::read(br#"{"metadata": {"labels": {"a": "b"}}}"#, PatchFormat::Merge).unwrap();
    let target = || world.target("", "pods", "p");
    world.write(target(), Subresource::Main, Operation::Patch(&patch)).await.unwrap();
    assert_eq!(seen(), both("Update", "pods/: Pod for Pod by client"));
    let patch = Patch::read(br#"{"status": {"phase": "Running"}}"#, PatchFormat::Merge).unwrap();
    world.write(target(), Subresource::Status, Operation::Patch(&patch)).await.unwrap();
    assert_eq!(seen(), both("Update", "pods/status: Pod for Pod by client"));
    let binding = json!({"kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "node"}});
    world.write(target(), Subresource::Binding, Operation::Bind(&binding)).await.unwrap();
    assert_eq!(seen(), both("Create", "pods/binding: Binding for Pod by client"));
    let body = br#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}}"#;
    let map = world.target("", "configmaps", "m");
    let applying = Applying::read(&map.resource, body, false).unwrap();
    world.write(map.clone(), Subresource::Main, Operation::Apply(&applying)).await.unwrap();
    assert_eq!(seen(), both("Create", "configmaps/: ConfigMap for nothing by client"));
    world.write(map.clone(), Subresource::Main, Operation::Apply(&applying)).await.unwrap();
    assert_eq!(seen(), both("Update", "configmaps/: ConfigMap for ConfigMap by client"));
    world.writer.modify(&map, Subresource::Main, |map| map["data"]["c"] = "d".into()).await.unwrap();
    assert_eq!(seen(), both("Update", "configmaps/: ConfigMap for ConfigMap by server"));
    let object = json!({"kind": "Eviction", "metadata": {"name": "p"}});
    let eviction = Eviction::new(object, Query::default(), false);
    world.write(target(), Subresource::Main, Operation::Evict(&eviction)).await.unwrap();
    assert_eq!(seen(), both("Create", "pods/eviction: Eviction for Pod by client"));
    let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    let pods = vec![target(), world.target("", "pods", "missing")];
    world.writer.delete_all(pods, &options, &world.context).await.unwrap();
    assert_eq!(seen(), both("Delete", "pods/: nothing for Pod by client"));
    let connect = world.writer.admit(Verb::Connect, &target(), "exec", &world.context, Value::Null).await;
    assert_eq!(connect.unwrap().warnings, ["it was seen"]);
    assert_eq!(seen(), both("Connect", "pods/exec: nothing for nothing by client"));
}

#[tokio::test]
async fn a_scale_is_seen_as_a_scale() {
    let world = World::new().await;
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod("")["spec"]});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    world.create("apps", "deployments", json!({"metadata": {"name": "d"}, "spec": spec})).await.unwrap();
    world.recorder.seen();
    let scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "d"}, "spec": {"replicas": 7}});
    let change = ScaleChange::Replace(scale);
    let target = world.target("apps", "deployments", "d");
    let written = world.write(target, Subresource::Main, Operation::Scale(&change)).await.unwrap();
    assert_eq!(written.object["spec"]["replicas"], 7);
    assert_eq!(world.recorder.seen(), both("Update", "deployments/scale: Scale for Deployment by client"));
}

#[tokio::test]
async fn plug_ins_complete_refuse_and_warn() {
    let world = World::new().await;
    let written = world.create("", "pods", pod("marked")).await.unwrap();
    assert_eq!(written.object["metadata"]["labels"], json!({"seen": "yes"}));
    assert_eq!(written.warnings, ["it was seen"]);
    let owned = written.object["metadata"]["managedFields"].to_string();
    assert!(!owned.contains("f:labels"), "what a plug-in adds is nobody's: {owned}");
    let refused = world.create("", "pods", pod("refused")).await.unwrap_err();
    assert_eq!((refused.code, refused.reason), (403, "Forbidden"));
    let found = world.server.storage.get("/registry//pods/default/refused", None).await.unwrap();
    assert!(found.entry.is_none());
}

#[tokio::test]
async fn a_plug_in_that_is_switched_off_does_nothing() {
    let on = Options::default();
    let off = vec!["Priority".into(), "ServiceAccount".into()];
    let off = Options { disabled_admission_plugins: off, ..Options::default() };
    for (options, priority) in [(on, json!(0)), (off, Value::Null)] {
        let server =
            crate::startup::start(Arc::new(Memory::new(watchkeeper_storage::Options::default())), options)
                .await
                .unwrap();
        let written = server.writer.create("", "v1", "pods", Some("default"), pod("p")).await.unwrap();
        assert_eq!(written.object["spec"]["priority"], priority);
    }
}

fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn crds_that_are_not_followed_stop_nobody_for_long() {
    let registrar = Arc::new(Registrar::new());
    let (server, writer) = writer_with(Vec::new(), |_| Arc::clone(&registrar)).await;
    let (group, plural) = ("apiextensions.k8s.io", "customresourcedefinitions");
    let create = |plural_name, kind| writer.create(group, "v1", plural, None, definition(plural_name, kind));
    let begin = tokio::time::Instant::now();
    let revision = create("ones", "One").await.unwrap().revision.unwrap();
    // It could have the same names.
    let refused: Vec<_> = futures_util::future::join_all((0..20).map(|_| create("twos", "Two"))).await;
    assert!(
        refused.iter().all(|refused| refused.as_ref().is_err_and(|refused| refused.code == 503)),
        "{refused:?}"
    );
    let took = begin.elapsed().as_secs();
    assert!((19..25).contains(&took), "all of them together took {took} s");
    registrar.reached(revision);
    let slow = create("threes", "Three");
    let stop = async {
        tokio::task::yield_now().await;
        server.begin_to_stop(std::time::Duration::ZERO);
    };
    let begin = tokio::time::Instant::now();
    assert!(tokio::join!(slow, stop).0.unwrap().created);
    assert!(begin.elapsed().as_secs() < 5, "nobody is waited for who stops");
}

#[tokio::test]
async fn a_slow_plug_in_keeps_nobody_else_from_writing_a_crd() {
    let go = Arc::new(Notify::new());
    let (_server, writer) = writer(vec![Box::new(Slow(Arc::clone(&go)))]).await;
    let (group, plural) = ("apiextensions.k8s.io", "customresourcedefinitions");
    let slow = writer.create(group, "v1", plural, None, definition("slows", "Slow"));
    let quick = async {
        let written = writer.create(group, "v1", plural, None, definition("quicks", "Quick")).await;
        go.notify_one();
        written
    };
    let (slow, quick) = tokio::join!(slow, quick);
    assert!(slow.unwrap().revision > quick.unwrap().revision);
}

#[tokio::test]
async fn what_is_created_while_its_namespace_changes_is_made_again_at_once() {
    let go = Arc::new(Notify::new());
    let (server, writer) = writer(vec![Box::new(Slow(Arc::clone(&go)))]).await;
    let slow = writer.create("", "v1", "configmaps", Some("default"), json!({"metadata": {"name": "slow"}}));
    let change = async {
        tokio::task::yield_now().await;
        let key = format!("{}default", crate::resource::prefix("", "namespaces"));
        let entry = server.storage.get(&key, None).await.unwrap().entry.unwrap();
        let changed = watchkeeper_storage::Commit::new().put(key, entry.value.clone());
        server.storage.commit(changed).await.unwrap();
        // Once for each attempt.
        go.notify_one();
        tokio::task::yield_now().await;
        go.notify_one();
    };
    let made =
        tokio::time::timeout(std::time::Duration::from_secs(30), async { tokio::join!(slow, change).0 });
    assert!(made.await.expect("it waits for a definition that nobody changes").unwrap().created);
}

#[test]
fn nobody_is_asked_about_what_no_plug_in_handles() {
    let registrar = Arc::new(Registrar::new());
    let storage: Arc<dyn Storage> = Arc::new(Memory::new(watchkeeper_storage::Options::default()));
    let client = client(Arc::clone(&storage), &registrar);
    let converter =
        Arc::new(Converter::new(Arc::clone(&client), WebhookMetrics::default(), Arc::clone(&storage)));
    let handles = PluginHandles {
        access: Arc::new(Access::new(crate::Authorization::Rbac)),
        listers: Arc::default(),
        registrar: Arc::clone(&registrar),
        storage: Arc::clone(&storage),
        pod_security: PodSecurityConfiguration::default(),
    };
    let webhooks = webhooks::Webhooks::new(
        storage,
        Arc::clone(&registrar),
        client,
        converter,
        WebhookMetrics::default(),
    );
    let chain = Chain::new(&handles, webhooks, Chosen::default());
    let registry = registrar.current();
    let handled = |plural: &str, verb| {
        let resource = registry.find("", "v1", plural).unwrap();
        chain.handling(&Scope { verb, resource: &resource, subresource: "" }).iter().count()
    };
    assert_eq!(handled("configmaps", Verb::Update), 0);
    assert_eq!(handled("configmaps", Verb::Delete), 0);
    assert_eq!(handled("configmaps", Verb::Create), 1, "its namespace has to exist");
    assert_eq!(handled("pods", Verb::Create), 7);
    assert_eq!(handled("namespaces", Verb::Delete), 1);
}
