//! A server, and candidates for one lease on it.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube_client::Api;
use kube_core::params::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use watchkeeper_election::{Election, ElectionEvent, ElectionOptions, Leadership, LeaseName, Loss};
use watchkeeper_testkit::TestEnv;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const LEASE: &str = "operator";

/// Longer than anything here takes, in virtual time.
const TIMEOUT: Duration = Duration::from_secs(300);

pub(crate) fn options(identity: &str) -> ElectionOptions {
    let seed = identity.bytes().fold(7, |seed, byte| seed * 31 + u64::from(byte));
    let mut options = ElectionOptions::default();
    (options.identity, options.seed) = (identity.into(), seed);
    options
}

/// A candidate whose requests come from a user of the same name.
pub(crate) fn stand(env: &TestEnv, identity: &str) -> Election {
    stand_with(env, options(identity))
}

pub(crate) fn stand_with(env: &TestEnv, options: ElectionOptions) -> Election {
    let connection = env.connection_as(&options.identity, &[]);
    Election::start(connection, LeaseName::new("default", LEASE), options).unwrap()
}

/// Waits until a candidate leads, and says how long that took.
pub(crate) async fn leading(election: &mut Election) -> (Leadership, Duration) {
    let begin = Instant::now();
    loop {
        if let ElectionEvent::Leading(leadership) = event(election).await {
            return (leadership, begin.elapsed());
        }
    }
}

/// Waits until a candidate loses, and says how long that took.
pub(crate) async fn losing(election: &mut Election) -> (Loss, Duration) {
    let begin = Instant::now();
    loop {
        if let ElectionEvent::Lost(loss) = event(election).await {
            return (loss, begin.elapsed());
        }
    }
}

/// Waits until a candidate knows that this one leads.
pub(crate) async fn following(election: &mut Election, leader: &str) {
    loop {
        if matches!(event(election).await, ElectionEvent::Standby { leader: Some(found) } if found == leader)
        {
            return;
        }
    }
}

async fn event(election: &mut Election) -> ElectionEvent {
    timeout(TIMEOUT, election.next()).await.expect("nothing happens").expect("the election has ended")
}

/// A leader called `a`, and a candidate called `b` that knows it.
pub(crate) async fn two(env: &TestEnv) -> (Election, Leadership, Election) {
    let mut a = stand(env, "a");
    let (leadership, _) = leading(&mut a).await;
    let mut b = stand(env, "b");
    following(&mut b, "a").await;
    (a, leadership, b)
}

pub(crate) fn leases(env: &TestEnv) -> Api<Lease> {
    Api::default_namespaced(env.client())
}

pub(crate) async fn spec(env: &TestEnv) -> Value {
    json!(leases(env).get(LEASE).await.unwrap().spec)
}

/// What somebody does to the lease by hand.
pub(crate) async fn edit(env: &TestEnv, patch: Value) {
    leases(env).patch(LEASE, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}
