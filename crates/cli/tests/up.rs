//! `watchkeeper up`, as a stranger meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use watchkeeper::client::Client;
use watchkeeper::prelude::{Connection, Key, ResourceExt};
use watchkeeper_gateway::kinds::GatewayRoute;
use watchkeeper_testkit::eventually;
use watchkeeper_webapp::{Http, WebApp, WebAppSpec};

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
    let kubeconfig = directory.join(".watchkeeper/kubeconfig");
    Client::new(Connection::from_kubeconfig(kubeconfig, None).await.unwrap())
}

/// What the gateway answers.
fn hello(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /hello HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// What the model answers.
fn ask(address: &str) -> String {
    let body = r#"{"model": "assistant", "messages": [{"role": "user", "content": "hello"}]}"#;
    let mut stream = TcpStream::connect(address).unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length";
    write!(stream, "{head}: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn shop() -> WebApp {
    let http = Http { port: 8080 };
    let spec = WebAppSpec { image: "nginx:1.29".into(), replicas: 2, http, environment: [].into() };
    let mut app = WebApp::new("shop", spec);
    app.metadata.namespace = Some("default".into());
    app
}

#[tokio::test]
async fn a_webapp_comes_to_life_and_is_there_again_next_time() {
    let directory = tempfile::tempdir().unwrap();
    let key = Key::new(Some("default"), "shop");
    let up = Up::start(directory.path(), &["--port", "0", "--pace", "0.2"]);
    let lines: Vec<&str> = up.said.lines().collect();
    assert!(lines[0].starts_with("  api server   https://127.0.0.1:"), "{}", up.said);
    assert!(lines[0].ends_with("data in .watchkeeper/"), "{}", up.said);
    let (gateway, lines): (Vec<&str>, Vec<&str>) =
        lines.into_iter().partition(|line| line.starts_with("  gateway "));
    assert!(gateway[0].starts_with("  gateway      http://127.0.0.1:"), "{}", up.said);
    let (models, lines): (Vec<&str>, Vec<&str>) =
        lines.into_iter().partition(|line| line.starts_with("  models "));
    assert!(models[0].starts_with("  models       http://127.0.0.1:"), "{}", up.said);
    let (metrics, lines): (Vec<&str>, Vec<&str>) =
        lines.into_iter().partition(|line| line.starts_with("  metrics "));
    assert!(metrics[0].starts_with("  metrics      http://127.0.0.1:"), "{}", up.said);
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
    let address = gateway[0].split(['/', ' ']).find(|word| word.starts_with("127.")).unwrap();
    assert_eq!(hello(address), "Hello from the gateway.\n");
    assert!(ask(address).contains("You said: hello"), "{}", ask(address));
    let route = Key::new(Some("default"), "hello");
    let change = |route: &mut GatewayRoute| {
        route.spec.rules[0].filters.respond.as_mut().unwrap().body = "changed".into();
    };
    person.modify(&route, change).await.unwrap();
    let programmed = || async {
        let route = person.live().get::<GatewayRoute>(&route).await.unwrap()?;
        let status = route.status.as_ref()?;
        let mut conditions = status.conditions.iter();
        let is_programmed =
            conditions.any(|condition| condition.type_ == "Programmed" && condition.status == "True");
        (is_programmed && status.observed_generation == route.metadata.generation).then_some(())
    };
    eventually(programmed).within(Duration::from_secs(60)).await;
    assert_eq!(hello(address), "changed", "as soon as the status says so");
    person.create(&shop()).await.unwrap();
    let deployment = eventually(|| async { person.live().get::<Deployment>(&key).await.unwrap() }).await;
    let ready = || async {
        let app = person.live().get::<WebApp>(&key).await.unwrap()?;
        let status = app.status.as_ref()?;
        let mut conditions = status.conditions.iter();
        let is_done =
            conditions.any(|condition| condition.type_ == "Progressing" && condition.status == "False");
        (is_done && status.ready_replicas == 2).then_some(())
    };
    eventually(ready).within(Duration::from_secs(60)).await;
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

/// The commands of a chapter of the book, each with what it prints.
fn transcript(chapter: &str) -> Vec<(String, String)> {
    let book = include_str!("../../../docs/book/versions.md");
    let chapter = book.split_once(chapter).unwrap().1.split("\n## ").next().unwrap();
    let mut steps: Vec<(String, String)> = Vec::new();
    for block in chapter.split("```console").skip(1) {
        for line in block.split("```").next().unwrap().lines().map(str::trim_start) {
            match (line.strip_prefix("$ "), line.strip_prefix("> "), steps.last_mut()) {
                (Some(command), _, _) => steps.push((format!("{command}\n"), String::new())),
                (_, Some(more), Some((command, _))) => *command += &format!("{more}\n"),
                (None, None, Some((_, said))) if !line.is_empty() => *said += &format!("{line}\n"),
                _ => {}
            }
        }
    }
    steps
}

#[test]
fn webhooks_of_an_operator_are_asked_and_the_book_says_how_one_version_becomes_two() {
    let directory = tempfile::tempdir().unwrap();
    let up = Up::start(directory.path(), &["--port", "0", "--only", "webapp", "--no-workloads"]);
    let program = Path::new(env!("CARGO_BIN_EXE_watchkeeper")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let run = |command: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("PATH", &path).current_dir(directory.path());
        let output =
            shell.env("KUBECONFIG", directory.path().join(".watchkeeper/kubeconfig")).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap().trim_end().to_owned()
    };
    let steps = transcript("## From one version to two");
    assert!(steps.len() >= 9, "{steps:?}");
    for (command, said) in steps {
        assert_eq!(run(&command), said.trim_end(), "{command}");
    }
    // Validation is by a webhook, too, and so are its warnings.
    let refused = run("kubectl create -f - <<'END'\n\
        {\"apiVersion\": \"apps.watchkeeper.dev/v1alpha1\", \"kind\": \"WebApp\", \"metadata\": {\"name\": \"bad\"},\n\
         \"spec\": {\"image\": \"nginx:latest\", \"replicas\": 1, \"port\": 80, \"env\": {\"1ST\": \"x\"}}}\nEND");
    assert!(refused.contains("spec.environment: Invalid value: \"1ST\""), "{refused}");
    assert!(
        refused.contains("Warning: spec.image: \"nginx:latest\" may be another program tomorrow"),
        "{refused}"
    );
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
fn a_command_runs_beside_it_and_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let beside = |arguments: &[&str]| {
        let all = [&["--port", "0", "--metrics-port", "0", "--no-workloads", "--"], arguments].concat();
        let output = up(directory.path(), &all).output().unwrap();
        let [said, complaint] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.code(), said, complaint)
    };
    // From wherever it is run.
    let ask = "cd / && kubectl get namespace default -o name";
    let (code, said, complaint) = beside(&["sh", "-c", ask]);
    assert_eq!((code, &*complaint), (Some(0), ""), "{said}");
    let (before, after) = said.split_once("\nnamespace/default\n").expect(&said);
    assert!(before.contains("Ctrl-C") && after.starts_with("  stopped "), "{said}");

    let (code, _, complaint) = beside(&["sh", "-c", "exit 3"]);
    assert_eq!((code, &*complaint), (Some(1), "watchkeeper: sh ended: exit status: 3\n"));
    let (code, said, complaint) = beside(&["no-such-program"]);
    assert_eq!(code, Some(2), "{complaint}");
    assert!(
        complaint.starts_with("watchkeeper: cannot run no-such-program: ") && said.contains("  stopped ")
    );

    // A signal is handed on, and what the command does then is waited for.
    let patient = "trap 'echo in order; exit 7' TERM; echo here; while :; do sleep 0.05; done";
    let mut running =
        Up::start(directory.path(), &["--port", "0", "--no-workloads", "--", "sh", "-c", patient]);
    while !running.said.ends_with("here\n") {
        assert_ne!(running.stdout.read_line(&mut running.said).unwrap(), 0, "{}", running.said);
    }
    // Another one meanwhile runs beside the same.
    let (code, said, complaint) = beside(&["sh", "-c", ask]);
    assert_eq!((code, &*complaint), (Some(0), ""), "{said}");
    assert!(said.starts_with("  api server   runs already: .watchkeeper/data is in use by "), "{said}");
    assert!(said.ends_with("\nnamespace/default\n") && said.lines().count() == 2, "{said}");
    let (code, last, complaint) = running.stop();
    assert_eq!((code, &*complaint), (Some(0), ""));
    assert!(last.starts_with("in order\n  stopped "), "{last}");
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

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// What `up` says when it does not start; one that starts is killed.
fn refused(directory: &Path, arguments: &[&str]) -> String {
    let mut child = up(directory, &[&["--port", "0"], arguments].concat()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    if !first.is_empty() {
        child.kill().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), complaint.lines().count()), (Some(2), 1), "{complaint}");
    complaint
}

#[test]
fn a_folder_that_is_not_this_users_alone_is_refused() {
    const ELSE: &str = "or name another directory with --data-dir\n";
    let directory = tempfile::tempdir().unwrap();
    let (path, folder) = (directory.path(), directory.path().join(".watchkeeper"));

    fs::create_dir(path.join("elsewhere")).unwrap();
    symlink("elsewhere", &folder).unwrap();
    for named in [".watchkeeper", ".watchkeeper/", ".watchkeeper/."] {
        let complaint = refused(path, &["--data-dir", named]);
        assert_eq!(complaint, format!("watchkeeper: .watchkeeper is a symbolic link: remove it, {ELSE}"));
    }
    assert_eq!(fs::read_dir(path.join("elsewhere")).unwrap().count(), 0);
    fs::remove_file(&folder).unwrap();

    fs::write(&folder, "").unwrap();
    assert!(refused(path, &[]).contains(".watchkeeper is not a directory: remove it"));
    fs::remove_file(&folder).unwrap();

    fs::create_dir(&folder).unwrap();
    for lax in [0o777, 0o770, 0o702] {
        set_mode(&folder, lax);
        let complaint = refused(path, &[]);
        let expected = format!(
            "others can write to it (mode {lax:04o}): if all in it is yours, run chmod 700 .watchkeeper"
        );
        assert!(complaint.contains(&expected), "{complaint}");
    }
    set_mode(&folder, 0o700);

    // Only the superuser can give something away.
    if std::os::unix::fs::chown(&folder, Some(12345), None).is_ok() {
        assert!(refused(path, &[]).contains(".watchkeeper belongs to another user (uid 12345): remove it"));
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn links_in_the_folder_are_refused_and_what_they_point_to_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (victim, target) = (path.join("bashrc"), path.join("target"));
    fs::write(&victim, "precious").unwrap();
    fs::create_dir(&target).unwrap();
    let names = [
        ".gitignore",
        "webapp.yaml",
        "kubeconfig",
        "data",
        "data/LOCK",
        "data/credentials",
        "data/credentials/ca.key",
    ];
    for name in names {
        let folder = path.join(".watchkeeper");
        let link = folder.join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        set_mode(&folder, 0o700);
        symlink(if name.contains('.') || name.ends_with("LOCK") { &victim } else { &target }, &link).unwrap();
        for arguments in [&[][..], &["--fresh"]] {
            let complaint = refused(path, arguments);
            let expected = format!(
                "watchkeeper: .watchkeeper/{name} is a symbolic link, and nothing is read or written through it: remove it\n"
            );
            assert_eq!(complaint, expected);
        }
        fs::remove_dir_all(&folder).unwrap();
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

#[test]
fn a_folder_that_came_with_a_repository_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (path, folder) = (directory.path(), directory.path().join(".watchkeeper"));
    let git = |arguments: &[&str]| {
        let status =
            Command::new("git").args(arguments).current_dir(path).status().expect("git is installed");
        assert!(status.success());
    };
    git(&["init", "--quiet"]);
    fs::create_dir_all(folder.join("data/credentials")).unwrap();
    set_mode(&folder, 0o700);
    fs::write(folder.join("data/credentials/admin.token"), "a-token-that-its-author-knows\n").unwrap();
    set_mode(&folder.join("data/credentials/admin.token"), 0o600);
    git(&["add", "--force", ".watchkeeper"]);
    for arguments in [&[][..], &["--fresh"]] {
        let complaint = refused(path, arguments);
        let expected =
            "watchkeeper: .watchkeeper is tracked by git (.watchkeeper/data/credentials/admin.token), and ";
        assert!(
            complaint.starts_with(expected) && complaint.contains("run git rm -r -f .watchkeeper, "),
            "{complaint}"
        );
    }
    git(&["rm", "--quiet", "-r", "-f", ".watchkeeper"]);
    let up = Up::start(path, &["--port", "0", "--no-workloads"]);
    let status = Command::new("git").args(["status", "--porcelain"]).current_dir(path).output().unwrap();
    assert_eq!(String::from_utf8(status.stdout).unwrap(), "", "git sees nothing of the folder");
    assert_eq!(up.stop().0, Some(0));
}

#[test]
fn the_folder_is_closed_to_others_and_one_of_before_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join(".watchkeeper");
    let start = || Up::start(directory.path(), &["--port", "0", "--no-workloads"]).stop();
    assert_eq!(start().2, "");
    assert_eq!(mode(&folder), 0o700);
    for file in ["kubeconfig", ".gitignore", "data/credentials/admin.token"] {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
    set_mode(&folder, 0o755);
    let (code, _, remark) = start();
    assert_eq!((code, mode(&folder)), (Some(0), 0o700));
    let expected =
        ".watchkeeper could be looked into by others (mode 0755), and is now closed to them (0700)\n";
    assert!(remark.ends_with(expected) && remark.lines().count() == 1, "{remark}");
    assert_eq!(start().2, "");
}
