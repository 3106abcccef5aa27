use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use watchkeeper::client::Client;
use watchkeeper::prelude::Key;
use watchkeeper::runtime::Description;
use watchkeeper_testkit::fixtures::key;
use watchkeeper_testkit::{Fate, Outcome, TestEnv, eventually};

use crate::installed::kubeconfig_of;
use crate::world::{description_of, spec, webapp};

const NAME: &str = "watchkeeper-webapp";

/// The program, killed if the test does not end it.
struct Program(Child);

impl Program {
    fn start(kubeconfig: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper-webapp"));
        command.arg("--kubeconfig").arg(kubeconfig).arg("--leader-elect");
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

/// A server on which the program may do what it describes and nothing else, and its kubeconfig.
async fn with_its_role(folder: &Path) -> (TestEnv, PathBuf) {
    let env = TestEnv::builder().with_roles().listening().start().await;
    let _its_role = env.connection_for(&description_of(NAME)).await;
    let kubeconfig = kubeconfig_of(&env, "default", NAME, folder);
    (env, kubeconfig)
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
    assert_eq!(described.name, NAME);
    assert_eq!(described.version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(described.rights, description_of(NAME).rights);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_says_whether_the_cluster_allows_what_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let (env, kubeconfig) = with_its_role(folder.path()).await;
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
    let folder = tempfile::tempdir().unwrap();
    let (env, kubeconfig) = with_its_role(folder.path()).await;
    let person = Client::new(env.connection());
    let holder = || async {
        let lease = person.live().get::<Lease>(&Key::new(Some("default"), NAME)).await.unwrap()?;
        lease.spec.as_ref()?.holder_identity.clone().filter(|holder| !holder.is_empty())
    };
    let first = Program::start(&kubeconfig);
    let one = eventually(holder).await;
    eventually(|| async { person.create(&webapp("shop", spec())).await }).await;
    eventually(|| async { person.live().get::<Deployment>(&key("shop")).await.unwrap() }).await;

    let second = Program::start(&kubeconfig);
    // Told to go, it lets go of the lease, and the other need not wait until that runs out.
    assert_eq!(first.stop(), Some(0));
    let other = eventually(|| async { holder().await.filter(|holder| *holder != one) }).await;
    assert_ne!(other, one);
    person.delete_key::<Deployment>(&key("shop")).await.unwrap();
    eventually(|| async { person.live().get::<Deployment>(&key("shop")).await.unwrap() }).await;
    assert_eq!(second.stop(), Some(0));
    assert_eq!(env.count(|seen| seen.fate == Fate::Answered(403)), 0, "{}", env.timeline());
}
