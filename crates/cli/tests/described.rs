//! The programs in this one, packaged as operators are: what they say about themselves is so, and `deploy/` is made of it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use watchkeeper::prelude::Connection;
use watchkeeper_description::{Description, Resource, Right, Verbs};
use watchkeeper_gateway::kinds::standard;
use watchkeeper_gateway::{From, Gateway, Options};
use watchkeeper_testkit::{Fate, TestEnv};

const TIMEOUT: Duration = Duration::from_secs(60);

fn watchkeeper(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn described(part: &str) -> Description {
    let output = watchkeeper(&["describe", part]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Description::from_json(&output.stdout).unwrap()
}

fn told(output: &Output) -> String {
    [&*output.stdout, &*output.stderr].map(String::from_utf8_lossy).concat()
}

#[test]
fn what_is_checked_in_for_the_api_server_and_the_gateway_is_what_the_code_says() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = tempfile::tempdir().unwrap();
    for (part, folder) in [("serve", "../../deploy/apiserver"), ("gateway", "../../deploy/gateway")] {
        let file = place.path().join(part);
        std::fs::write(&file, serde_json::to_vec(&described(part)).unwrap()).unwrap();
        let mut arguments =
            vec!["generate", "--check", "--output", folder, "--description", file.to_str().unwrap()];
        if part == "gateway" {
            arguments.extend(["--samples", "../gateway/samples"]);
        }
        let output = watchkeeper(&arguments).current_dir(here).output().unwrap();
        let hint = "run scripts/generate-deploy";
        assert!(output.status.success(), "{}\n{hint}", told(&output));
    }
}

#[test]
fn an_api_server_asks_nothing_of_the_cluster_that_it_runs_in_and_has_one_replica_with_a_volume() {
    let install = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/apiserver/install.yaml");
    let text = std::fs::read_to_string(install).unwrap();
    assert!(!text.contains("kind: ClusterRole") && !text.contains("kind: Role\n"), "{text}");
    for line in ["kind: StatefulSet", "replicas: 1", "automountServiceAccountToken: false", "storage: 1Gi"] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

/// An object of each kind that the gateway writes a status of: its plural and its spec.
fn objects() -> Vec<(&'static str, Value)> {
    let hello =
        json!([{"matches": [{"path": {"prefix": "/hello"}}], "filters": {"respond": {"body": "Hello."}}}]);
    let target = json!({"kind": "Route", "name": "one"});
    let provider = json!({"name": "mock", "dialect": "OpenAI", "url": "http://127.0.0.1:9"});
    // Without its certificate it is not listened on; its status says so.
    let tls = json!({"certificateRefs": [{"name": "none"}]});
    let listener = json!({"name": "web", "port": 8443, "protocol": "HTTPS", "tls": tls});
    vec![
        ("gatewaylisteners", json!({"port": 0})),
        ("gatewayroutes", json!({"rules": hello})),
        ("gatewaybackends", json!({"endpoints": [{"address": "127.0.0.1:9"}]})),
        ("gatewaypolicies", json!({"targets": [target], "addresses": {"allow": ["127.0.0.1"]}})),
        ("aigatewayconfigs", json!({"providers": [provider]})),
        ("mcproutes", json!({"servers": [{"name": "one", "url": "http://127.0.0.1:9/mcp"}]})),
        ("modelcontextmappings", json!({"model": "one", "targets": [{"provider": "mock", "model": "echo"}]})),
        ("llmgatewaypolicies", json!({"models": ["*"]})),
        ("prompttemplates", json!({"gateway": "one", "model": "one", "prompt": "Hello.", "template": "one"})),
        ("apidefinitions", json!({"title": "One"})),
        ("apisubscriptions", json!({"api": "one", "consumer": "somebody", "keys": ["one"]})),
        ("tenants", json!({"suspended": false})),
        ("gatewayclasses", json!({"controllerName": standard::CONTROLLER})),
        ("gateways", json!({"gatewayClassName": "one", "listeners": [listener]})),
        ("httproutes", json!({"parentRefs": [{"name": "one"}]})),
    ]
}

/// Where objects of a resource are.
fn collection(resource: &Resource) -> String {
    let namespace = if resource.namespaced { "/namespaces/default" } else { "" };
    format!("/apis/{}/{}{namespace}/{}", resource.group, resource.version, resource.plural)
}

async fn ask(env: &TestEnv, method: &str, path: &str, body: &Value) -> Result<Value, String> {
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let answer = env.connection().request(request.body(body).unwrap()).await;
    answer.map(|answer| serde_json::from_slice(&answer).unwrap()).map_err(|error| error.to_string())
}

/// A gateway under the rights of a description. Gives what it was refused.
async fn gateway_under(description: &Description) -> BTreeSet<String> {
    let env = TestEnv::builder().with_roles().start().await;
    let definitions = watchkeeper_gateway::kinds::definitions();
    for definition in definitions.iter().chain(&standard::definitions()) {
        env.install_yaml(&serde_json::to_string(definition).unwrap()).await;
    }
    let whole = watchkeeper_gateway::description();
    let mut made = Vec::new();
    for (plural, spec) in objects() {
        let right = whole.rights.iter().find(|right| right.resource.plural == plural).unwrap();
        let Resource { group, version, kind, .. } = &right.resource;
        let object = json!({
            "apiVersion": format!("{group}/{version}"), "kind": kind, "metadata": {"name": "one"}, "spec": spec,
        });
        let path = collection(&right.resource);
        ask(&env, "POST", &path, &object).await.unwrap_or_else(|error| panic!("{plural}: {error}"));
        made.push(format!("{path}/one"));
    }
    let without_status = async || {
        let mut without = Vec::new();
        for path in &made {
            if ask(&env, "GET", path, &Value::Null).await.unwrap()["status"].is_null() {
                without.push(path.clone());
            }
        }
        without
    };
    let connection: Connection = env.connection_for(description).await;
    let from = vec![From::Kubernetes(connection)];
    let gateway = Gateway::start(Options { from, ..Options::default() }).unwrap();
    let user = format!("system:serviceaccount:default:{}", description.name);
    let refused = || -> BTreeSet<String> {
        let refused = env.requests().into_iter().filter(|seen| seen.fate == Fate::Answered(403));
        let refused = refused.filter(|seen| seen.call.user == user);
        let target = |call: &watchkeeper_testkit::Call| match &*call.subresource {
            "" => call.resource.clone(),
            subresource => format!("{}/{subresource}", call.resource),
        };
        refused.map(|seen| target(&seen.call)).collect()
    };
    // It has done all it can do when every object has a status, or something was refused.
    let begin = Instant::now();
    while begin.elapsed() < TIMEOUT && refused().is_empty() && !without_status().await.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    if description.rights.iter().count() == whole.rights.iter().count() {
        assert_eq!(without_status().await, [""; 0], "{:?}", gateway.handle().readiness());
    }
    gateway.stop(Duration::from_secs(1)).await;
    refused()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_needs_all_its_rights_and_no_others() {
    let whole = described("gateway");
    assert_eq!(gateway_under(&whole).await, BTreeSet::new());
    let statuses: BTreeSet<String> =
        whole.rights.iter().map(Right::target).filter(|target| target.ends_with("/status")).collect();
    let made: BTreeSet<String> = objects().iter().map(|(plural, _)| format!("{plural}/status")).collect();
    assert_eq!(statuses, made, "there is an object of every kind with a status");
    // Budgets are leased when models are called: the tests of replicas do that with these rights.
    for missing in whole.rights.iter().filter(|right| right.target() != "llmbudgets") {
        let mut narrow = whole.clone();
        narrow.rights = whole.rights.iter().filter(|right| *right != missing).cloned().collect();
        let refused = gateway_under(&narrow).await;
        assert!(refused.contains(&missing.target()), "nobody needs {}: {refused:?}", missing.target());
        assert!(!missing.verbs.contains(Verbs::GET), "{missing:?}");
    }
}

/// A part of this program that runs, killed if the test does not end it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts, and gives the address behind a mark in what it says on stderr or stdout.
fn start(arguments: &[&str], mark: &str, folder: &Path) -> (Running, String) {
    let mut command = watchkeeper(arguments);
    command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let streams: [Box<dyn std::io::Read + Send>; 2] =
        [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
    let (sender, lines) = std::sync::mpsc::channel();
    for stream in streams {
        let sender = sender.clone();
        std::thread::spawn(move || {
            // What it says is taken to the end.
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
    }
    let running = Running(child);
    let mut said = String::new();
    loop {
        let line = lines.recv_timeout(TIMEOUT).unwrap_or_else(|_| panic!("no {mark:?} in {said}"));
        said.push_str(&line);
        said.push('\n');
        if let Some(rest) = line.split(mark).nth(1) {
            return (running, rest.split([' ', '/']).next().unwrap().to_owned());
        }
    }
}

/// The page at an address: its code and its text.
fn page(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// The metrics of a page, as queries have them.
fn names(page: &str) -> BTreeSet<String> {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types
        .map(|(name, kind)| if kind == "counter" { format!("{name}_total") } else { name.to_owned() })
        .collect()
}

fn undeclared(page: &str, description: &Description) -> Vec<String> {
    let known: BTreeSet<&str> = description.metrics.iter().map(|metric| metric.name.as_str()).collect();
    names(page).into_iter().filter(|name| !known.contains(name.as_str())).collect()
}

#[test]
fn the_api_server_serves_probes_and_the_metrics_that_it_describes() {
    let place = tempfile::tempdir().unwrap();
    let arguments =
        ["serve", "--in-memory", "--listen", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--log", "info"];
    let (_server, address) = start(&arguments, "probes on http://", place.path());
    assert_eq!(page(&address, "/readyz"), (200, "ok\n".to_owned()));
    assert_eq!(page(&address, "/livez").0, 200);
    assert_eq!(page(&address, "/api").0, 404);
    let (code, text) = page(&address, "/metrics");
    assert_eq!(code, 200);
    assert!(text.contains("watchkeeper_storage_objects"), "{text}");
    assert_eq!(undeclared(&text, &described("serve")), Vec::<String>::new());
}

#[test]
fn the_gateway_serves_probes_and_the_metrics_that_it_describes() {
    let example: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway");
    let from = format!("file:{}", example.display());
    let arguments = [
        "gateway",
        "--from",
        &from,
        "--listen",
        "web=127.0.0.1:0",
        "--admin",
        "off",
        "--metrics-addr",
        "127.0.0.1:0",
    ];
    let place = tempfile::tempdir().unwrap();
    let (_gateway, address) = start(&arguments, "probes on http://", place.path());
    let begin = Instant::now();
    while page(&address, "/readyz").0 != 200 {
        assert!(begin.elapsed() < TIMEOUT);
        std::thread::sleep(Duration::from_millis(50));
    }
    // What the configuration says is for the admin endpoint.
    assert_eq!(page(&address, "/table").0, 404);
    let (_, text) = page(&address, "/metrics");
    assert!(text.contains("gateway_source_up{source="), "{text}");
    assert_eq!(undeclared(&text, &described("gateway")), Vec::<String>::new());
}

#[test]
fn up_serves_the_metrics_of_everything_on_one_port() {
    let place = tempfile::tempdir().unwrap();
    let arguments = ["up", "--port", "0", "--metrics-port", "0", "--data-dir", "data", "--pace", "0"];
    let (_up, address) = start(&arguments, "metrics      http://", place.path());
    assert_eq!(page(&address, "/readyz"), (200, "ok\n".to_owned()));
    let (_, all) = page(&address, "/metrics");
    for (program, metric) in [
        ("watchkeeper-apiserver", "watchkeeper_storage_objects"),
        ("watchkeeper-webapp", "controller_runtime_max_concurrent_reconciles"),
        ("watchkeeper-workloads", "controller_runtime_max_concurrent_reconciles"),
        ("watchkeeper-gateway", "gateway_routes"),
    ] {
        let sample = format!("{metric}{{program=\"{program}\"");
        assert!(all.contains(&sample), "{sample} is not in {all}");
        let (code, own) = page(&address, &format!("/metrics/{program}"));
        assert!(code == 200 && own.contains(metric) && !own.contains("program="), "{program}: {own}");
    }
    // Each family is told once.
    let types = all.lines().filter(|line| line.starts_with("# TYPE "));
    assert_eq!(types.clone().count(), types.collect::<BTreeSet<_>>().len());
    assert!(all.ends_with("# EOF\n"));
}

#[test]
fn the_kubeconfig_of_a_data_directory_is_that_of_its_administrator() {
    let place = tempfile::tempdir().unwrap();
    let server = ["--server", "https://api.example.org:6443"];
    let output = watchkeeper(&[&["kubeconfig", "--data-dir", "data"], &server[..]].concat())
        .current_dir(place.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(
        told(&output).contains("data: no server keeps its data there") && !place.path().join("data").exists()
    );
    let arguments = ["serve", "--data-dir", "data", "--listen", "127.0.0.1:0", "--kubeconfig", "own"];
    let (running, _) = start(&arguments, "https://", place.path());
    let output = watchkeeper(&[&["kubeconfig", "--data-dir", "data"], &server[..]].concat())
        .current_dir(place.path())
        .output()
        .unwrap();
    drop(running);
    assert!(output.status.success(), "{}", told(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    let own = std::fs::read_to_string(place.path().join("own")).unwrap();
    let without_server =
        // A client certificate is issued each time, by the same authority.
        |text: &str| {
            let is_same = |line: &&str| !["server:", "client-certificate-data:", "client-key-data:"].iter().any(|own| line.contains(own));
            text.lines().filter(is_same).collect::<Vec<_>>().join("\n")
        };
    assert!(printed.contains("https://api.example.org:6443"), "{printed}");
    assert_eq!(without_server(&printed), without_server(&own));
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_opened() {
    for (arguments, expected) in [
        (&["describe", "everything"][..], "invalid value 'everything'"),
        (&["serve", "--in-memory", "--metrics-addr", "nowhere"], "--metrics-addr"),
        (&["kubeconfig", "--server", "https://x"], "--data-dir"),
    ] {
        let output = watchkeeper(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", told(&output));
        assert!(told(&output).contains(expected), "{arguments:?}: {}", told(&output));
    }
}
