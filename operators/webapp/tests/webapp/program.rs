use std::path::Path;
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use watchkeeper::client::Client;
use watchkeeper::prelude::Key;
use watchkeeper::runtime::Description;
use watchkeeper_testkit::fixtures::key;
use watchkeeper_testkit::{Outcome, TestEnv, eventually};

use crate::world::{description_of, spec, webapp};

/// The program, killed if the test does not end it.
struct Program(Child);

impl Program {
    fn start(env: &TestEnv) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper-webapp"));
        command.arg("--kubeconfig").arg(env.kubeconfig()).arg("--leader-elect");
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }

    fn stop(mut self) -> Option<i32> {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
        self.0.wait().unwrap().code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn asked(arguments: &[&str], kubeconfig: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper-webapp"));
    let output = command.args(arguments).env("KUBECONFIG", kubeconfig).stdin(Stdio::null()).output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr),
    )
}

#[test]
fn it_describes_itself_without_a_cluster() {
    let (code, text) = asked(&["describe"], Path::new("/nowhere"));
    assert_eq!(code, Some(0), "{text}");
    let described = Description::from_json(text.as_bytes()).unwrap();
    assert_eq!(described.name, "watchkeeper-webapp");
    assert_eq!(described.version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(described.rights, description_of("watchkeeper-webapp").rights);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_says_whether_the_cluster_allows_what_it_needs() {
    let env = TestEnv::builder().listening().start().await;
    let kubeconfig = env.kubeconfig().to_owned();
    let check = move || asked(&["check-access"], &kubeconfig);
    let (code, text) = tokio::task::spawn_blocking(check.clone()).await.unwrap();
    assert_eq!((code, text.contains("allows everything")), (Some(0), true), "{text}");
    // Who may not even ask is told so.
    let _denied = env.fault(|call| match call.is_of("selfsubjectaccessreviews") {
        true => Outcome::forbid(),
        false => Outcome::pass(),
    });
    let (code, text) = tokio::task::spawn_blocking(check).await.unwrap();
    assert_eq!((code, text.contains("cannot ask the cluster what is allowed")), (Some(1), true), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_runs_alone_brings_its_definition_and_hands_over_the_lead() {
    let env = TestEnv::builder().listening().start().await;
    let person = Client::new(env.connection());
    let holder = || async {
        let lease =
            person.live().get::<Lease>(&Key::new(Some("default"), "watchkeeper-webapp")).await.unwrap()?;
        lease.spec.as_ref()?.holder_identity.clone().filter(|holder| !holder.is_empty())
    };
    let first = Program::start(&env);
    let one = eventually(holder).await;
    eventually(|| async { person.create(&webapp("shop", spec())).await }).await;
    eventually(|| async { person.live().get::<Deployment>(&key("shop")).await.unwrap() }).await;

    let second = Program::start(&env);
    // Told to go, it lets go of the lease, and the other need not wait until that runs out.
    assert_eq!(first.stop(), Some(0));
    let other = eventually(|| async { holder().await.filter(|holder| *holder != one) }).await;
    assert_ne!(other, one);
    person.delete_key::<Deployment>(&key("shop")).await.unwrap();
    eventually(|| async { person.live().get::<Deployment>(&key("shop")).await.unwrap() }).await;
    assert_eq!(second.stop(), Some(0));
}
