//! `watchkeeper webhook` and `watchkeeper migrate`, against webhooks and a server that run.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::SystemTime;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use watchkeeper_apiserver::front::{
    Authority, Body, ClientAuth, Front, Key, Listener, Purpose, Request, Response, ServerCertificate, Tls,
    pem,
};
use watchkeeper_connection::Connection;

/// Runs the command, and gives its code and what it said.
fn watchkeeper(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_watchkeeper"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Webhooks at `/admit`, which judges by the name of the object, and `/convert`.
struct Hooks {
    _front: Front,
    url: String,
    bundle: String,
    asked: Arc<AtomicUsize>,
    /// Whether the thing of this name can be converted.
    fails: Arc<AtomicBool>,
}

impl Hooks {
    fn start() -> Self {
        let authority = Authority::with_key("hooks", Key::generate().unwrap(), SystemTime::now()).unwrap();
        let key = Key::generate().unwrap();
        let names = ["127.0.0.1".to_owned()];
        let certificate =
            authority.issue(&key, ("hooks", &[]), &Purpose::Server(&names), SystemTime::now()).unwrap();
        let certificate = ServerCertificate::new(vec![certificate], key.pkcs8().clone_key().into()).unwrap();
        let tls = Tls::new(certificate, &ClientAuth::Off).unwrap();
        let (asked, fails) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (count, failing) = (Arc::clone(&asked), Arc::clone(&fails));
        let service = move |request: Request| {
            let (count, failing) = (Arc::clone(&count), Arc::clone(&failing));
            async move {
                let path = request.uri().path().to_owned();
                let body = request.into_body().read(64 << 20).await.unwrap();
                let review: Value = serde_json::from_slice(&body).unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                let answer = match path.as_str() {
                    "/admit" => admit(&review),
                    _ => convert(&review, failing.load(Ordering::Relaxed)),
                };
                Response::new(Body::whole(answer.to_string()))
            }
        };
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let url = format!("https://{}", listener.address());
        let front = Front::builder(service).https(listener, tls).start().unwrap();
        Self { _front: front, url, bundle: pem::certificate(authority.certificate()), asked, fails }
    }
}

fn admit(review: &Value) -> Value {
    let request = &review["request"];
    let patch = json!([{"op": "add", "path": "/spec/size", "value": 3}, {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]);
    let mut response = match request["name"].as_str() {
        Some("bad") => {
            json!({"allowed": false, "warnings": ["mind"], "status": {"code": 403, "reason": "Forbidden", "message": "too\nodd"}})
        }
        Some("plain") => json!({"allowed": true, "auditAnnotations": {"seen": request["operation"]}}),
        _ => json!({"allowed": true, "warnings": ["one", "two"], "patchType": "JSONPatch",
            "patch": watchkeeper_go::base64::encode(patch.to_string())}),
    };
    response["uid"] = request["uid"].clone();
    json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response})
}

fn convert(review: &Value, fails: bool) -> Value {
    let request = &review["request"];
    let mut objects = request["objects"].as_array().unwrap().clone();
    for object in &mut objects {
        let (from, to) = match request["desiredAPIVersion"] == "example.com/v2" {
            true => ("size", "amount"),
            false => ("amount", "size"),
        };
        object["apiVersion"] = request["desiredAPIVersion"].clone();
        if let Some(number) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
            object["spec"][to] = number;
        }
    }
    let is_hit = fails && objects.iter().any(|object| object["metadata"]["name"] == "t-0700");
    let result = if is_hit {
        json!({"status": "Failure", "message": "t-0700 is odd"})
    } else {
        json!({"status": "Success"})
    };
    json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview",
        "response": {"uid": request["uid"], "result": result, "convertedObjects": objects}})
}

/// A server that is killed with the test.
struct Server(Child);

impl Server {
    fn start(kubeconfig: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_watchkeeper"))
            .args(["serve", "--listen", "127.0.0.1:0", "--in-memory", "--kubeconfig"])
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with("ready in")), "it ended");
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn send(connection: &Connection, method: &str, path: &str, body: Value) -> Value {
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = connection.request(request.body(body).unwrap()).await;
    serde_json::from_slice(&answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))).unwrap()
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(hooks: &Hooks) -> Value {
    let version = |name: &str, field: &str| {
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {field: {"type": "integer"}}}},
        }}})
    };
    let client = json!({"url": format!("{}/convert", hooks.url), "caBundle": watchkeeper_go::base64::encode(&hooks.bundle)});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing", "shortNames": ["th"]},
            "versions": [version("v1", "size"), version("v2", "amount")],
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}},
        },
    })
}

#[test]
fn objects_are_migrated_page_by_page_and_an_interrupted_migration_goes_on() {
    let runtime = Runtime::new().unwrap();
    let _inside = runtime.enter();
    let (hooks, directory) = (Hooks::start(), tempfile::tempdir().unwrap());
    let (kubeconfig, state) = (directory.path().join("kubeconfig"), directory.path().join("state.json"));
    let _server = Server::start(&kubeconfig);
    let (kubeconfig, state_file) = (kubeconfig.to_str().unwrap(), state.to_str().unwrap());
    let connection = runtime.block_on(Connection::from_kubeconfig(Path::new(kubeconfig), None)).unwrap();
    let path = format!("{DEFINITIONS}/things.example.com");
    let stored = || {
        let definition = runtime.block_on(send(&connection, "GET", &path, Value::Null));
        definition["status"]["storedVersions"].clone()
    };
    runtime.block_on(async {
        send(&connection, "POST", DEFINITIONS, definition(&hooks)).await;
        let things = "/apis/example.com/v1/namespaces/default/things";
        for number in 0..1_200 {
            let metadata = json!({"name": format!("t-{number:04}")});
            let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": {"size": number}});
            send(&connection, "POST", things, thing).await;
        }
        let mut definition = send(&connection, "GET", &path, Value::Null).await;
        for version in definition["spec"]["versions"].as_array_mut().unwrap() {
            version["storage"] = (version["name"] == "v2").into();
        }
        send(&connection, "PUT", &path, definition).await;
    });
    assert_eq!(stored(), json!(["v1", "v2"]));
    let migrate =
        |arguments: &[&str]| watchkeeper(&[&["migrate", "--kubeconfig", kubeconfig][..], arguments].concat());

    let (code, said, error) = migrate(&["th", "--dry-run"]);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(
        said,
        "things.example.com: stored in v1, v2; objects are written in v2\n1200 objects written\nnothing was written: this was a dry run\n"
    );
    assert_eq!(stored(), json!(["v1", "v2"]));

    // What has been read is kept; a new state of the definition is asked for anew.
    hooks.fails.store(true, Ordering::Relaxed);
    let touched = json!({"metadata": {"labels": {"touched": "yes"}}});
    runtime.block_on(send(&connection, "PATCH", &path, touched));
    let (code, _, error) = migrate(&["things", "--state", state_file]);
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("t-0700 is odd"), "{error}");
    assert_eq!(stored(), json!(["v1", "v2"]), "not all of them are migrated");
    assert!(state.exists());

    hooks.fails.store(false, Ordering::Relaxed);
    let before = hooks.asked.load(Ordering::Relaxed);
    let (code, said, error) = migrate(&["Thing", "--state", state_file]);
    assert_eq!(code, Some(0), "{error}");
    let expected = "things.example.com: stored in v1, v2; objects are written in v2\n1200 objects written\n\
        status.storedVersions: v2; dropped v1\n";
    assert_eq!(said, expected);
    assert_eq!(stored(), json!(["v2"]));
    assert!(!state.exists());
    let asked = hooks.asked.load(Ordering::Relaxed) - before;
    assert!(asked <= 2, "the pages that were left, in a call each, and not {asked}");
    let (code, said, _) = migrate(&["things"]);
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "things.example.com: all objects are stored in v2 already\n")
    );

    // Nothing of it has to be converted any more.
    let before = hooks.asked.load(Ordering::Relaxed);
    let listed = runtime.block_on(send(&connection, "GET", "/apis/example.com/v2/things", Value::Null));
    let items = listed["items"].as_array().unwrap();
    assert!(items.iter().enumerate().all(|(number, item)| item["spec"]["amount"] == number), "{items:?}");
    assert_eq!((items.len(), hooks.asked.load(Ordering::Relaxed) - before), (1_200, 0));

    let (code, _, error) = migrate(&["nothings"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("no custom resource called \"nothings\""), "{error}");
}

#[test]
fn what_a_webhook_says_is_told_field_by_field() {
    let runtime = Runtime::new().unwrap();
    let _inside = runtime.enter();
    let (hooks, directory) = (Hooks::start(), tempfile::tempdir().unwrap());
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let thing = |name: &str, size: u32| {
        let text = format!(
            "apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: {name}\nspec:\n  size: {size}\n"
        );
        file(&format!("{name}-{size}.yaml"), &text)
    };
    let ca = file("ca.crt", &hooks.bundle);
    let (admit, convert) = (format!("{}/admit", hooks.url), format!("{}/convert", hooks.url));
    let ask = |arguments: &[&str]| watchkeeper(&[&["webhook"][..], arguments].concat());

    let (code, said, error) = ask(&[&admit, "--ca", &ca, "-f", &thing("a", 1)]);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(
        said,
        "allowed\nwarnings:\n  one\n  two\nchanges:\n  + metadata.labels.a: b\n  spec.size: 1 -> 3\n"
    );
    let (code, said, error) = ask(&[&admit, "--insecure", "-f", &thing("bad", 1)]);
    assert_eq!((code, error.as_str()), (Some(1), "watchkeeper: the webhook denied the write\n"));
    assert_eq!(said, "denied: 403 Forbidden: too odd\nwarnings:\n  mind\n");
    let (new, old) = (thing("plain", 2), thing("plain", 1));
    for (operation, more) in [("update", Some(&old)), ("delete", None), ("create", None)] {
        let old: Vec<&str> = more.into_iter().flat_map(|old| ["--old", old.as_str()]).collect();
        let (code, said, error) =
            ask(&[&[admit.as_str(), "--ca", &ca, "-f", &new, "--operation", operation][..], &old].concat());
        assert_eq!(code, Some(0), "{error}");
        assert_eq!(said, format!("allowed\naudit annotations:\n  seen: {}\n", operation.to_uppercase()));
    }
    let (code, said, error) = ask(&[&convert, "--ca", &ca, "-f", &thing("a", 7), "--to", "v2"]);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(
        said,
        "converted 1 object to example.com/v2\nchanges:\n  apiVersion: example.com/v1 -> example.com/v2\n  + spec.amount: 7\n  - spec.size: 7\n"
    );
    let recorded = json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {"uid": "u", "name": "bad"}});
    let recorded = file("recorded.json", &recorded.to_string());
    let (code, said, _) = ask(&[&admit, "--ca", &ca, "-f", &recorded, "-o", "json"]);
    assert_eq!(code, Some(1));
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["response"]["uid"], "u");

    let one = thing("a", 1);
    for (arguments, expected) in [
        (vec![admit.as_str(), "-f", "/nowhere/x.yaml"], "/nowhere/x.yaml"),
        (vec![admit.as_str(), "-f", &ca], "kind"),
        (vec![admit.as_str(), "-f", &one, "--operation", "update"], "needs --old"),
        (vec!["not a url", "-f", &one], "is not a URL"),
        (vec!["https://example.com/admit", "--insecure", "-f", &one], "another one"),
        (vec!["http://example.com/admit", "-f", &one], "https"),
    ] {
        let (code, _, error) = ask(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    // One that is not believed, one that is not there.
    let (code, _, error) = ask(&[&admit, "-f", &one]);
    assert_eq!(code, Some(1), "{error}");
    let (code, _, error) = ask(&["https://127.0.0.1:1/admit", "--insecure", "-f", &one]);
    assert_eq!(code, Some(1), "{error}");
}
