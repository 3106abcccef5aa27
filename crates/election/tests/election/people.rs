//! What people do to leases and clocks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kube_core::params::DeleteParams;
use serde_json::json;
use watchkeeper_election::Loss;
use watchkeeper_testkit::{TestEnv, consistently};

use crate::place::{LEASE, SECOND, edit, following, leading, leases, losing, options, spec, stand_with, two};

#[tokio::test(start_paused = true)]
async fn a_lease_given_to_somebody_else_is_lost_and_won_back_when_it_runs_out() {
    let env = TestEnv::start().await;
    let (mut a, leadership, mut b) = two(&env).await;
    edit(&env, json!({"spec": {"holderIdentity": "nobody-real"}})).await;
    let (loss, took) = losing(&mut a).await;
    assert_eq!(loss, Loss::Taken { by: Some("nobody-real".into()) });
    assert!(took <= SECOND * 2 && !leadership.is_held(), "{took:?}");
    following(&mut b, "nobody-real").await;
    let took = tokio::select! { (_, took) = leading(&mut a) => took, (_, took) = leading(&mut b) => took };
    assert!(took > SECOND * 12 && took < SECOND * 16, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_edited_otherwise_is_renewed_over_the_edit() {
    let env = TestEnv::start().await;
    let (a, leadership, b) = two(&env).await;
    edit(
        &env,
        json!({"metadata": {"annotations": {"note": "mine"}}, "spec": {"leaseDurationSeconds": 3600}}),
    )
    .await;
    let quiet = consistently(|| async { leadership.is_held() && b.leadership().is_none() });
    quiet.throughout(SECOND * 30).await;
    assert_eq!(spec(&env).await["leaseDurationSeconds"], json!(15));
    assert_eq!(leases(&env).get(LEASE).await.unwrap().metadata.annotations.unwrap()["note"], "mine");
    assert_eq!(a.metrics().slow_renewals, 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_deleted_stays_with_its_holder() {
    let env = TestEnv::start().await;
    let (_a, leadership, b) = two(&env).await;
    for _ in 0..5 {
        leases(&env).delete(LEASE, &DeleteParams::default()).await.unwrap();
        let quiet = consistently(|| async { leadership.is_held() && b.leadership().is_none() });
        quiet.throughout(SECOND * 10).await;
        assert_eq!(spec(&env).await["holderIdentity"], json!("a"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_deleted_with_its_holder_is_made_anew() {
    let env = TestEnv::start().await;
    let (a, _, mut b) = two(&env).await;
    drop(a);
    leases(&env).delete(LEASE, &DeleteParams::default()).await.unwrap();
    let (_, took) = leading(&mut b).await;
    assert!(took >= SECOND * 12 && took <= SECOND * 16, "{took:?}");
}

/// What the clock on the wall shows, as far as the candidates are concerned.
static WALL: AtomicU64 = AtomicU64::new(1_700_000_000);

fn wall_clock() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(WALL.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn clocks_on_the_wall_jump_and_nothing_happens() {
    let env = TestEnv::start().await;
    let candidate = |name| {
        let mut options = options(name);
        options.wall_clock = wall_clock;
        stand_with(&env, options)
    };
    let mut a = candidate("a");
    let (leadership, _) = leading(&mut a).await;
    let mut b = candidate("b");
    following(&mut b, "a").await;
    for time in [1_800_000_000, 1_000, 1_700_000_000, 4_000_000_000, 0] {
        WALL.store(time, Ordering::Relaxed);
        env.set_wall_clock(wall_clock());
        let quiet = consistently(|| async { leadership.is_held() && b.leadership().is_none() });
        quiet.throughout(SECOND * 20).await;
    }
    drop(a);
    let (_, took) = leading(&mut b).await;
    assert!(took >= SECOND * 13 && took <= SECOND * 16, "{took:?}");
}
