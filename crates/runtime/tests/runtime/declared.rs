//! What a program declares, what follows from it, and what becomes of the rest.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::json;
use watchkeeper_client::{Cache, Client, Patch, ready};
use watchkeeper_core::Key;
use watchkeeper_election::ElectionOptions;
use watchkeeper_runtime::{Action, Context, Controller, Description, Manager, Result, Verbs};
use watchkeeper_testkit::fixtures::{Widget, config_map, widget};
use watchkeeper_testkit::{Fate, TestEnv, eventually};

use crate::log::Log;

async fn make_pages(widget: Arc<Widget>, cx: Context<Widget>) -> Result<Action> {
    let name = widget.metadata.name.clone().unwrap();
    cx.children().apply([config_map(&name, &[])]).await?;
    cx.status().condition(ready("Written")).await?;
    Ok(Action::done())
}

async fn clean_up(_: Arc<Widget>, _: Context<Widget>) -> Result<Action> {
    Ok(Action::done())
}

fn operator(manager: Manager) -> Manager {
    let widgets =
        Controller::of::<Widget>().owns::<ConfigMap>().cleanup("test.watchkeeper.dev/pages", clean_up);
    manager
        .install::<Widget>()
        .cache(Cache::of::<Secret>().namespaces(["default"]))
        .controller(widgets.reads::<Secret>().reconcile(make_pages))
        .leader_election(ElectionOptions::default())
}

fn description() -> Description {
    operator(Manager::from_environment("pages")).description()
}

#[test]
fn a_manager_knows_without_a_cluster_what_it_asks_of_one() {
    let description = description();
    let rights: Vec<String> = description
        .rights
        .iter()
        .map(|right| format!("{} {:?} {:?}: {}", right.target(), right.namespaces, right.when, right.verbs))
        .collect();
    assert_eq!(
        rights,
        [
            "configmaps All Always: get, list, watch, create, patch, delete",
            "secrets These([\"default\"]) Always: get, list, watch",
            "customresourcedefinitions All InstallingDefinitions: get, create, patch",
            "leases Own ElectingLeader: get, create, update",
            "events All Always: create, patch",
            "widgets All Always: get, list, watch, patch",
            "widgets/finalizers All Always: update",
            "widgets/status All Always: patch",
        ]
    );
    assert_eq!(description.definitions[0]["spec"]["names"]["kind"], "Widget");
    assert_eq!(description.controllers[0].finalizer.as_deref(), Some("test.watchkeeper.dev/pages"));
    assert!(description.metrics.iter().any(|metric| metric.name == "controller_runtime_reconcile_total"));
    let json = serde_json::to_vec(&description).unwrap();
    assert_eq!(Description::from_json(&json).unwrap(), description);
}

#[tokio::test(start_paused = true)]
async fn an_operator_works_under_the_roles_that_follow_from_what_it_declares() {
    let env = TestEnv::builder().with_roles().start().await;
    env.install::<Widget>().await;
    let description = description();
    let connection = env.connection_for(&description).await;
    let running = operator(Manager::new("pages", connection)).checking_access().start().await.unwrap();
    running.ready().await;
    let person = Client::new(env.connection());
    person.create(&widget("a", 1)).await.unwrap();
    let key = Key::new(Some("default"), "a");
    let live = person.live();
    eventually(|| async {
        let widget = live.get::<Widget>(&key).await.unwrap().unwrap();
        live.get::<ConfigMap>(&key).await.unwrap().is_some() && widget.status.is_some()
    })
    .await;
    person.delete_key::<Widget>(&key).await.unwrap();
    eventually(|| async { live.get::<Widget>(&key).await.unwrap().is_none() }).await;
    assert_eq!(env.count(|seen| seen.fate == Fate::Answered(403)), 0, "{}", env.timeline());
    let unused = env.unused_rights(&description);
    let unused: Vec<String> =
        unused.iter().map(|right| format!("{} {}", right.target(), right.verbs)).collect();
    // Nothing was pruned, nothing went wrong, there was nothing to tell, and lists come as watches.
    assert_eq!(
        unused,
        [
            "configmaps get, list, delete",
            "secrets get, list",
            "customresourcedefinitions create",
            "leases update",
            "events create, patch",
            "widgets get, list"
        ]
    );
    running.stop().await;
}

#[test]
fn the_status_of_a_kind_that_somebody_else_defines_is_asked_for_only_if_that_is_declared() {
    let rights = |declare: bool| {
        let widgets = Controller::of::<Widget>();
        let widgets = if declare { widgets.writes_status::<Widget>() } else { widgets };
        let controller = widgets.reconcile(|_: Arc<Widget>, _: Context<Widget>| async { Ok(Action::done()) });
        let description = Manager::from_environment("reader").controller(controller).description();
        let of_widgets = description.rights.iter().filter(|right| right.resource.plural == "widgets");
        of_widgets.map(|right| format!("{}: {}", right.target(), right.verbs)).collect::<Vec<_>>()
    };
    assert_eq!(rights(false), ["widgets: get, list, watch"]);
    assert_eq!(rights(true), ["widgets: get, list, watch", "widgets/status: patch"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_declared_is_not_sent_and_the_line_to_add_is_told() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let log = Log::default();
    let said = log.clone();
    let controller = Controller::of::<Widget>().writes::<ConfigMap>(Verbs::CREATE).reconcile(
        move |_: Arc<Widget>, cx: Context<Widget>| {
            let log = said.clone();
            async move {
                let key = Key::new(Some("default"), "page");
                let client = cx.client();
                client.create(&config_map("page", &[])).await?;
                let told = |done: Result<(), watchkeeper_client::Error>| {
                    log.say(done.map_or_else(|error| error.to_string(), |()| "sent".to_owned()));
                };
                told(client.delete_key::<ConfigMap>(&key).await.map(drop));
                told(client.patch::<Secret>(&key, Patch::Merge(json!({}))).await.map(drop));
                told(client.live().get::<Pod>(&key).await.map(drop));
                told(client.live().get::<ConfigMap>(&key).await.map(drop));
                Ok(Action::done())
            }
        },
    );
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    // Whoever runs the manager is not bound by that.
    running.client().create(&widget("a", 1)).await.unwrap();
    eventually(|| async { log.lines().len() == 4 }).await;
    let lines = log.lines();
    for (line, expected) in lines.iter().zip([
        "may delete configmaps: add .writes::<ConfigMap>(Verbs::DELETE) to the controller, or to the manager",
        "may patch secrets: add .writes::<Secret>(Verbs::PATCH) to",
        "may get pods: add .reads_live::<Pod>() to",
        "sent",
    ]) {
        assert!(line.contains(expected), "{line}");
    }
    assert_eq!(env.count(|seen| seen.call.is_of("secrets") || seen.call.is_of("pods")), 0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_is_told_at_the_start_with_the_rule_to_add() {
    let env = TestEnv::builder().with_roles().start().await;
    env.install::<Widget>().await;
    let mut narrow = description();
    narrow.rights =
        narrow.rights.iter().filter(|right| right.target() != "widgets/status").cloned().collect();
    let connection = env.connection_for(&narrow).await;
    let running = operator(Manager::new("pages", connection)).checking_access().start().await.unwrap();
    let missing = || {
        let found = running.not_ready().into_iter().find(|(name, _)| name == "access");
        found.map(|(_, reason)| reason).unwrap_or_default()
    };
    eventually(|| async { !missing().is_empty() }).await;
    let rule = "# ClusterRole\n- apiGroups: [\"test.watchkeeper.dev\"]\n  resources: [\"widgets/status\"]\n  verbs: [\"patch\"]\n";
    assert!(missing().ends_with(&format!("add these rules:\n{rule}")), "{}", missing());

    let person = Client::new(env.connection());
    let role = Key::new(None, "pages");
    let rule =
        json!({"apiGroups": ["test.watchkeeper.dev"], "resources": ["widgets/status"], "verbs": ["patch"]});
    let rule = serde_json::from_value::<k8s_openapi::api::rbac::v1::PolicyRule>(rule).unwrap();
    person
        .modify(&role, |role: &mut ClusterRole| role.rules.get_or_insert_default().push(rule.clone()))
        .await
        .unwrap();
    running.ready().await;
    running.stop().await;
}
