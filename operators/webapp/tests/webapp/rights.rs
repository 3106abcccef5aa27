//! What the operator asks of a cluster is what it needs: without any one of its rules, something is refused.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use watchkeeper::Key;
use watchkeeper::client::Client;
use watchkeeper::election::ElectionOptions;
use watchkeeper::prelude::Manager;
use watchkeeper_description::{Roles, When, roles};
use watchkeeper_testkit::fixtures::key;
use watchkeeper_testkit::{Call, TestEnv, eventually};
use watchkeeper_webapp::WebApp;

use crate::roles::{refused, rules, shipped};
use crate::world::{NAME, description, spec, webapp};

/// How long the operator has to do its work, in the time of the test.
const AT_WORK: Duration = Duration::from_secs(20);

/// Has the operator do its work under these roles.
async fn work_under(roles: &Roles) -> TestEnv {
    let env = TestEnv::builder().with_roles().start().await;
    env.install::<WebApp>().await;
    let manager = Manager::new(NAME, env.connection_with(NAME, roles).await);
    let manager = watchkeeper_webapp::operator(manager.leader_election(ElectionOptions::default()));
    let running = manager.start().await.unwrap();
    let person = Client::new(env.connection());
    person.create(&webapp("shop", spec())).await.unwrap();
    tokio::time::sleep(AT_WORK).await;
    person.delete_key::<WebApp>(&key("shop")).await.unwrap();
    tokio::time::sleep(AT_WORK).await;
    running.stop().await;
    env
}

#[tokio::test(start_paused = true)]
async fn nothing_that_it_does_is_refused_and_little_that_it_may_do_is_not_used() {
    let description = description();
    let env = work_under(&roles(&description.rights, |_| true)).await;
    assert_eq!(refused(&env), []);
    let unused = env.unused_rights(&description);
    let unused: Vec<String> =
        unused.iter().map(|right| format!("{} {}", right.target(), right.verbs)).collect();
    assert_eq!(
        unused,
        [
            // Lists come as watches where the server can do that; objects are read one by one when an answer was lost.
            "pods get, list",
            // Children that are not wanted any more are deleted; it always wants the same ones.
            "services get, list, delete",
            "customresourcedefinitions create",
            "deployments get, list, delete",
            "webapps get, list",
            // An event that comes again is counted up.
            "events patch",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn without_any_one_of_its_rules_something_is_refused() {
    assert_eq!(refused(&work_under(&shipped(NAME)).await), []);
    let rules = rules(false);
    assert!(rules.len() >= 9, "{}", rules.len());
    for rule in rules {
        let env = work_under(&rule.left_out()).await;
        rule.judge(&refused(&env));
    }
}

#[tokio::test(start_paused = true)]
async fn with_namespaces_it_works_in_these_under_roles_in_these_and_nowhere_else() {
    let env = TestEnv::builder().with_roles().start().await;
    env.install::<WebApp>().await;
    for namespace in ["shop", "bank"] {
        env.create_namespace(namespace).await;
    }
    let limited = |manager: Manager| {
        let manager = manager.namespaces(["default", "shop"]).leader_election(ElectionOptions::default());
        watchkeeper_webapp::operator(manager)
    };
    let mut description = limited(Manager::from_environment(NAME)).description();
    // Whoever installs it brings the definition.
    description.rights = description
        .rights
        .iter()
        .filter(|right| right.when != When::InstallingDefinitions)
        .cloned()
        .collect();
    let roles = roles(&description.rights, |_| true);
    assert!(roles.cluster.is_empty(), "{:?}", roles.cluster);
    assert_eq!(roles.namespaces.keys().collect::<Vec<_>>(), ["default", "shop"]);

    let running = limited(Manager::new(NAME, env.connection_for(&description).await)).start().await.unwrap();
    let person = Client::new(env.connection());
    for namespace in ["default", "shop", "bank"] {
        let mut app = webapp("web", spec());
        app.metadata.namespace = Some(namespace.into());
        person.create(&app).await.unwrap();
    }
    let has_child = async |namespace: &str| {
        person.live().get::<Deployment>(&Key::new(Some(namespace), "web")).await.unwrap().is_some()
    };
    for namespace in ["default", "shop"] {
        eventually(|| async { if has_child(namespace).await { Ok(()) } else { Err("no Deployment") } }).await;
    }
    tokio::time::sleep(AT_WORK).await;
    assert!(!has_child("bank").await);
    running.stop().await;
    let refused = refused(&env);
    let definitions = |call: &Call| call.resource == "customresourcedefinitions";
    assert!(refused.iter().all(definitions), "{refused:?}");
}
