//! The environment as tests use it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Api, Client, Config, Error};
use kube_core::params::{DeleteParams, ListParams, PostParams, WatchParams};
use kube_core::{ApiResource, CustomResourceExt, DynamicObject, GroupVersionKind, ResourceExt, WatchEvent};
use serde_json::json;
use watchkeeper_testkit::fixtures::{self, Widget};
use watchkeeper_testkit::{Fate, Outcome, TestEnv, consistently, eventually};

/// A ConfigMap for any namespace.
fn map(name: &str) -> ConfigMap {
    let mut map = fixtures::config_map(name, &[("k", "v")]);
    map.metadata.namespace = None;
    map
}

fn maps(client: Client) -> Api<ConfigMap> {
    Api::default_namespaced(client)
}

async fn create(client: Client, name: &str) -> Result<ConfigMap, Error> {
    maps(client).create(&PostParams::default(), &map(name)).await
}

fn code(error: &Error) -> u16 {
    match error {
        Error::Api(status) => status.code,
        other => panic!("not an answer: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_ready_at_once() {
    let begin = tokio::time::Instant::now();
    let env = TestEnv::start().await;
    create(env.client(), "a").await.unwrap();
    assert_eq!(begin.elapsed(), Duration::ZERO, "something waited for a timer");
}

#[tokio::test]
async fn hundreds_run_at_once_and_share_nothing() {
    let environments = (0..200).map(|number| async move {
        let env = TestEnv::start().await;
        create(env.client(), &format!("map-{number}")).await.unwrap();
        env
    });
    let environments = futures_util::future::join_all(environments).await;
    for (number, env) in environments.iter().enumerate() {
        let found = maps(env.client()).list(&ListParams::default()).await.unwrap();
        let names: Vec<String> = found.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, [format!("map-{number}")]);
    }
}

#[tokio::test(start_paused = true)]
async fn watches_work_and_last_as_long_as_they_should_in_virtual_time() {
    let env = TestEnv::start().await;
    let api = maps(env.client());
    let real = Instant::now();
    let begin = tokio::time::Instant::now();
    let mut events =
        api.watch(&WatchParams::default().disable_bookmarks().timeout(290), "0").await.unwrap().boxed();
    create(env.client(), "a").await.unwrap();
    let event = events.try_next().await.unwrap().unwrap();
    assert!(
        matches!(&event, WatchEvent::Added(map) if map.name_any() == "a"),
        "{event:?} after {:?}",
        begin.elapsed()
    );
    assert!(events.try_next().await.unwrap().is_none());
    let lasted = begin.elapsed();
    assert!(lasted >= Duration::from_secs(290) && lasted < Duration::from_secs(300), "{lasted:?}");
    assert!(real.elapsed() < Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn objects_carry_the_virtual_time_and_what_it_is_set_to() {
    let env = TestEnv::builder().epoch(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).start().await;
    let created = |name: &'static str| {
        let client = env.client();
        async move { create(client, name).await.unwrap().creation_timestamp().unwrap().0.as_second() }
    };
    assert_eq!(created("a").await, 1_000_000_000);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(created("b").await, 1_000_003_600);
    env.set_wall_clock(UNIX_EPOCH + Duration::from_secs(5));
    assert_eq!(created("c").await, 5);
    assert_eq!(env.wall_clock(), UNIX_EPOCH + Duration::from_secs(5));
}

#[tokio::test]
async fn a_seed_makes_the_same_uids() {
    async fn uid() -> String {
        let env = TestEnv::builder().seed(7).start().await;
        create(env.client(), "a").await.unwrap().uid().unwrap()
    }
    assert_eq!(uid().await, uid().await);
}

#[tokio::test(start_paused = true)]
async fn the_server_goes_away_and_comes_back_with_everything_in_it() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    create(env.client(), "a").await.unwrap();
    let mut events =
        maps(env.client()).watch(&WatchParams::default().disable_bookmarks(), "0").await.unwrap().boxed();
    assert!(matches!(events.try_next().await, Ok(Some(WatchEvent::Added(_)))));
    env.stop().await;
    assert!(events.next().await.is_none_or(|event| event.is_err()), "the watch goes on");
    let refused = create(env.client(), "b").await.unwrap_err();
    assert!(
        matches!(&refused, Error::Service(why) if why.to_string() == "connection refused"),
        "{refused:?}"
    );
    env.resume().await;
    assert_eq!(maps(env.client()).list(&ListParams::default()).await.unwrap().items.len(), 1);
    let widgets: Api<DynamicObject> = Api::default_namespaced_with(env.client(), &Widget::api_resource());
    assert!(widgets.list(&ListParams::default()).await.unwrap().items.is_empty());
    env.restart().await;
    create(env.client(), "b").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn watches_are_cut_and_others_can_be_opened() {
    let env = TestEnv::start().await;
    for broken in [false, true] {
        let mut events =
            maps(env.client()).watch(&WatchParams::default().disable_bookmarks(), "0").await.unwrap().boxed();
        if broken {
            env.break_watches();
        } else {
            env.cut_watches();
        }
        let end = events.next().await;
        assert_eq!(end.is_some_and(|event| event.is_err()), broken);
    }
    let mut events =
        maps(env.client()).watch(&WatchParams::default().disable_bookmarks(), "0").await.unwrap().boxed();
    create(env.client(), "a").await.unwrap();
    assert!(matches!(events.try_next().await, Ok(Some(WatchEvent::Added(_)))));
}

#[tokio::test]
async fn what_is_denied_is_denied_until_that_is_lifted() {
    let env = TestEnv::start().await;
    let denial = env.deny(|call| call.is_of("configmaps") && call.is_write() && call.user == "eve");
    let eve = || env.client_as("eve", &["developers"]);
    let error = create(eve(), "a").await.unwrap_err();
    assert_eq!(code(&error), 403);
    assert!(error.to_string().contains(
        "configmaps is forbidden: User \"eve\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\""
    ), "{error}");
    maps(eve()).list(&ListParams::default()).await.unwrap();
    create(env.client(), "a").await.unwrap();
    denial.lift();
    create(eve(), "b").await.unwrap();
}

#[tokio::test]
async fn with_roles_everybody_may_do_what_theirs_allow() {
    let env = TestEnv::builder().with_roles().start().await;
    let eve = || env.client_as("eve", &["developers"]);
    assert_eq!(code(&create(eve(), "a").await.unwrap_err()), 403);
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "developers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:aggregate-to-edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "developers"}],
    }))
    .unwrap();
    let bindings: Api<RoleBinding> = Api::default_namespaced(env.client());
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    // A real server needs a moment to notice.
    eventually(|| create(eve(), "a")).await;
}

#[tokio::test(start_paused = true)]
async fn requests_are_late_lost_unanswered_or_turned_away() {
    let env = TestEnv::start().await;
    let second = Duration::from_secs(1);
    let outcomes = [
        ("late", Outcome::pass().delayed(second * 3)),
        ("answered-late", Outcome::pass().answered_late(second * 3)),
        ("lost", Outcome::lose()),
        ("swallowed", Outcome::swallow()),
        ("hung", Outcome::hang()),
        ("refused", Outcome::refuse()),
        ("throttled", Outcome::reject(429, "TooManyRequests", "slow down")),
    ];
    env.fault(move |call| {
        let outcome = outcomes.iter().find(|(name, _)| call.namespace == *name && call.verb == "create");
        outcome.map_or(Outcome::pass(), |(_, outcome)| outcome.clone())
    })
    .keep();
    let mut seen = Vec::new();
    for name in ["late", "answered-late", "lost", "swallowed", "hung", "refused", "throttled"] {
        env.create_namespace(name).await;
        let api: Api<ConfigMap> = Api::namespaced(env.client(), name);
        let begin = tokio::time::Instant::now();
        let answer = tokio::time::timeout(second * 2, api.create(&PostParams::default(), &map("a"))).await;
        let answer = match answer {
            Ok(Ok(_)) => "created".to_owned(),
            Ok(Err(Error::Api(status))) => status.code.to_string(),
            Ok(Err(_)) => "broken".to_owned(),
            Err(_) => "nothing".to_owned(),
        };
        let there = api.get_opt("a").await.unwrap().is_some();
        tokio::time::sleep_until(begin + second * 4).await;
        let later = api.get_opt("a").await.unwrap().is_some();
        seen.push((name, answer, there, later));
    }
    let expected = [
        ("late", "nothing", false, true), // what is on its way arrives
        ("answered-late", "nothing", true, true),
        ("lost", "broken", true, true),
        ("swallowed", "nothing", true, true),
        ("hung", "nothing", false, false),
        ("refused", "broken", false, false),
        ("throttled", "429", false, false),
    ];
    assert_eq!(seen, expected.map(|(name, answer, there, later)| (name, answer.to_owned(), there, later)));
    let fates: Vec<Fate> =
        env.requests().iter().filter(|seen| seen.call.is_write()).map(|seen| seen.fate).collect();
    use Fate::{Abandoned, Answered, Broken};
    assert_eq!(fates, [Abandoned, Abandoned, Broken, Abandoned, Abandoned, Broken, Answered(429)]);
}

#[tokio::test]
async fn what_was_asked_is_remembered() {
    let env = TestEnv::start().await;
    env.create_namespace("quiet").await;
    assert_eq!(env.request_count(), 0, "what the environment does itself is not remembered");
    create(env.client_as("ann", &[]), "a").await.unwrap();
    let before = env.request_count();
    maps(env.client()).delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(env.count(|seen| seen.call.number > before && seen.call.verb == "delete"), 1);
    assert_eq!(env.count(|seen| seen.call.number > before), 1);
    let first = &env.requests()[0];
    assert_eq!(
        (first.call.user.as_str(), first.call.verb, first.fate),
        ("ann", "create", Fate::Answered(201))
    );
    assert_eq!(first.call.path, "/api/v1/namespaces/default/configmaps");
    assert!(
        env.timeline().contains("ann        create  /api/v1/namespaces/default/configmaps"),
        "{}",
        env.timeline()
    );
}

fn definition(plural: &str, kind: &str) -> serde_json::Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    fixtures::definition("example.com", plural, kind, anything)
}

#[tokio::test(start_paused = true)]
async fn kinds_are_installed_from_types_and_from_yaml() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let yaml =
        format!("---\n{}\n---\n# nothing\n---\n{}\n", definition("gears", "Gear"), definition("cogs", "Cog"));
    env.install_yaml(&yaml).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), definition("bolts", "Bolt").to_string()).unwrap();
    env.install_file(file.path()).await;
    let widgets: Api<Widget> = Api::default_namespaced(env.client());
    widgets.create(&PostParams::default(), &fixtures::widget("w", 5)).await.unwrap();
    for (plural, kind) in [("gears", "Gear"), ("cogs", "Cog"), ("bolts", "Bolt")] {
        let resource =
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", kind), plural);
        let api: Api<DynamicObject> = Api::default_namespaced_with(env.client(), &resource);
        let object = DynamicObject::new("w", &resource).data(json!({"spec": {"size": 5}}));
        api.create(&PostParams::default(), &object).await.unwrap();
    }
}

#[tokio::test]
#[should_panic(expected = "spec.versions")]
async fn a_definition_that_is_wrong_is_named() {
    TestEnv::start().await.install_yaml("metadata: {name: a.b.c}\nspec: {group: b.c}").await;
}

#[tokio::test(start_paused = true)]
async fn waiting_takes_virtual_time() {
    let env = Arc::new(TestEnv::start().await);
    let begin = tokio::time::Instant::now();
    let late = tokio::spawn({
        let env = Arc::clone(&env);
        async move {
            tokio::time::sleep(Duration::from_secs(10)).await;
            create(env.client(), "a").await.unwrap();
        }
    });
    let api = maps(env.client());
    consistently(|| async { api.get_opt("a").await.unwrap().is_none() })
        .throughout(Duration::from_secs(9))
        .await;
    let found = eventually(|| api.get("a")).await;
    assert_eq!(found.name_any(), "a");
    assert!(begin.elapsed() < Duration::from_secs(11));
    late.await.unwrap();
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "not within 3s: 7 of 8")]
async fn waiting_in_vain_tells_the_last_failure() {
    eventually(|| async { Err::<(), _>("7 of 8") }).within(Duration::from_secs(3)).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "not within 20s: the check did not come to an end")]
async fn a_check_that_hangs_ends_too() {
    eventually(std::future::pending::<bool>).await;
}

#[tokio::test]
async fn processes_reach_it_over_a_socket_also_after_a_restart() {
    let env = TestEnv::builder().listening().start().await;
    let kubeconfig = Kubeconfig::read_from(env.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    assert_eq!(config.cluster_url.to_string().trim_end_matches('/'), env.url());
    let client = Client::try_from(config).unwrap();
    create(client.clone(), "a").await.unwrap();
    let fault = env.fault(|call| if call.verb == "create" { Outcome::lose() } else { Outcome::pass() });
    create(client.clone(), "b").await.unwrap_err();
    fault.lift();
    env.stop().await;
    maps(client.clone()).get("a").await.unwrap_err();
    env.resume().await;
    eventually(|| async { maps(client.clone()).get("b").await.map(|_| ()) }).await;
    let namespaces: Api<Namespace> = Api::all(client);
    assert!(namespaces.get_opt("default").await.unwrap().is_some());
}
