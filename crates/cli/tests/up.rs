//! `watchkeeper up`, as a stranger meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use watchkeeper::client::Client;
use watchkeeper::prelude::{Key, ResourceExt};
use watchkeeper_webapp::{WebApp, WebAppSpec};

fn up(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    command.arg("up").args(arguments).current_dir(directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// One that runs, killed if the test does not end it.
struct Up {
    child: Option<Child>,
    stdout: BufReader<ChildStdout>,
    /// What it said when it was ready.
    said: String,
}

impl Up {
    fn start(directory: &Path, arguments: &[&str]) -> Self {
        let mut child = up(directory, arguments).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        while !said.contains("Ctrl-C") {
            if stdout.read_line(&mut said).unwrap() == 0 {
                panic!("{said}{:?}", child.wait_with_output().unwrap());
            }
        }
        Self { child: Some(child), stdout, said }
    }

    /// Asks it to stop, and gives its exit code, its last words and its complaints.
    fn stop(mut self) -> (Option<i32>, String, String) {
        let child = self.child.take().unwrap();
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
        let mut last = String::new();
        while self.stdout.read_line(&mut last).unwrap() > 0 {}
        let output = child.wait_with_output().unwrap();
        (output.status.code(), last, String::from_utf8(output.stderr).unwrap())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

async fn client(directory: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(directory.join(".watchkeeper/kubeconfig")).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube_client::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    Client::new(watchkeeper::sources::kubernetes::client(config).unwrap())
}

fn shop() -> WebApp {
    let spec = WebAppSpec { image: "nginx:1.29".into(), replicas: 2, port: 8080, env: [].into() };
    let mut app = WebApp::new("shop", spec);
    app.metadata.namespace = Some("default".into());
    app
}

/// Asks until there is an answer.
async fn until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "not after {:?}", begin.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_webapp_comes_to_life_and_is_there_again_next_time() {
    let directory = tempfile::tempdir().unwrap();
    let key = Key::new(Some("default"), "shop");
    let up = Up::start(directory.path(), &["--port", "0", "--pace", "0.2"]);
    let lines: Vec<&str> = up.said.lines().collect();
    assert!(lines[0].starts_with("  api server   https://127.0.0.1:"), "{}", up.said);
    assert!(lines[0].ends_with("data in .watchkeeper/"), "{}", up.said);
    let rest = [
        "  operators    webapp: a Deployment and a Service for every WebApp",
        "  workloads    simulated: nothing runs, pods are ready after 210.0ms",
        "  try          export KUBECONFIG=$PWD/.watchkeeper/kubeconfig",
        "               kubectl apply -f .watchkeeper/webapp.yaml",
        "               kubectl get webapps -w",
        "  look         watchkeeper watch webapps,deployments,pods",
        "  end          Ctrl-C; the next `up` goes on where this one ends",
    ];
    assert_eq!(lines[1..], rest);

    let person = client(directory.path()).await;
    person.create(&shop()).await.unwrap();
    let deployment = until(async || person.live().get::<Deployment>(&key).await.unwrap()).await;
    let ready = async || {
        let app = person.live().get::<WebApp>(&key).await.unwrap()?;
        let status = app.status.as_ref()?;
        let mut conditions = status.conditions.iter();
        let is_done =
            conditions.any(|condition| condition.type_ == "Progressing" && condition.status == "False");
        (is_done && status.ready_replicas == 2).then_some(())
    };
    until(ready).await;
    let (code, last, complaints) = up.stop();
    assert_eq!(
        (code, &*last),
        (Some(0), "  stopped      what there was is in .watchkeeper/\n"),
        "{complaints}"
    );
    assert_eq!(complaints, "");

    let up = Up::start(directory.path(), &["--port", "0", "--only", "webapp", "--no-workloads"]);
    let person = client(directory.path()).await;
    let again = person.live().get::<Deployment>(&key).await.unwrap().unwrap();
    assert_eq!(again.uid(), deployment.uid());
    assert_eq!(up.stop().0, Some(0));

    let up = Up::start(directory.path(), &["--port", "0", "--fresh"]);
    let person = client(directory.path()).await;
    assert!(person.live().get::<WebApp>(&key).await.unwrap().is_none());
    assert_eq!(up.stop().0, Some(0));
}

#[test]
fn a_directory_is_for_one_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let first = Up::start(directory.path(), &["--port", "0"]);
    for arguments in [&["--port", "0"][..], &["--port", "0", "--fresh"]] {
        let output = up(directory.path(), arguments).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(complaint.starts_with("watchkeeper: .watchkeeper/data is in use by "), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
    assert_eq!(first.stop().0, Some(0));
}

#[test]
fn the_usual_port_is_taken_if_it_is_free_and_another_if_not() {
    let directory = tempfile::tempdir().unwrap();
    // Whether it is ours or somebody else's: it is taken.
    let _taken = TcpListener::bind("127.0.0.1:6443");
    let one = Up::start(directory.path(), &[]);
    assert!(!one.said.contains(":6443"), "{}", one.said);
    let port = one.said.split("127.0.0.1:").nth(1).unwrap().split(' ').next().unwrap();
    let other = tempfile::tempdir().unwrap();
    let output = up(other.path(), &["--port", port]).output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        complaint.starts_with(&format!("watchkeeper: cannot listen on 127.0.0.1:{port}: ")),
        "{complaint}"
    );
}

#[test]
fn what_makes_no_sense_is_said_in_a_line_or_two() {
    let directory = tempfile::tempdir().unwrap();
    let cases = [
        (&["--only", "nothing"][..], "invalid value 'nothing' for '--only <NAME>'"),
        (&["--pace=-1"][..], "--pace -1 is not a factor such as 0.1 or 2"),
        (&["--port", "70000"][..], "70000 is not in 0..=65535"),
    ];
    for (arguments, expected) in cases {
        let output = up(directory.path(), arguments).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        assert!(complaint.contains(expected), "{complaint}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "it left something behind");
}
