//! A webhook on this machine that allows everything, and converts by saying so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::SystemTime;

use serde_json::{Value, json};
use watchkeeper_apiserver::front::{
    Authority, Body, ClientAuth, Front, Key, Listener, Purpose, Request, Response, ServerCertificate, Tls,
    pem,
};
use watchkeeper_bench_target::Result;

/// How many bytes a review may have.
const MOST_BYTES: usize = 8 << 20;

/// Where conversion is served.
pub(crate) const CONVERT: &str = "convert";

/// An admission webhook that allows everything, and a conversion webhook for versions that differ in nothing, on a thread of its own until the program ends.
pub(crate) struct Hook {
    /// Where it is: a URL that ends with a slash.
    pub(crate) url: String,
    /// The authority of its certificate, in PEM.
    pub(crate) authority: String,
    asked: Arc<AtomicUsize>,
}

impl Hook {
    pub(crate) fn start() -> Result<Self> {
        let now = SystemTime::now();
        let authority = Authority::with_key("hook", Key::generate()?, now)?;
        let (key, names) = (Key::generate()?, ["127.0.0.1".to_owned()]);
        let certificate = authority.issue(&key, ("hook", &[]), &Purpose::Server(&names), now)?;
        let certificate = ServerCertificate::new(vec![certificate], key.pkcs8().clone_key().into())?;
        let tls = Tls::new(certificate, &ClientAuth::Off)?;
        let listener = Listener::bind(([127, 0, 0, 1], 0).into())?;
        let url = format!("https://{}/", listener.address());
        let asked = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&asked);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("hook".into()).spawn(move || {
            runtime.block_on(async {
                let service = move |request: Request| {
                    count.fetch_add(1, Ordering::Relaxed);
                    async move { Response::new(Body::whole(answer(request).await)) }
                };
                // It serves for as long as it is there.
                let _front = Front::builder(service).https(listener, tls).start();
                std::future::pending::<()>().await;
            });
        })?;
        Ok(Self { url, authority: pem::certificate(authority.certificate()), asked })
    }

    /// How often it has been asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Allows what is asked about, or converts it.
async fn answer(request: Request) -> String {
    let converts = request.uri().path().trim_start_matches('/') == CONVERT;
    let review = request.into_body().read(MOST_BYTES).await.unwrap_or_default();
    let mut review: Value = serde_json::from_slice(&review).unwrap_or_default();
    let asked = &mut review["request"];
    let uid = asked["uid"].take();
    let response = if converts {
        let (mut objects, version) = (asked["objects"].take(), asked["desiredAPIVersion"].take());
        for object in objects.as_array_mut().into_iter().flatten() {
            object["apiVersion"] = version.clone();
        }
        json!({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}})
    } else {
        json!({"uid": uid, "allowed": true})
    };
    json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}).to_string()
}
