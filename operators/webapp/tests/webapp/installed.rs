//! The program as `deploy/install.yaml` installs it: its arguments, under its service account and nothing else; and what is left when that is
//! uninstalled.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use watchkeeper_schema::yaml;
use watchkeeper_testkit::{Fate, TestEnv, consistently, eventually};

const NAME: &str = "watchkeeper-webapp";
const NAMESPACE: &str = "watchkeeper-webapp-system";
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const ALPHA: &str = "/apis/apps.watchkeeper.dev/v1alpha1/namespaces/default/webapps";
const BETA: &str = "/apis/apps.watchkeeper.dev/v1beta1/namespaces/default/webapps";

/// The objects of a file of `deploy/`, in its order.
fn deployed(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    yaml::documents(&text).map(|part| yaml::decode(part.text.as_bytes()).unwrap().value).collect()
}

/// Where objects like this one are.
fn collection(object: &Value) -> String {
    let version = object["apiVersion"].as_str().unwrap();
    let root = if version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{version}") };
    let plural = match object["kind"].as_str().unwrap() {
        "NetworkPolicy" => "networkpolicies".to_owned(),
        kind => format!("{}s", kind.to_lowercase()),
    };
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{plural}"),
    }
}

fn place(object: &Value) -> String {
    format!("{}/{}", collection(object), object["metadata"]["name"].as_str().unwrap())
}

async fn ask(env: &TestEnv, method: &str, path: &str, body: &Value) -> Result<Value, String> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let answer = env.connection().request(request.body(body).unwrap()).await;
    answer.map(|answer| serde_json::from_slice(&answer).unwrap()).map_err(|error| error.to_string())
}

fn app(version: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("apps.watchkeeper.dev/{version}"), "kind": "WebApp", "metadata": {"name": name}, "spec": spec,
    })
}

/// A kubeconfig in a folder with which a program is this service account.
pub(crate) fn kubeconfig_of(env: &TestEnv, namespace: &str, name: &str, folder: &Path) -> PathBuf {
    let kubeconfig = folder.join("kubeconfig");
    let admin = std::fs::read(env.kubeconfig()).unwrap();
    let mut config = yaml::decode(&admin).unwrap().value;
    config["users"][0]["user"]["as"] = json!(format!("system:serviceaccount:{namespace}:{name}"));
    config["users"][0]["user"]["as-groups"] = json!([
        "system:serviceaccounts",
        format!("system:serviceaccounts:{namespace}"),
        "system:authenticated"
    ]);
    config["contexts"][0]["context"]["namespace"] = json!(namespace);
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    kubeconfig
}

/// A cluster with the operator in it.
struct Cluster {
    env: TestEnv,
    kubeconfig: PathBuf,
    _folder: tempfile::TempDir,
    /// Where the webhooks are served that the Service leads to.
    endpoint: Arc<OnceLock<SocketAddr>>,
}

impl Cluster {
    /// With everything that `install.yaml` has, and a Service that leads to the program once that runs.
    async fn new() -> Self {
        let endpoint: Arc<OnceLock<SocketAddr>> = Arc::default();
        let mut options = watchkeeper_apiserver::Options::default();
        let service = format!("{NAMESPACE}/{NAME}-webhook");
        options.service_addresses.insert(service, forward(Arc::clone(&endpoint)).await);
        let builder = TestEnv::builder().options(options);
        Self::install(builder.with_roles().listening().start().await, endpoint).await
    }

    /// With everything that `install.yaml` has, but nothing that runs.
    async fn install(env: TestEnv, endpoint: Arc<OnceLock<SocketAddr>>) -> Self {
        for object in deployed("install.yaml") {
            ask(&env, "POST", &collection(&object), &object).await.unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = kubeconfig_of(&env, NAMESPACE, NAME, folder.path());
        Self { env, kubeconfig, _folder: folder, endpoint }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper-webapp"));
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig).stdin(Stdio::null());
        command
    }

    /// The program with the arguments of the Deployment, and those that say where it is: it is in no pod.
    async fn run(&self) -> Program {
        let install = deployed("install.yaml");
        let deployment = install.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let arguments = deployment.pointer("/spec/template/spec/containers/0/args").unwrap();
        let arguments = arguments.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned());
        let service = format!("--webhook-service={NAME}-webhook");
        let mut arguments: Vec<String> = arguments.filter(|one| !one.starts_with("--metrics-addr")).collect();
        assert!(arguments.contains(&"--install-definitions=false".to_owned()), "{arguments:?}");
        arguments.extend(
            ["--metrics-addr=127.0.0.1:0", "--webhook-addr=127.0.0.1:0", &service].map(str::to_owned),
        );
        arguments.extend(["--log=info", "--log-format=json"].map(str::to_owned));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut child =
            self.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let program = Program(child);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let mut sender = Some(sender);
            // What it says is taken to the end, so that it never waits for a reader.
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let address = address(&line);
                if let (Some(address), true) = (address, sender.is_some()) {
                    let _ = sender.take().unwrap().send(address);
                }
            }
        });
        let address = tokio::time::timeout(Duration::from_secs(60), receiver).await.unwrap().unwrap();
        self.endpoint.set(address).unwrap();
        program
    }

    /// The webhooks of a configuration, if it is there.
    async fn webhooks(&self, plural: &str) -> Option<usize> {
        let found =
            ask(&self.env, "GET", &format!("{ADMISSION}/{plural}/{NAME}"), &Value::Null).await.ok()?;
        Some(found["webhooks"].as_array().map_or(0, Vec::len))
    }
}

/// The address in the line of the log that says that webhooks are served.
fn address(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.contains("webhooks are served").then(|| line.split_once("127.0.0.1:"))??;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    format!("127.0.0.1:{digits}").parse().ok()
}

/// What stands for the Service: connections go to the program, once it is known where it listens.
async fn forward(to: Arc<OnceLock<SocketAddr>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let Some(target) = to.get().copied() else { continue };
            tokio::spawn(async move {
                if let Ok(mut to) = TcpStream::connect(target).await {
                    let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
                }
            });
        }
    });
    address
}

/// The program, killed if the test does not end it.
struct Program(Child);

impl Program {
    async fn stop(mut self) -> Option<i32> {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
        tokio::task::spawn_blocking(move || self.0.wait().unwrap().code()).await.unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_it_is_installed_it_does_all_its_work_and_nothing_is_refused() {
    let cluster = Cluster::new().await;
    let env = &cluster.env;
    assert_eq!(cluster.webhooks("validatingwebhookconfigurations").await, Some(0), "nobody is asked yet");
    let program = cluster.run().await;
    for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        eventually(|| async { cluster.webhooks(plural).await == Some(1) }).await;
    }
    // Written in one version, stored in another, judged, defaulted, and reconciled.
    let spec = json!({"image": "nginx:1.29", "http": {"port": 8080}, "replicas": 2});
    let created =
        eventually(|| async { ask(env, "POST", BETA, &app("v1beta1", "shop", spec.clone())).await }).await;
    assert_eq!(created["metadata"]["labels"]["app.kubernetes.io/name"], "shop");
    let bad = json!({"image": "nginx:1.29", "http": {"port": 80}, "environment": {"2FAST": "1"}});
    let refused = ask(env, "POST", BETA, &app("v1beta1", "bad", bad)).await.unwrap_err();
    assert!(refused.contains("2FAST"), "{refused}");
    eventually(|| async {
        let status = ask(env, "GET", &format!("{BETA}/shop"), &Value::Null).await.unwrap()["status"].clone();
        ask(env, "GET", "/apis/apps/v1/namespaces/default/deployments/shop", &Value::Null).await.is_ok()
            && status["conditions"].is_array()
    })
    .await;
    assert_eq!(env.count(|seen| seen.fate == Fate::Answered(403)), 0, "{}", env.timeline());
    assert_eq!(program.stop().await, Some(0));
    // Another replica may still serve them.
    assert_eq!(cluster.webhooks("validatingwebhookconfigurations").await, Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_uninstalled_leaves_no_webhook_behind_that_nobody_answers() {
    let cluster = Cluster::new().await;
    let env = &cluster.env;
    let program = cluster.run().await;
    eventually(|| async { cluster.webhooks("validatingwebhookconfigurations").await == Some(1) }).await;
    // As `helm uninstall` does: definitions stay with the objects of users, and the program is the last to hear of it.
    for object in deployed("install.yaml").iter().rev() {
        if !["CustomResourceDefinition", "Namespace"].contains(&object["kind"].as_str().unwrap()) {
            ask(env, "DELETE", &place(object), &Value::Null).await.unwrap();
        }
    }
    consistently(|| async {
        cluster.webhooks("mutatingwebhookconfigurations").await.is_none()
            && cluster.webhooks("validatingwebhookconfigurations").await.is_none()
    })
    .throughout(Duration::from_secs(2))
    .await;
    drop(program);
    // Objects can be made and changed in the version that is stored; in others once it is installed again.
    let spec = json!({"image": "nginx:1.29", "port": 8080, "replicas": 2});
    ask(env, "POST", ALPHA, &app("v1alpha1", "shop", spec)).await.unwrap();
    let other = ask(env, "GET", &format!("{BETA}/shop"), &Value::Null).await.unwrap_err();
    assert!(other.contains("conversion webhook"), "{other}");
    ask(env, "DELETE", &format!("{ALPHA}/shop"), &Value::Null).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_that_is_missing_is_told_with_the_rule_to_add() {
    let env = TestEnv::builder().with_roles().listening().start().await;
    let cluster = Cluster::install(env, Arc::default()).await;
    let check = || async {
        let mut command = cluster.command(&["--install-definitions=false", "--leader-elect", "check-access"]);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        (output.status.code(), [&*output.stdout, &*output.stderr].map(String::from_utf8_lossy).concat())
    };
    let (code, told) = check().await;
    assert_eq!((code, told.contains("allows everything")), (Some(0), true), "{told}");
    // Deployments may be read only, the Secret not at all.
    for (kind, resource) in [("ClusterRole", "deployments"), ("Role", "secrets")] {
        let mut role = deployed("rbac.yaml")
            .into_iter()
            .find(|object| object["kind"] == kind && object["metadata"]["name"] == NAME)
            .unwrap();
        for rule in role["rules"].as_array_mut().unwrap() {
            if rule["resources"].as_array().unwrap().contains(&json!(resource)) {
                rule["verbs"] =
                    if kind == "Role" { json!(["create"]) } else { json!(["get", "list", "watch"]) };
            }
        }
        ask(&cluster.env, "PUT", &place(&role), &role).await.unwrap();
    }
    let (code, told) = check().await;
    assert_eq!(code, Some(1), "{told}");
    let rule = "# ClusterRole\n- apiGroups: [\"apps\"]\n  resources: [\"deployments\"]\n  verbs: [\"create\",\"patch\",\"delete\"]\n";
    assert!(told.contains(rule), "{told}");
    let rule = "# Role in the namespace of the program\n- apiGroups: [\"\"]\n  resources: [\"secrets\"]\n  \
                resourceNames: [\"watchkeeper-webapp-webhook-authorities\"]\n  verbs: [\"get\",\"list\",\"watch\",\"update\"]\n";
    assert!(told.contains(rule), "{told}");
}
