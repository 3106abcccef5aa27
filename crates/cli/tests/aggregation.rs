//! `kubectl top` shows what a metrics.k8s.io behind `watchkeeper serve` says.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use watchkeeper_apiserver::front::{
    Authority, Body, ClientAuth, Front, Key, Listener, Purpose, Request, Response, ServerCertificate, Tls,
    pem,
};

/// A process that is killed with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn metrics(request: Request) -> Response {
    let usage = json!({"cpu": "250m", "memory": "128Mi"});
    let time = json!({"timestamp": "2026-01-01T00:00:00Z", "window": "30s"});
    let resource = |name: &str, kind: &str, namespaced: bool| json!({"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "list"]});
    let list = |kind: &str, mut item: Value| {
        for field in ["timestamp", "window"] {
            item[field] = time[field].clone();
        }
        json!({"kind": kind, "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": [item]})
    };
    let body = match request.uri().path() {
        "/apis/metrics.k8s.io/v1beta1" => json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1",
            "resources": [resource("nodes", "NodeMetrics", false), resource("pods", "PodMetrics", true)],
        }),
        "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods" => list(
            "PodMetricsList",
            json!({"metadata": {"name": "web", "namespace": "default"}, "containers": [{"name": "c", "usage": usage}]}),
        ),
        _ => json!({"paths": {}}),
    };
    let mut response = Response::new(Body::whole(body.to_string()));
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    response
}

#[test]
fn kubectl_top_shows_the_metrics_of_another_server() {
    let runtime = Runtime::new().unwrap();
    let _inside = runtime.enter();
    let authority = Authority::with_key("metrics", Key::generate().unwrap(), SystemTime::now()).unwrap();
    let (key, names) = (Key::generate().unwrap(), ["metrics-server.kube-system.svc".to_owned()]);
    let certificate =
        authority.issue(&key, ("metrics", &[]), &Purpose::Server(&names), SystemTime::now()).unwrap();
    let certificate = ServerCertificate::new(vec![certificate], key.pkcs8().clone_key().into()).unwrap();
    let tls = Tls::new(certificate, &ClientAuth::Off).unwrap();
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.address();
    let _front = Front::builder(metrics).https(listener, tls).start().unwrap();

    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let mut server = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    server.args(["serve", "--listen", "127.0.0.1:0", "--in-memory", "--webhook-service"]);
    server.arg(format!("kube-system/metrics-server={address}")).arg("--kubeconfig").arg(&kubeconfig);
    let mut child = server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("ready in")), "it ended");
    std::thread::spawn(move || lines.for_each(drop));
    let _server = Running(child);

    let kubectl = |arguments: &[&str]| {
        let output = Command::new("kubectl").arg("--kubeconfig").arg(&kubeconfig).args(arguments).output();
        let output = output.expect("kubectl is installed");
        (
            output.status.success(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let bundle = watchkeeper_go::base64::encode(pem::certificate(authority.certificate()));
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1beta1.metrics.k8s.io"},
        "spec": {
            "group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"namespace": "kube-system", "name": "metrics-server"}, "caBundle": bundle,
        },
    });
    let file = directory.path().join("apiservice.json");
    std::fs::write(&file, service.to_string()).unwrap();
    let (made, _, why) = kubectl(&["create", "-f", file.to_str().unwrap()]);
    assert!(made, "{why}");
    let waited =
        kubectl(&["wait", "--for=condition=Available", "--timeout=20s", "apiservice/v1beta1.metrics.k8s.io"]);
    assert!(waited.0, "{}", waited.2);
    let deadline = Instant::now() + Duration::from_secs(20);
    let shown = loop {
        let (shown, out, why) = kubectl(&["top", "pods", "--no-headers"]);
        if shown {
            break out;
        }
        assert!(Instant::now() < deadline, "{why}");
    };
    assert_eq!(shown.split_whitespace().collect::<Vec<_>>(), ["web", "250m", "128Mi"]);
}
