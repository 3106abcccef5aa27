//! Servers and networks that do not do what they should.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::time::{Instant, sleep};
use watchkeeper_election::{Election, Loss};
use watchkeeper_testkit::{Call, Outcome, TestEnv, consistently};

use crate::place::{SECOND, leading, losing, stand, two};

fn is_renewal(call: &Call) -> bool {
    call.is_of("leases") && call.verb == "update"
}

#[tokio::test(start_paused = true)]
async fn one_request_that_hangs_does_not_cost_the_lease() {
    let env = TestEnv::start().await;
    let (_a, leadership, b) = two(&env).await;
    for outcome in [Outcome::hang(), Outcome::swallow(), Outcome::lose(), Outcome::refuse()] {
        let left = AtomicUsize::new(1);
        let fault = env.fault(move |call| {
            let hit = is_renewal(call)
                && left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_ok();
            if hit { outcome.clone() } else { Outcome::pass() }
        });
        let quiet = consistently(|| async { leadership.is_held() && b.leadership().is_none() });
        quiet.throughout(SECOND * 30).await;
        fault.lift();
    }
}

#[tokio::test(start_paused = true)]
async fn latency_near_the_deadline_is_borne() {
    let env = TestEnv::start().await;
    let (_a, leadership, b) = two(&env).await;
    env.fault(|call| match call.user.as_str() {
        "a" => Outcome::pass().delayed(SECOND * 2).answered_late(SECOND.mul_f64(2.7)),
        _ => Outcome::pass(),
    })
    .keep();
    let quiet = consistently(|| async { leadership.is_held() && b.leadership().is_none() });
    quiet.throughout(SECOND * 120).await;
}

#[tokio::test(start_paused = true)]
async fn latency_beyond_the_deadline_costs_the_lease_before_another_has_it() {
    let env = TestEnv::start().await;
    let (mut a, leadership, mut b) = two(&env).await;
    // What a sends arrives, but too late to be of use.
    env.fault(|call| if call.user == "a" { Outcome::pass().delayed(SECOND * 11) } else { Outcome::pass() })
        .keep();
    let (loss, took) = losing(&mut a).await;
    assert!(matches!(loss, Loss::NotRenewed { last: Some(_) }), "{loss:?}");
    assert!(took <= SECOND * 10 && !leadership.is_held(), "{took:?}");
    leading(&mut b).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_steps_down_while_the_server_is_away_and_stands_again() {
    let env = TestEnv::start().await;
    let mut a = stand(&env, "a");
    let (leadership, _) = leading(&mut a).await;
    env.stop().await;
    let (loss, took) = losing(&mut a).await;
    assert!(matches!(&loss, Loss::NotRenewed { last: Some(why) } if why.contains("refused")), "{loss:?}");
    assert!(took <= SECOND * 10, "{took:?}");
    assert!(!leadership.is_held());
    sleep(SECOND * 30).await;
    assert!(a.leadership().is_none());
    env.resume().await;
    let (second, took) = leading(&mut a).await;
    assert!(took < SECOND * 5, "{took:?}");
    assert_eq!(second.term(), 2);
    assert!(!leadership.is_held(), "an old term stays over");
}

#[tokio::test(start_paused = true)]
async fn a_short_restart_of_the_server_costs_nothing() {
    let env = TestEnv::start().await;
    let (_a, leadership, b) = two(&env).await;
    for _ in 0..5 {
        env.stop().await;
        sleep(SECOND * 5).await;
        env.resume().await;
        let quiet = consistently(|| async { leadership.is_held() && b.leadership().is_none() });
        quiet.throughout(SECOND * 10).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_may_not_stand_keeps_asking() {
    let env = TestEnv::start().await;
    let denial = env.deny(|call| call.is_of("leases"));
    let mut a = stand(&env, "a");
    sleep(SECOND * 60).await;
    let asked = env.count(|seen| seen.call.verb == "get");
    assert!((10..40).contains(&asked), "{asked} requests in a minute");
    assert!(a.metrics().failures >= 10);
    denial.lift();
    leading(&mut a).await;
}

/// Five candidates that die and come back in a bad network, and never two at a time that lead.
#[tokio::test(start_paused = true)]
async fn there_is_never_more_than_one_leader() {
    for seed in 0..8 {
        let env = TestEnv::start().await;
        let random = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
        let draw = Arc::clone(&random);
        env.fault(move |call| {
            let mut random = draw.lock().unwrap();
            match (call.is_of("leases"), random.u8(0..40)) {
                (true, 0) => Outcome::hang(),
                (true, 1) => Outcome::lose(),
                (true, 2) => Outcome::swallow(),
                (true, 3) => Outcome::refuse(),
                (true, 4..=6) => Outcome::pass().delayed(SECOND.mul_f64(random.f64() * 12.0)),
                (true, 7..=9) => Outcome::pass().answered_late(SECOND.mul_f64(random.f64() * 6.0)),
                _ => Outcome::pass().delayed(SECOND.mul_f64(random.f64() * 0.2)),
            }
        })
        .keep();
        let mut candidates: Vec<Option<Election>> =
            (0..5).map(|n| Some(stand(&env, &format!("c{n}")))).collect();
        let (mut led, mut looks) = (0, 0);
        let end = Instant::now() + SECOND * 900;
        while Instant::now() < end {
            sleep(SECOND / 20).await;
            let holders: Vec<&str> = candidates
                .iter()
                .flatten()
                .filter(|c| c.leadership().is_some())
                .map(|c| c.identity())
                .collect();
            assert!(holders.len() <= 1, "seed {seed}: {holders:?}");
            led += holders.len();
            looks += 1;
            let (dies, returns, number, politely) = {
                let mut random = random.lock().unwrap();
                (random.u16(0..2_000) == 0, random.u16(0..200) == 0, random.usize(0..5), random.bool())
            };
            match candidates[number].take() {
                Some(election) if dies && politely => {
                    tokio::spawn(election.release());
                }
                Some(_) if dies => {}
                None if returns => candidates[number] = Some(stand(&env, &format!("c{number}-{looks}"))),
                other => candidates[number] = other,
            }
        }
        assert!(led * 3 > looks, "seed {seed}: a leader in {led} of {looks} looks");
    }
}
