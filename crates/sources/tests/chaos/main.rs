//! An informer over a server that does everything wrong that a server and a network can do: once it calms down, the store
//! equals the truth, always.
//!
//! What no client can notice is left out: a server that swallows a change and goes on as if nothing had been.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "../server/mod.rs"]
mod server;
mod truth;

mod contract;
mod defects;
mod kinds;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use truth::{Refusal, Trouble, Truth};
use watchkeeper_informer::{Informer, Policy, SourceBackoff};
use watchkeeper_sources::kubernetes::{Connection, Kubernetes};

#[derive(Clone, Debug)]
enum Step {
    Put(u8),
    /// A state that does not decode.
    PutBad(u8),
    /// A state that is larger than what is accepted.
    PutHuge(u8),
    Delete(u8),
    Recreate(u8),
    Compact,
    Refuse(Refusal),
    Trouble(Trouble),
    /// Lets some time pass.
    Wait(u8),
}

fn refusal() -> impl Strategy<Value = Refusal> {
    prop_oneof![
        prop::sample::select(vec![403, 404, 410, 429, 500, 503, 504]).prop_map(Refusal::Status),
        Just(Refusal::Cut),
        Just(Refusal::Hang),
        Just(Refusal::Nonsense),
        Just(Refusal::Headless),
        (0.0..1.0f32).prop_map(Refusal::Truncated),
        Just(Refusal::Garbled),
        Just(Refusal::Trickle),
    ]
}

fn trouble() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        Just(Trouble::Cut),
        Just(Trouble::CutWithin),
        Just(Trouble::Close),
        Just(Trouble::Garbage),
        Just(Trouble::GarbleNext),
        Just(Trouble::WrongKind),
        Just(Trouble::UnknownType),
        Just(Trouble::NotText),
        Just(Trouble::Huge),
        Just(Trouble::Repeat),
        prop::sample::select(vec![403, 410, 429, 500, 504]).prop_map(Trouble::Error),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..8u8).prop_map(Step::Put),
        1 => (0..8u8).prop_map(Step::PutBad),
        1 => (0..8u8).prop_map(Step::PutHuge),
        2 => (0..8u8).prop_map(Step::Delete),
        1 => (0..8u8).prop_map(Step::Recreate),
        1 => Just(Step::Compact),
        3 => refusal().prop_map(Step::Refuse),
        4 => trouble().prop_map(Step::Trouble),
        4 => (0..4u8).prop_map(Step::Wait),
    ]
}

/// How the client is set up.
#[derive(Clone, Debug)]
struct Client {
    streaming: bool,
    page_size: Option<u32>,
    policy: Policy,
}

fn client() -> impl Strategy<Value = Client> {
    let policy = prop::sample::select(vec![Policy::Packed, Policy::Typed, Policy::Metadata]);
    (any::<bool>(), prop::option::of(1..4u32), policy).prop_map(|(streaming, page_size, policy)| Client {
        streaming,
        page_size,
        policy,
    })
}

const LARGEST: usize = 4_096;
const UNDECODABLE: &str = "7";

fn informer(client: &Client, to: Connection) -> Informer<ConfigMap> {
    let mut source = Kubernetes::of::<ConfigMap>(to).streaming(client.streaming).max_object_bytes(LARGEST);
    if let Some(page_size) = client.page_size {
        source = source.page_size(page_size);
    }
    let backoff = SourceBackoff::new(Duration::from_millis(1), Duration::from_millis(8))
        .with_refused_cap(Duration::from_millis(8))
        .with_reset_after(Duration::from_millis(50));
    Informer::builder().policy(client.policy).backoff(backoff).seed(1).start(source)
}

async fn play(client: Client, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let truth = Truth::new();
    let server = truth.serve().await;
    let informer = informer(&client, server.connection());
    let mut changes = informer.subscribe("witness");
    let name = |n: u8| format!("n{n}");
    for step in steps {
        match step {
            Step::Put(n) => truth.put(&name(n), r#"{"a":"1"}"#),
            Step::PutBad(n) => truth.put(&name(n), UNDECODABLE),
            Step::PutHuge(n) => truth.put(&name(n), &format!(r#"{{"a":"{}"}}"#, "x".repeat(2 * LARGEST))),
            Step::Delete(n) => truth.delete(&name(n)),
            Step::Recreate(n) => {
                truth.delete(&name(n));
                truth.put(&name(n), r#"{"b":"2"}"#);
            }
            Step::Compact => truth.compact(),
            Step::Refuse(refusal) => truth.refuse_next(refusal),
            Step::Trouble(trouble) => truth.trouble(&trouble),
            Step::Wait(milliseconds) => tokio::time::sleep(Duration::from_millis(milliseconds.into())).await,
        }
    }
    truth.calm_down(|data| data == UNDECODABLE || data.len() > LARGEST);

    let held = || -> Vec<(String, u64)> {
        let mut held: Vec<_> = informer
            .store()
            .list()
            .iter()
            .map(|object| (object.key().name().to_owned(), object.version().number().unwrap()))
            .collect();
        held.sort();
        held
    };
    let settled = tokio::time::timeout(Duration::from_secs(4), async {
        while held() != truth.objects() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let settled = settled.await.is_ok();
    prop_assert!(
        settled,
        "the store has {:?}, the truth is {:?}, {:?}, {:?}",
        held(),
        truth.objects(),
        informer.status(),
        server.verbs()
    );

    // And a subscriber was told a story that leads there.
    let mut told = BTreeMap::new();
    while let Some(change) = changes.try_next() {
        let name = change.key.name().to_owned();
        prop_assert_eq!(change.old.is_some(), told.contains_key(&name), "{:?}", change);
        match &change.new {
            Some(new) => told.insert(name, new.version().number().unwrap()),
            None => told.remove(&name),
        };
    }
    prop_assert_eq!(told.into_iter().collect::<Vec<_>>(), truth.objects());
    Ok(())
}

#[test]
fn after_the_server_calms_down_the_store_equals_the_truth() {
    let cases = std::env::var("WATCHKEEPER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 100, ..Config::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(config);
    let result = runner.run(&(client(), prop::collection::vec(step(), 0..40)), |(client, steps)| {
        runtime.block_on(play(client, steps))
    });
    println!("{cases} random scripts");
    if let Err(failure) = result {
        panic!("{failure}");
    }
}
