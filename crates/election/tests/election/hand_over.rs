//! From one leader to the next.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, Error};
use kube_core::params::{ListParams, PostParams};
use serde_json::json;
use watchkeeper_election::{ElectionEvent, Loss};
use watchkeeper_testkit::{TestEnv, consistently, kube};

use crate::place::{SECOND, edit, leading, leases, losing, spec, stand, stand_with, two};

#[tokio::test(start_paused = true)]
async fn the_first_leads_and_the_second_knows_it() {
    let env = TestEnv::start().await;
    let (a, leadership, mut b) = two(&env).await;
    assert!(leadership.is_held() && leadership.term() == 1);
    assert_eq!((b.leader().as_deref(), b.leadership().is_none()), (Some("a"), true));
    assert_eq!((a.metrics().leading, b.metrics().leading), (true, false));
    let spec = spec(&env).await;
    assert_eq!((&spec["holderIdentity"], &spec["leaseDurationSeconds"]), (&json!("a"), &json!(15)));
    assert_eq!(spec["leaseTransitions"], json!(0));
    let quiet = consistently(|| async { leadership.is_held() && b.leadership().is_none() });
    quiet.throughout(SECOND * 600).await;
    assert_eq!(a.metrics().terms, 1);
    drop(a);
    leading(&mut b).await;
    assert!(!leadership.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_once() {
    let env = TestEnv::start().await;
    let (mut a, leadership, mut b) = two(&env).await;
    let begin = tokio::time::Instant::now();
    let release = async {
        // Events still come while it is released.
        let event = tokio::select! { event = a.next() => event, () = std::future::ready(()) => None };
        assert!(event.is_none());
        a.release().await;
        assert!(!leadership.is_held());
    };
    let (_, (second, _)) = tokio::join!(release, leading(&mut b));
    assert!(begin.elapsed() < SECOND, "{:?}", begin.elapsed());
    assert!(second.is_held());
    let spec = spec(&env).await;
    assert_eq!((&spec["holderIdentity"], &spec["leaseTransitions"]), (&json!("b"), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_free_and_short() {
    let env = TestEnv::start().await;
    let mut a = stand(&env, "a");
    leading(&mut a).await;
    a.release().await;
    let spec = spec(&env).await;
    assert_eq!((&spec["holderIdentity"], &spec["leaseDurationSeconds"]), (&json!(""), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn without_watches_a_released_lease_is_taken_within_a_few_retry_periods() {
    let env = TestEnv::start().await;
    env.deny(|call| call.verb == "watch").keep();
    let (a, _, mut b) = two(&env).await;
    a.release().await;
    let (_, took) = leading(&mut b).await;
    assert!(took > SECOND / 10 && took <= SECOND.mul_f64(4.5), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_release_meets_an_edit_and_succeeds() {
    let env = TestEnv::start().await;
    let (a, _, mut b) = two(&env).await;
    edit(&env, json!({"metadata": {"labels": {"by": "hand"}}})).await;
    let before = env.request_count();
    a.release().await;
    let of_a = env.requests().into_iter().filter(|seen| seen.call.number > before && seen.call.user == "a");
    let verbs: Vec<&str> = of_a.map(|seen| seen.call.verb).collect();
    assert_eq!(verbs, ["update", "get", "update"]);
    let (_, took) = leading(&mut b).await;
    assert!(took < SECOND, "{took:?}");
    assert_eq!(leases(&env).get("operator").await.unwrap().metadata.labels.unwrap()["by"], "hand");
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_dead_leader_is_taken_when_it_has_run_out() {
    let env = TestEnv::start().await;
    let (a, _, mut b) = two(&env).await;
    drop(a);
    let (_, took) = leading(&mut b).await;
    assert!(took >= SECOND * 13 && took <= SECOND * 16, "{took:?}");
    assert_eq!(spec(&env).await["leaseTransitions"], json!(1));
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_does_not_lead_leaves_the_lease_alone() {
    let env = TestEnv::start().await;
    let (_a, _, b) = two(&env).await;
    b.release().await;
    assert_eq!(spec(&env).await["holderIdentity"], json!("a"));
    assert_eq!(env.count(|seen| seen.call.user == "b" && seen.call.is_write()), 0);
}

#[tokio::test(start_paused = true)]
async fn no_write_passes_the_fence_of_a_lost_lease() {
    let env = TestEnv::start().await;
    let (mut a, leadership, _b) = two(&env).await;
    let maps: Api<ConfigMap> =
        Api::default_namespaced(kube::client(&leadership.fence(env.connection_as("a-work", &[]))));
    let map = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    maps.create(&PostParams::default(), &map("one")).await.unwrap();
    edit(&env, json!({"spec": {"holderIdentity": "somebody"}})).await;
    losing(&mut a).await;
    let before = env.request_count();
    let error = maps.create(&PostParams::default(), &map("two")).await.unwrap_err();
    assert!(
        matches!(&error, Error::Service(why) if why.to_string().contains("the lease is not held")),
        "{error:?}"
    );
    assert_eq!(env.count(|seen| seen.call.number > before && seen.call.user == "a-work"), 0);
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn events_come_in_order_and_end() {
    let env = TestEnv::start().await;
    let mut a = stand(&env, "a");
    assert!(matches!(a.next().await, Some(ElectionEvent::Standby { leader: None })));
    assert!(matches!(a.next().await, Some(ElectionEvent::Leading(leadership)) if leadership.is_held()));
    edit(&env, json!({"spec": {"holderIdentity": "x"}})).await;
    let taken = Loss::Taken { by: Some("x".into()) };
    assert!(matches!(a.next().await, Some(ElectionEvent::Lost(loss)) if loss == taken));
    assert!(matches!(a.next().await, Some(ElectionEvent::Standby { leader: Some(leader) }) if leader == "x"));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_used_again_waits_like_any_other() {
    let env = TestEnv::start().await;
    let mut first = stand(&env, "a");
    let (leadership, _) = leading(&mut first).await;
    let mut namesake = stand_with(&env, crate::place::options("a"));
    consistently(|| async { leadership.is_held() && namesake.leadership().is_none() })
        .throughout(SECOND * 60)
        .await;
    drop(first);
    let (_, took) = leading(&mut namesake).await;
    assert!(took >= SECOND * 13, "{took:?}");
}
