//! Real processes with real signals: stopped, asked to end, killed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::process::Stdio;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Api;
use kube_core::params::{Patch, PatchParams, PostParams};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};
use watchkeeper_connection::Connection;
use watchkeeper_election::{Election, ElectionEvent, ElectionOptions, Leadership, LeaseName};
use watchkeeper_testkit::{TestEnv, consistently, kube};

const SECOND: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(60);
const LEASE_DURATION: Duration = Duration::from_secs(3);
const KUBECONFIG: &str = "CANDIDATE_KUBECONFIG";

fn options(identity: &str) -> ElectionOptions {
    let mut options = ElectionOptions::default();
    options.identity = identity.into();
    options.lease_duration = LEASE_DURATION;
    options.renew_deadline = SECOND * 2;
    options.retry_period = SECOND / 4;
    options
}

fn name() -> LeaseName {
    LeaseName::new("default", "counter")
}

/// The other process: counts in a ConfigMap while it leads, and says what it does. Does nothing when it is run as a test.
#[test]
fn candidate() {
    let Ok(kubeconfig) = std::env::var(KUBECONFIG) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).unwrap();
        let connection = Connection::from_kubeconfig(kubeconfig, None).await.unwrap();
        let mut election = Election::start(connection.clone(), name(), options("child")).unwrap();
        let mut work = None;
        loop {
            tokio::select! {
                event = election.next() => match event.unwrap() {
                    // One term is enough: what comes after it would be written rightly.
                    ElectionEvent::Leading(_) if work.is_some() => println!("leading again"),
                    ElectionEvent::Leading(leadership) => {
                        println!("leading");
                        work = Some(tokio::spawn(count(leadership, connection.clone())));
                    }
                    ElectionEvent::Lost(loss) => println!("lost: {loss}"),
                    ElectionEvent::Standby { .. } => println!("standby"),
                    other => println!("{other:?}"),
                },
                _ = terminate.recv() => break,
            }
        }
        if let Some(work) = work {
            work.abort();
            let _ = work.await;
        }
        election.release().await;
        println!("released");
    });
}

async fn count(leadership: Leadership, connection: Connection) {
    let maps: Api<ConfigMap> = Api::default_namespaced(kube::client(&leadership.fence(connection)));
    for number in 1.. {
        let patch = Patch::Merge(json!({"data": {"number": number.to_string()}}));
        match maps.patch("counter", &PatchParams::default(), &patch).await {
            Ok(_) => println!("wrote {number}"),
            Err(error) => {
                println!("refused: {error}");
                return;
            }
        }
        sleep(SECOND / 5).await;
    }
}

/// A process that leads and counts.
struct Counting {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Counting {
    async fn start(env: &TestEnv) -> Self {
        let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "counter"}})).unwrap();
        let maps: Api<ConfigMap> = Api::default_namespaced(env.client());
        maps.create(&PostParams::default(), &map).await.unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["candidate", "--exact", "--nocapture", "--test-threads=1"])
            .env(KUBECONFIG, env.kubeconfig())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut counting = Self { process, lines };
        counting.says("wrote 3").await;
        counting
    }

    /// Waits for a line that begins like this.
    async fn says(&mut self, begin: &str) {
        let wait = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                // The harness begins a line of its own.
                if line.contains(begin) {
                    return;
                }
            }
            panic!("it never said {begin}");
        };
        timeout(TIMEOUT, wait).await.unwrap_or_else(|_| panic!("it did not say {begin} in time"));
    }

    fn send(&self, signal: Signal) {
        let id = Pid::from_raw(self.process.id().unwrap().cast_signed()).unwrap();
        kill_process(id, signal).unwrap();
    }
}

async fn leading(election: &mut Election) -> (Leadership, Duration) {
    let begin = Instant::now();
    let wait = async {
        loop {
            if let Some(ElectionEvent::Leading(leadership)) = election.next().await {
                return leadership;
            }
        }
    };
    let leadership = timeout(TIMEOUT, wait).await.expect("nobody leads");
    (leadership, begin.elapsed())
}

/// A candidate in this process that knows that the other leads.
async fn standby(env: &TestEnv) -> Election {
    let mut election = Election::start(env.connection_as("test", &[]), name(), options("test")).unwrap();
    let told = timeout(TIMEOUT, election.next()).await.unwrap();
    assert!(
        matches!(&told, Some(ElectionEvent::Standby { leader: Some(leader) }) if leader == "child"),
        "{told:?}"
    );
    election
}

#[tokio::test]
async fn a_process_that_was_stopped_for_longer_than_its_lease_writes_nothing_more() {
    let env = TestEnv::builder().listening().start().await;
    let mut child = Counting::start(&env).await;
    let mut election = standby(&env).await;
    // Right after a write: it sleeps now, and has nothing under way.
    child.says("wrote").await;
    child.send(Signal::STOP);
    leading(&mut election).await;
    sleep(SECOND).await;
    let before = env.request_count();
    child.send(Signal::CONT);
    child.says("refused").await;
    let writes = || {
        env.count(|seen| seen.call.number > before && seen.call.is_of("configmaps") && seen.call.is_write())
    };
    consistently(|| async { writes() == 0 }).throughout(SECOND * 2).await;
}

/// How long it takes until somebody else leads, after this signal: at best, because others use the machine too.
async fn succeeded_after(signal: Signal, enough: Duration) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let env = TestEnv::builder().listening().start().await;
        let mut child = Counting::start(&env).await;
        let mut election = standby(&env).await;
        child.send(signal);
        let (_, took) = leading(&mut election).await;
        best = best.min(took);
        if signal == Signal::TERM {
            child.says("released").await;
            assert!(timeout(TIMEOUT, child.process.wait()).await.unwrap().unwrap().success());
        }
        if best <= enough {
            break;
        }
    }
    best
}

#[tokio::test]
async fn a_process_that_is_asked_to_end_hands_over_within_a_second() {
    let took = succeeded_after(Signal::TERM, SECOND).await;
    assert!(took <= SECOND, "{took:?}");
}

#[tokio::test]
async fn a_process_that_is_killed_is_succeeded_when_its_lease_has_run_out() {
    let took = succeeded_after(Signal::KILL, LEASE_DURATION + SECOND).await;
    assert!(took >= SECOND * 2 && took <= LEASE_DURATION + SECOND, "{took:?}");
}
