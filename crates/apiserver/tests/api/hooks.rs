//! A server of webhooks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use serde_json::{Value, json};
use watchkeeper_apiserver::front::{
    Authority, Body, ClientAuth, Front, Key, Listener, Purpose, Request, Response, ServerCertificate, Tls,
    pem,
};

/// What a path of the server answers to a request for admission: a code and a body.
pub(crate) type Script = Arc<dyn Fn(&Value) -> (u16, String) + Send + Sync>;

/// A blank now and then, and no end.
fn drip() -> impl futures_util::Stream<Item = bytes::Bytes> {
    futures_util::stream::unfold((), |()| async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        Some((bytes::Bytes::from_static(b" "), ()))
    })
}

/// A server of webhooks that answers by scripts and remembers what it was asked.
pub(crate) struct Hooks {
    _front: Front,
    pub(crate) url: String,
    pub(crate) bundle: String,
    scripts: Arc<Mutex<BTreeMap<String, Script>>>,
    pub(crate) asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Hooks {
    pub(crate) async fn start() -> Self {
        let authority = Authority::with_key("hooks", Key::generate().unwrap(), SystemTime::now()).unwrap();
        let key = Key::generate().unwrap();
        let names = ["127.0.0.1".to_owned(), "hooks.default.svc".to_owned()];
        let certificate =
            authority.issue(&key, ("hooks", &[]), &Purpose::Server(&names), SystemTime::now()).unwrap();
        let key = key.pkcs8().clone_key().into();
        let certificate = ServerCertificate::new(vec![certificate], key).unwrap();
        let tls = Tls::new(certificate, &ClientAuth::Off).unwrap();
        let scripts: Arc<Mutex<BTreeMap<String, Script>>> = Arc::default();
        let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let (known, log) = (Arc::clone(&scripts), Arc::clone(&asked));
        let service = move |request: Request| {
            let (known, log) = (Arc::clone(&known), Arc::clone(&log));
            async move {
                let path = request.uri().path().to_owned();
                let body = request.into_body().read(8 << 20).await.unwrap();
                let review: Value = serde_json::from_slice(&body).unwrap();
                log.lock().push((path.clone(), review["request"].clone()));
                if path == "/hang" {
                    std::future::pending::<()>().await;
                }
                let script = known.lock().get(&path).cloned();
                let (code, text) = script.map_or((404, String::new()), |script| script(&review["request"]));
                let body = if path == "/drip" { Body::stream(drip()) } else { Body::whole(text) };
                let mut response = Response::new(body);
                if code == 302 {
                    response.headers_mut().insert("location", "/good".parse().unwrap());
                }
                *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
                response
            }
        };
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let url = format!("https://{}", listener.address());
        let front = Front::builder(service).https(listener, tls).start().unwrap();
        let bundle = pem::certificate(authority.certificate());
        Self { _front: front, url, bundle: watchkeeper_go::base64::encode(bundle), scripts, asked }
    }

    pub(crate) fn script(
        &self,
        path: &str,
        script: impl Fn(&Value) -> (u16, String) + Send + Sync + 'static,
    ) {
        self.scripts.lock().insert(path.to_owned(), Arc::new(script));
    }

    /// Answers with fields of a response.
    pub(crate) fn answer(&self, path: &str, answer: impl Fn(&Value) -> Value + Send + Sync + 'static) {
        self.script(path, move |request| {
            let mut response = answer(request);
            response["uid"] = request["uid"].clone();
            let review =
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            (200, review.to_string())
        });
    }

    /// Allows with a patch.
    pub(crate) fn patch(&self, path: &str, patch: impl Fn(&Value) -> Value + Send + Sync + 'static) {
        self.answer(path, move |request| {
            let patch = watchkeeper_go::base64::encode(patch(request).to_string());
            json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
        });
    }

    /// Converts things between v1, where a number is the `size`, and v2, where it is the `amount`. `change` may change each.
    pub(crate) fn convert(&self, path: &str, change: impl Fn(&mut Value) + Send + Sync + 'static) {
        self.script(path, move |request| {
            let mut objects = request["objects"].as_array().cloned().unwrap_or_default();
            for object in &mut objects {
                let (from, to) = match request["desiredAPIVersion"] == "example.com/v2" {
                    true => ("size", "amount"),
                    false => ("amount", "size"),
                };
                object["apiVersion"] = request["desiredAPIVersion"].clone();
                if let Some(number) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
                    object["spec"][to] = number;
                }
                change(object);
            }
            (200, converted(request, &objects.into()).to_string())
        });
    }

    pub(crate) fn hook(&self, name: &str, path: &str) -> Value {
        json!({
            "name": name,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": format!("{}{path}", self.url), "caBundle": self.bundle},
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        })
    }

    pub(crate) fn asked(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.asked.lock())
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|(path, _)| path).collect()
    }
}

/// A ConversionReview that answers with these objects.
pub(crate) fn converted(request: &Value, objects: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": {
        "uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects,
    }})
}
