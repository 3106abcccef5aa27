//! The binary under the names that envtest looks for.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(60);
const BINARY: &str = env!("CARGO_BIN_EXE_watchkeeper");

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Lays out a folder, with nothing of the environment but this.
fn lay_out(arguments: &[&str], environment: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(BINARY);
    command.arg("envtest").args(arguments).env_clear().envs(environment.iter().copied());
    command.output().unwrap()
}

fn assets(directory: &Path) -> PathBuf {
    let folder = directory.join("assets");
    let output = lay_out(&["--print-path", "--dir", folder.to_str().unwrap()], &[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stdout), format!("{}\n", folder.display()));
    folder
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A program that is killed if the test does not end it.
struct Running(Child);

impl Running {
    fn start(program: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        Self(command.args(arguments).stdout(Stdio::null()).spawn().unwrap())
    }

    /// Ends it as envtest does, and says how it ended.
    fn stop(mut self) -> Option<i32> {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
        self.0.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn curl(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new("curl").args(["-sS", "--noproxy", "*"]).args(arguments).output();
    let output = output.expect("curl is installed");
    (output.status.code(), text(&output.stdout))
}

/// Asks until the answer is this.
fn until(answer: &str, arguments: &[&str]) {
    let deadline = Instant::now() + TIMEOUT;
    while curl(arguments) != (Some(0), answer.to_owned()) {
        assert!(Instant::now() < deadline, "{:?} is not {answer}", curl(arguments));
        std::thread::yield_now();
    }
}

#[test]
fn a_folder_is_laid_out_once_and_again_and_by_several_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path();
    let run = || lay_out(&["--print-path"], &[("XDG_CACHE_HOME", cache)]);
    let outputs: Vec<Output> =
        (0..4).map(|_| std::thread::scope(|scope| scope.spawn(run).join().unwrap())).collect();
    let at_once: Vec<Output> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let path = text(&outputs[0].stdout);
    for output in outputs.iter().chain(&at_once) {
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        assert_eq!(text(&output.stdout), path);
    }
    let folder = Path::new(path.trim_end());
    assert!(folder.starts_with(cache.join("watchkeeper/envtest")), "{path}");
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["etcd", "kube-apiserver", "kubectl"]);
}

#[test]
fn kubectl_is_the_one_that_is_named_or_in_the_path_or_explains_itself() {
    let directory = tempfile::tempdir().unwrap();
    let kubectl = directory.path().join("kubectl");
    fs::write(&kubectl, "#!/bin/sh\necho \"kubectl $1\"\n").unwrap();
    fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
    let folder = directory.path().join("assets");
    let arguments = ["--print-path", "--dir", folder.to_str().unwrap()];
    let says = || {
        let output = Command::new(folder.join("kubectl")).arg("version").output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };

    assert!(lay_out(&arguments, &[]).status.success());
    let (code, _, error) = says();
    assert_eq!(code, Some(1));
    assert!(error.starts_with("kubectl: there was no kubectl when this folder was made"), "{error}");

    assert!(lay_out(&arguments, &[("PATH", directory.path())]).status.success());
    assert_eq!(says(), (Some(0), "kubectl version\n".to_owned(), String::new()));
    // A folder that is in the path itself does not lead to itself.
    assert!(lay_out(&arguments, &[("PATH", &folder)]).status.success());
    assert_eq!(says().0, Some(1));

    let other = directory.path().join("other");
    symlink(&kubectl, &other).unwrap();
    assert!(lay_out(&arguments, &[("KUBECTL", &other)]).status.success());
    assert_eq!(says().1, "kubectl version\n");
    let missing = lay_out(&arguments, &[("KUBECTL", Path::new("/none/kubectl"))]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("$KUBECTL is /none/kubectl"), "{missing:?}");
}

#[test]
fn without_a_home_a_folder_has_to_be_named() {
    let output = lay_out(&["--print-path"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--dir DIR"), "{output:?}");
}

#[test]
fn what_envtest_probes_for_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let folder = assets(directory.path());
    let has = |program: &str, flag: &str| {
        let output = Command::new(folder.join(program)).arg("--help").output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        text(&output.stdout).lines().any(|line| line.trim_start().starts_with(&format!("--{flag} ")))
    };
    assert!(has("etcd", "unsafe-no-fsync"));
    assert!(has("kube-apiserver", "secure-port"));
    assert!(!has("kube-apiserver", "insecure-port"));
    let wrong = Command::new(folder.join("kube-apiserver")).arg("--insecure-port=0").output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert_eq!(text(&wrong.stderr), "kube-apiserver: unknown flag: --insecure-port=0\n");
}

#[test]
fn a_server_serves_and_what_it_stored_is_there_for_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let folder = assets(directory.path());
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (client, secure) = (format!("http://127.0.0.1:{}", free_port()), free_port().to_string());
    let etcd = Running::start(
        &folder.join("etcd"),
        &[
            &format!("--advertise-client-urls={client}"),
            &format!("--listen-client-urls={client}"),
            "--listen-peer-urls=http://127.0.0.1:0",
            &format!("--data-dir={}", path("etcd")),
            "--unsafe-no-fsync=true",
        ],
    );
    until(r#"{"health":"true","reason":""}"#, &[&format!("{client}/health")]);

    fs::write(path("tokens.csv"), "secret-token,root,1,system:masters\n").unwrap();
    let start = || {
        let server = Running::start(
            &folder.join("kube-apiserver"),
            &[
                "--allow-privileged=true",
                "--authorization-mode=RBAC",
                "--bind-address=127.0.0.1",
                &format!("--cert-dir={}", path("certs")),
                "--disable-admission-plugins=ServiceAccount",
                &format!("--etcd-servers={client}"),
                "--secure-port",
                &secure,
                "--service-cluster-ip-range=10.0.0.0/24",
                &format!("--token-auth-file={}", path("tokens.csv")),
            ],
        );
        until("ok", &["--insecure", &format!("https://127.0.0.1:{secure}/healthz")]);
        server
    };
    let maps = format!("https://127.0.0.1:{secure}/api/v1/namespaces/default/configmaps");
    let certificate = path("certs/apiserver.crt");
    let trusted = ["--cacert", &certificate, "-H", "Authorization: Bearer secret-token", "-o", "/dev/null"];
    let code = |more: &[&str]| curl(&[&trusted[..], &["-w", "%{http_code}"], more].concat());

    let server = start();
    let object = r#"{"metadata":{"name":"survivor"}}"#;
    let posted = code(&["-H", "Content-Type: application/json", "-d", object, &maps]);
    assert_eq!(posted, (Some(0), "201".to_owned()));
    assert_eq!(server.stop(), Some(0));

    let server = start();
    assert_eq!(code(&[&format!("{maps}/survivor")]), (Some(0), "200".to_owned()));
    assert_eq!(server.stop(), Some(0));
    assert_eq!(etcd.stop(), Some(0));
}

#[test]
fn files_of_others_are_used_with_a_warning_if_more_than_their_owner_can_get_at_them() {
    let directory = tempfile::tempdir().unwrap();
    let folder = assets(directory.path());
    let secrets = directory.path().join("secrets");
    fs::create_dir(&secrets).unwrap();
    let tokens = secrets.join("tokens.csv");
    fs::write(&tokens, "secret-token,root,1,system:masters\n").unwrap();
    // The mode that envtest gives to its files.
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o640)).unwrap();
    let shown = tokens.display();
    let warned = format!("{shown}: others can read it (mode 0640): run chmod 600 {shown}");
    let port = free_port().to_string();
    for (mode, warnings) in [(0o700, vec![]), (0o755, vec![warned.as_str()])] {
        fs::set_permissions(&secrets, fs::Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new(folder.join("kube-apiserver"));
        command.args(["--authorization-mode=RBAC", "--bind-address=127.0.0.1", "--secure-port", &port]);
        command.arg(format!("--cert-dir={}", directory.path().join("certs").display()));
        command.arg(format!("--token-auth-file={shown}")).stderr(Stdio::piped());
        let mut server = Running(command.spawn().unwrap());
        until("ok", &["--insecure", &format!("https://127.0.0.1:{port}/healthz")]);
        let mut stderr = server.0.stderr.take().unwrap();
        assert_eq!(server.stop(), Some(0));
        let mut log = String::new();
        stderr.read_to_string(&mut log).unwrap();
        let said: Vec<&str> =
            log.lines().map(|line| line.split_once("kube_apiserver: ").unwrap().1).collect();
        assert_eq!(said, warnings);
    }
}

#[test]
fn as_kube_apiserver_it_does_what_a_variable_says_of_the_work_of_controllers_and_nothing_otherwise() {
    let directory = tempfile::tempdir().unwrap();
    let folder = assets(directory.path());
    let tokens = directory.path().join("tokens.csv");
    fs::write(&tokens, "secret-token,jane,1,writers\n").unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    for (variable, is_emptied) in [(None, false), (Some("*,-garbage-collector-controller"), true)] {
        let port = free_port().to_string();
        let mut command = Command::new(folder.join("kube-apiserver"));
        command.args([
            "--authorization-mode=RBAC,AlwaysAllow",
            "--bind-address=127.0.0.1",
            "--secure-port",
            &port,
        ]);
        command.arg(format!("--cert-dir={}", directory.path().join("certs").display()));
        command.arg(format!("--token-auth-file={}", tokens.display())).stderr(Stdio::null());
        command.env_remove("WATCHKEEPER_CONTROLLERS");
        command.envs(variable.map(|value| ("WATCHKEEPER_CONTROLLERS", value)));
        let server = Running(command.spawn().unwrap());
        let url = |path: &str| format!("https://127.0.0.1:{port}{path}");
        let code = |arguments: &[&str]| {
            let (_, code) =
                curl(&[&["--insecure", "-o", "/dev/null", "-w", "%{http_code}"], arguments].concat());
            code
        };
        let jane = ["-H", "Authorization: Bearer secret-token"];
        until("ok", &[&["--insecure"], &jane[..], &[&url("/healthz")]].concat());
        assert_eq!(code(&[&url("/healthz")]), "401", "nobody is anonymous where everything is allowed");
        let roles = url("/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin");
        assert_eq!(code(&[&jane[..], &[&roles]].concat()), "200");
        let json = ["-H", "Content-Type: application/json", "-d", r#"{"metadata":{"name":"going"}}"#];
        assert_eq!(code(&[&jane[..], &json[..], &[&url("/api/v1/namespaces")]].concat()), "201");
        let namespace = url("/api/v1/namespaces/going");
        assert_eq!(code(&[&jane[..], &["-X", "DELETE", &namespace]].concat()), "200");
        if is_emptied {
            let deadline = Instant::now() + TIMEOUT;
            while code(&[&jane[..], &[&namespace]].concat()) != "404" {
                assert!(Instant::now() < deadline, "the namespace is still there");
            }
        } else {
            let empty = r#"{"metadata":{"name":"going"},"spec":{"finalizers":[]}}"#;
            let finalize = ["-X", "PUT", "-H", "Content-Type: application/json", "-d", empty];
            let done = code(&[&jane[..], &finalize[..], &[&format!("{namespace}/finalize")]].concat());
            assert_eq!(done, "200", "it waits for whoever does that");
        }
        let maps =
            code(&[&jane[..], &[&url("/api/v1/namespaces/default/configmaps/kube-root-ca.crt")]].concat());
        assert_eq!(maps, "404", "this server does not know who has signed its certificate");
        assert_eq!(server.stop(), Some(0));
    }
}
