//! How a kind is read for the first time.

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_client::{Cache, Client};
use watchkeeper_testkit::fixtures::config_map;
use watchkeeper_testkit::{Outcome, TestEnv};

/// More than one page.
const MANY: usize = 501;

async fn env() -> TestEnv {
    let env = TestEnv::start().await;
    let person = Client::new(env.connection());
    for number in 0..MANY {
        person.create(&config_map(&format!("m{number}"), &[])).await.unwrap();
    }
    env
}

/// How many of the maps a new cache shows once it says that it is complete.
async fn cached(env: &TestEnv) -> usize {
    let client = Client::new(env.connection());
    client.declare(Cache::of::<ConfigMap>()).unwrap();
    client.synced().await.unwrap();
    let maps = client.list::<ConfigMap>().in_namespace("default").await.unwrap();
    maps.iter().filter(|map| map.metadata.name.as_ref().is_some_and(|name| name.starts_with('m'))).count()
}

/// How many streamed lists and how many pages were asked for.
fn asked(env: &TestEnv) -> (usize, usize) {
    let streamed =
        env.count(|seen| seen.call.verb == "watch" && seen.call.query.contains("sendInitialEvents=true"));
    (streamed, env.count(|seen| seen.call.verb == "list"))
}

#[tokio::test]
async fn a_kind_is_streamed_where_the_server_can_do_so() {
    let env = env().await;
    assert_eq!(cached(&env).await, MANY);
    assert_eq!(asked(&env), (1, 0));
}

#[tokio::test]
async fn a_kind_is_read_in_pages_where_the_server_does_not_stream() {
    let env = env().await;
    let message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
    let fault = env.fault(move |call| match call.query.contains("sendInitialEvents=true") {
        true => Outcome::reject(422, "Invalid", message),
        false => Outcome::pass(),
    });
    assert_eq!(cached(&env).await, MANY);
    // A real server gives all of what it has in memory in one page, whatever the limit.
    let (streamed, pages) = asked(&env);
    assert!(streamed == 1 && (1..=2).contains(&pages), "{streamed} streamed lists, {pages} pages");
    fault.lift();
}
