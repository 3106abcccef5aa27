//! The binary, as a person at a terminal or a script sees it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const TOKEN: &str = "a-token-for-tests";

fn watchkeeper(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command that is to end by itself; a server that begins to serve is killed.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut child = watchkeeper(arguments).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    if first.starts_with("ready") {
        child.kill().unwrap();
    }
    let (code, rest, error) = told(child.wait_with_output().unwrap());
    (code, first + &rest, error)
}

fn told(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A server that is ready, killed if the test does not end it.
struct Server {
    child: Option<Child>,
    ready: String,
    http: SocketAddr,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        Self::start_with_files("", arguments)
    }

    /// Starts it after this `ulimit` for open files.
    fn start_with_files(limit: &str, arguments: &[&str]) -> Self {
        let http = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let plain = http.to_string();
        let always = ["serve", "--listen", "127.0.0.1:0", "--http", &plain];
        let mut command = watchkeeper(&[&always, arguments].concat());
        if !limit.is_empty() {
            let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]).arg(command.get_program()).args(command.get_args());
            shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command = shell;
        }
        let mut child = command.spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        if ready.is_empty() {
            panic!("{:?}", told(child.wait_with_output().unwrap()));
        }
        Self { child: Some(child), ready, http }
    }

    fn signal(&self, name: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    fn end(mut self) -> (Option<i32>, String, String) {
        told(self.child.take().unwrap().wait_with_output().unwrap())
    }

    /// Sends a request and leaves the connection open.
    fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.http).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn get(&self, path: &str) -> String {
        let head = format!("host: localhost\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n");
        let mut answer = String::new();
        self.send(&format!("GET {path} HTTP/1.1\r\n{head}\r\n")).read_to_string(&mut answer).unwrap();
        answer
    }

    /// Waits until nobody is let in any more.
    fn closed(&self) {
        let begin = Instant::now();
        while TcpStream::connect(self.http).is_ok() {
            assert!(begin.elapsed() < Duration::from_secs(60));
            thread::yield_now();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn set_mode(file: &Path, mode: u32) {
    std::fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
}

fn token_file(directory: &Path) -> String {
    let file = directory.join("tokens.csv");
    std::fs::write(&file, format!("{TOKEN},tester,1,system:masters\n")).unwrap();
    set_mode(&file, 0o600);
    file.to_str().unwrap().to_owned()
}

fn read_until(stream: &mut TcpStream, seen: &mut Vec<u8>, end: &[u8]) {
    let mut buffer = [0; 4096];
    while !seen.windows(end.len()).any(|window| window == end) {
        let count = stream.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "{}", String::from_utf8_lossy(seen));
        seen.extend_from_slice(&buffer[..count]);
    }
}

#[test]
fn it_says_when_and_where_it_serves_and_ends_with_sigterm() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["--in-memory", "--token-file", &token_file(directory.path())]);
    let (time, url) = server.ready.trim_end().strip_prefix("ready in ").unwrap().split_once(" ms: ").unwrap();
    assert!(time.parse::<u64>().is_ok() && url.starts_with("https://127.0.0.1:"), "{}", server.ready);
    assert!(server.get("/version").starts_with("HTTP/1.1 200"));
    server.signal("TERM");
    assert_eq!(server.end(), (Some(0), String::new(), String::new()));
}

#[test]
fn a_watch_ends_cleanly_with_sigint() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["--in-memory", "--token-file", &token_file(directory.path())]);
    let path = "/api/v1/namespaces?watch=true";
    let mut watch =
        server.send(&format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n\r\n"));
    let mut seen = Vec::new();
    read_until(&mut watch, &mut seen, b"ADDED");
    server.signal("INT");
    watch.read_to_end(&mut seen).unwrap();
    assert!(seen.ends_with(b"\r\n0\r\n\r\n"), "{}", String::from_utf8_lossy(&seen));
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn nothing_of_a_secret_or_a_token_is_logged() {
    let directory = tempfile::tempdir().unwrap();
    let tokens = token_file(directory.path());
    let server = Server::start(&["--in-memory", "--token-file", &tokens, "--log", "trace"]);
    let path = "/api/v1/namespaces/default/secrets";
    // "swordfish" as it is sent, and in base64, as it is kept.
    for body in [
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"k":"swordfish"}}"#,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"t"},"data":{"k":"c3dvcmRmaXNo"}}"#,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bad"},"data":{"k":"swordfish!"}}"#,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bad"},"data":"swordfish"}"#,
        r#"{"swordfish"#,
    ] {
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        let mut answer = String::new();
        server.send(&request).read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 201") || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert!(server.get(&format!("{path}/s")).contains("c3dvcmRmaXNo"));
    server.signal("TERM");
    let (code, _, log) = server.end();
    assert_eq!(code, Some(0));
    assert!(log.contains(path), "requests are logged: {log}");
    for secret in ["swordfish", "c3dvcmRmaXNo", TOKEN] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::start(&["--in-memory", "--token-file", &token_file(directory.path())]);
        let head = format!("host: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n");
        let mut unfinished = server.send(&format!(
            "POST /api/v1/namespaces HTTP/1.1\r\n{head}expect: 100-continue\r\ncontent-length: 100\r\n\r\n"
        ));
        read_until(&mut unfinished, &mut Vec::new(), b"100 Continue"); // now it is being read
        server.signal(name);
        server.closed();
        server.signal(name);
        assert_eq!(server.end().0, Some(code));
    }
}

#[test]
fn a_kubeconfig_stays_good_over_a_restart_and_kubectl_likes_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (data, kubeconfig) = (path("data"), path("kubeconfig"));
    let arguments = ["--data-dir", &data, "--kubeconfig", &kubeconfig];
    let kubectl = |arguments: &[&str]| {
        let output = Command::new("kubectl").arg("--kubeconfig").arg(&kubeconfig).args(arguments).output();
        told(output.expect("kubectl is installed"))
    };

    let server = Server::start(&arguments);
    let first = std::fs::read_to_string(&kubeconfig).unwrap();
    let namespace = path("namespace.yaml");
    std::fs::write(&namespace, "apiVersion: v1\nkind: Namespace\nmetadata: {name: kept}\n").unwrap();
    let (code, _, error) = kubectl(&["create", "--validate=false", "-f", &namespace]);
    assert_eq!(code, Some(0), "{error}");
    server.signal("TERM");
    assert_eq!(server.end().0, Some(0));

    let _server = Server::start(&arguments);
    let second = std::fs::read_to_string(&kubeconfig).unwrap();
    let secrets = |text: &str| -> Vec<String> {
        // A client certificate is issued with each start, by the same authority.
        let kept = |line: &&str| line.contains("token") || line.contains("certificate-authority");
        text.lines().filter(kept).map(str::to_owned).collect()
    };
    assert_eq!(secrets(&first), secrets(&second));
    assert_eq!(secrets(&first).len(), 2);
    let (code, output, error) = kubectl(&["get", "namespace", "kept", "-o", "name"]);
    assert_eq!((code, output.as_str()), (Some(0), "namespace/kept\n"), "{error}");
}

#[test]
fn the_certificate_of_a_kubeconfig_is_good_without_its_token() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (kubeconfig, question) = (path("kubeconfig"), path("question.yaml"));
    let _server = Server::start(&["--in-memory", "--kubeconfig", &kubeconfig]);
    std::fs::write(&question, "apiVersion: authentication.k8s.io/v1\nkind: SelfSubjectReview\n").unwrap();
    let whole = std::fs::read_to_string(&kubeconfig).unwrap();
    let without = |words: &[&str]| {
        let kept = whole.lines().filter(|line| !words.iter().any(|word| line.contains(word)));
        let kept: Vec<&str> = kept.collect();
        assert!(kept.len() < whole.lines().count(), "there is no {words:?}");
        std::fs::write(&kubeconfig, kept.join("\n")).unwrap();
        let asked =
            ["create", "--validate=false", "-f", &question, "-o", "jsonpath={.status.userInfo.groups}"];
        let output = Command::new("kubectl").arg("--kubeconfig").arg(&kubeconfig).args(asked).output();
        told(output.expect("kubectl is installed"))
    };
    for credentials in [&["token:"][..], &["client-certificate-data:", "client-key-data:"]] {
        let (code, groups, error) = without(credentials);
        assert_eq!(code, Some(0), "without {credentials:?}: {error}");
        assert!(groups.contains("system:masters"), "without {credentials:?}: {groups}");
    }
    let (code, groups, _) = without(&["token:", "client-certificate-data:", "client-key-data:"]);
    assert_ne!(code, Some(0), "strangers are told who they are: {groups}");
}

#[test]
fn a_data_directory_belongs_to_one_server_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    let server = Server::start(&["--data-dir", data]);
    let (code, output, error) = run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data]);
    let holder = server.child.as_ref().unwrap().id();
    assert_eq!(error, format!("watchkeeper: {data} is in use by process {holder}\n"));
    assert_eq!((code, output.as_str()), (Some(1), ""));
}

#[test]
fn what_cannot_be_is_one_line_and_code_2() {
    let directory = tempfile::tempdir().unwrap();
    let notes = directory.path().join("notes");
    std::fs::write(&notes, "my notes").unwrap();
    let notes = notes.to_str().unwrap();
    for (arguments, complaint) in [
        (&[][..], "where should the data live? --data-dir DIR keeps it, --in-memory forgets it at the end".to_owned()),
        (
            &["--in-memory", "--kubeconfig", notes],
            format!("kubeconfig {notes}: is not a kubeconfig, and is not overwritten: choose another file"),
        ),
        (&["--in-memory", "--log", "loud"], "--log \"loud\" is not a filter: try info, or warn,NAME=debug".to_owned()),
        (
            &["--in-memory", "--http", "0.0.0.0:0"],
            "plain HTTP carries tokens in the clear and is only served on loopback addresses, not on 0.0.0.0:0"
                .to_owned(),
        ),
        (
            &["--in-memory", "--token-file", notes],
            format!(
                "token file {notes}: line 1 has 1 columns, at least 3 are needed: token, user name, user uid"
            ),
        ),
        (
            &["--in-memory", "--tls-san", "a b"],
            "\"a b\" cannot be in a certificate: it is neither a host name nor an address".to_owned(),
        ),
    ] {
        let result = run(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat());
        assert_eq!(result, (Some(2), String::new(), format!("watchkeeper: {complaint}\n")));
    }
    let (code, _, error) = run(&["serve", "--in-memory", "--history", "soon"]);
    assert!(
        code == Some(2) && error.contains("\"soon\" is not a duration such as 90s, 5m or 1h30m"),
        "{error}"
    );
    assert_eq!(run(&["serve", "--in-memory", "--data-dir", "x"]).0, Some(2));
    assert_eq!(run(&["fly"]).0, Some(2));
}

#[test]
fn secrets_that_others_can_read_or_change_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let text = |file: &Path| file.to_str().unwrap().to_owned();
    let serve = |arguments: &[&str]| run(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat());
    let refused =
        |code, complaint: String| (Some(code), String::new(), format!("watchkeeper: {complaint}\n"));

    let tokens = token_file(path);
    for (mode, can) in [(0o644, "read"), (0o640, "read"), (0o666, "change")] {
        set_mode(Path::new(&tokens), mode);
        let complaint = format!("{tokens}: others can {can} it (mode {mode:04o}): run chmod 600 {tokens}");
        assert_eq!(serve(&["--in-memory", "--token-file", &tokens]), refused(2, complaint));
    }

    let data = path.join("data");
    let arguments = ["--data-dir", &text(&data)];
    assert!(serve(&arguments).1.starts_with("ready"));
    for name in ["ca.key", "server.key", "admin.token", "service-accounts.key"] {
        let file = data.join("credentials").join(name);
        set_mode(&file, 0o644);
        let shown = file.display();
        let complaint = format!("{shown}: others can read it (mode 0644): run chmod 600 {shown}");
        assert_eq!(serve(&arguments), refused(1, complaint));
        set_mode(&file, 0o600);
    }
    for mode in [0o777, 0o1777] {
        set_mode(&data, mode);
        let (code, _, error) = serve(&arguments);
        let complaint = format!(
            "watchkeeper: {0}: everybody can write to it (mode {mode:04o}): run chmod 700 {0}, ",
            data.display()
        );
        assert!(code == Some(2) && error.starts_with(&complaint), "{error}");
    }
    set_mode(&data, 0o770);
    let (_, said, warning) = serve(&arguments);
    assert!(said.starts_with("ready"), "{warning}");
    assert!(
        warning.contains("its group can write to it (mode 0770)") && warning.lines().count() == 1,
        "{warning}"
    );

    // Everybody can put another file in its place, but only this one is looked at.
    let open = path.join("open");
    std::fs::create_dir(&open).unwrap();
    set_mode(&open, 0o777);
    let (_, said, warning) = serve(&["--in-memory", "--token-file", &token_file(&open)]);
    assert!(said.starts_with("ready"), "{warning}");
    assert!(warning.contains("can be replaced by everybody: run chmod o-w "), "{warning}");
}

#[test]
fn a_kubeconfig_is_not_written_through_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let (link, victim) = (directory.path().join("kubeconfig"), directory.path().join("victim"));
    std::fs::write(&victim, "").unwrap();
    std::os::unix::fs::symlink(&victim, &link).unwrap();
    let link = link.to_str().unwrap();
    let (code, _, error) = run(&["serve", "--listen", "127.0.0.1:0", "--in-memory", "--kubeconfig", link]);
    let complaint = "is a symbolic link, and is not written through: name the file itself";
    assert_eq!((code, error), (Some(2), format!("watchkeeper: kubeconfig {link}: {complaint}\n")));
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "");
}

#[test]
fn a_server_that_is_open_to_many_says_so_once() {
    let begin = ["serve", "--in-memory", "--listen"];
    let warned = |arguments: &[&str]| {
        let (_, _, error) = run(&[&begin, arguments].concat());
        let warnings = error.lines().filter(|line| line.contains(" WARN "));
        warnings.map(|line| line.split_once(": ").unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(warned(&["127.0.0.1:0"]), [""; 0]);
    let everything = "authorization is off: every client with credentials may do everything";
    assert_eq!(warned(&["127.0.0.1:0", "--authorization", "none"]), [everything]);
    // An address for documentation, that no machine has: it ends before anybody could connect.
    let beyond = "listening on 192.0.2.1:6443: other machines can connect";
    assert_eq!(warned(&["192.0.2.1:6443"]), [beyond]);
    assert_eq!(warned(&["192.0.2.1:6443", "--authorization", "none"]), [everything, beyond]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_leaves_no_core_dump_with_its_keys() {
    let raise = "ulimit -S -c $(ulimit -H -c); exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", raise, "sh", env!("CARGO_BIN_EXE_watchkeeper"), "serve", "--in-memory"]);
    let mut child = command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    let id = child.id();
    let limits = std::fs::read_to_string(format!("/proc/{id}/limits")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
}

#[test]
fn an_address_in_use_is_a_failure_with_code_1() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, _, error) = run(&["serve", "--in-memory", "--listen", &address]);
    assert_eq!(code, Some(1));
    assert!(
        error.starts_with(&format!("watchkeeper: cannot listen on {address}: Address already in use")),
        "{error}"
    );
}

#[test]
fn it_knows_its_version() {
    let expected = format!("watchkeeper {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["version"]), (Some(0), expected.clone(), String::new()));
    assert_eq!(run(&["--version"]), (Some(0), expected, String::new()));
}

/// Opens connections and says nothing on them.
fn silent(server: &Server, count: usize) -> Vec<TcpStream> {
    let https: SocketAddr = server.ready.trim_end().rsplit_once("https://").unwrap().1.parse().unwrap();
    (0..count).map(|number| TcpStream::connect([https, server.http][number % 2]).unwrap()).collect()
}

#[test]
fn strangers_with_more_connections_than_files_do_not_keep_others_out() {
    let directory = tempfile::tempdir().unwrap();
    let file = token_file(directory.path());
    let server = Server::start_with_files("-n 256", &["--in-memory", "--token-file", &file]);
    let mut watch = server.send(&format!(
        "GET /api/v1/namespaces?watch=true HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
    ));
    let mut seen = Vec::new();
    read_until(&mut watch, &mut seen, b"kube-system");
    let strangers = silent(&server, 600);
    for _ in 0..10 {
        let begin = Instant::now();
        assert!(server.get("/readyz").starts_with("HTTP/1.1 200"));
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    }
    let metrics = server.get("/metrics");
    assert!(metrics.contains("watchkeeper_connections_dropped_total{reason=\"evicted\"}"), "{metrics}");
    watch.set_nonblocking(true).unwrap();
    let open = loop {
        match watch.read(&mut [0; 4096]) {
            Ok(0) => break false,
            Ok(_) => {}
            Err(error) => break error.kind() == std::io::ErrorKind::WouldBlock,
        }
    };
    assert!(open, "the watch was there before");
    drop(strangers);
    server.signal("TERM");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn a_server_that_ran_out_of_files_closes_strangers_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let file = token_file(directory.path());
    // More than there are files, so that nobody is refused for being too many.
    let arguments = ["--in-memory", "--token-file", &file, "--max-connections", "5000"];
    let server = Server::start_with_files("-n 64", &arguments);
    let strangers = silent(&server, 120);
    for _ in 0..10 {
        let begin = Instant::now();
        assert!(server.get("/readyz").starts_with("HTTP/1.1 200"));
        // Strangers that say nothing are closed after 10 s in any case: that would be too late.
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    }
    let metrics = server.get("/metrics");
    let evicted = "watchkeeper_connections_dropped_total{reason=\"evicted\"} ";
    let evicted = metrics.lines().find_map(|line| line.strip_prefix(evicted)?.parse::<u64>().ok());
    assert!(evicted.is_some_and(|evicted| evicted > 0), "{metrics}");
    drop(strangers);
    server.signal("TERM");
    let (code, _, error) = server.end();
    assert_eq!(code, Some(0));
    let said = error.matches("connections cannot be accepted").count();
    assert!((1..20).contains(&said), "{said} times: {error}");
}

#[test]
fn the_limit_of_open_files_is_raised_as_far_as_it_goes() {
    let server = Server::start_with_files("-S -n 64", &["--in-memory"]);
    let limits = format!("/proc/{}/limits", server.child.as_ref().unwrap().id());
    let Ok(limits) = std::fs::read_to_string(limits) else { return };
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = line.trim_start_matches("Max open files").split_whitespace().collect();
    assert_ne!(numbers[1], "64", "{line}");
    assert_eq!(numbers[0], numbers[1], "{line}");
}

#[test]
fn what_every_namespace_is_given_depends_on_the_controllers() {
    let directory = tempfile::tempdir().unwrap();
    let tokens = token_file(directory.path());
    let given = ["configmaps/kube-root-ca.crt", "serviceaccounts/default"];
    for (controllers, expected) in [
        ("*", [true, true]),
        ("*,-root-ca-certificate-publisher-controller", [false, true]),
        ("*,-serviceaccount-controller", [true, false]),
        ("", [false, false]),
    ] {
        let server = Server::start(&["--in-memory", "--token-file", &tokens, "--controllers", controllers]);
        let is_there = |what: &str| {
            server.get(&format!("/api/v1/namespaces/default/{what}")).starts_with("HTTP/1.1 200")
        };
        let begin = Instant::now();
        while given.map(is_there) != expected {
            assert!(begin.elapsed() < Duration::from_secs(20), "{controllers:?}: {:?}", given.map(is_there));
        }
        if !expected.contains(&true) {
            thread::sleep(Duration::from_millis(100));
            assert_eq!(given.map(is_there), expected, "nor later");
        }
    }
}

#[test]
fn clients_find_the_server_at_the_address_of_the_host() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["--in-memory", "--token-file", &token_file(directory.path())]);
    let endpoints = server.get("/api/v1/namespaces/default/endpoints/kubernetes");
    let way = std::net::UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    match way {
        Ok(own) => assert!(endpoints.contains(&format!("\"ip\":\"{}\"", own.ip())), "{endpoints}"),
        // A machine without a way to others has none.
        Err(_) => assert!(endpoints.starts_with("HTTP/1.1 404"), "{endpoints}"),
    }
}
