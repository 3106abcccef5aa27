//! Answers that do not say what there is.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use watchkeeper_core::{ChangeKind, Error};
use watchkeeper_front::{
    Authority, Body, ClientAuth, Front, Key, Listener, Purpose, Request, Response, ServerCertificate, Tls,
    pem,
};
use watchkeeper_informer::Informer;
use watchkeeper_sources::http::Http;

use crate::service::{Fault, Service};
use crate::tap::{LONG, Tap};

fn http(service: &Service) -> Http {
    Http::get(&service.url("/items")).items("/items").key("/id").interval(Duration::from_millis(5))
}

#[tokio::test]
async fn no_refusal_is_taken_for_an_empty_list() {
    let service = Service::start().await;
    service.put("a", 1);
    for (fault, class) in [
        (Fault::Status(404, String::new()), "missing"),
        (Fault::Status(403, String::new()), "denied"),
        (Fault::Status(500, String::new()), "unavailable"),
        (Fault::Status(302, "location: /login\r\n".into()), "unavailable"),
        (Fault::Status(204, String::new()), "unavailable"),
        (Fault::Status(429, "retry-after: 7\r\n".into()), "throttled"),
        (Fault::Truncated, "unavailable"),
        (Fault::Html, "unavailable"),
    ] {
        let mut tap = Tap::on(&http(&service)).await;
        service.fail(fault.clone());
        let error = tap.failure().await;
        assert_eq!(error.class(), class, "{fault:?}: {error}");
        assert!(error.to_string().contains(&service.url("/items")), "{error}");
        assert_eq!(tap.values.len(), 1, "{fault:?}");
        if let Error::Throttled { after, .. } = error {
            assert_eq!(after, Some(Duration::from_secs(7)));
        }
    }
}

#[tokio::test]
async fn a_service_that_is_not_there_is_unavailable() {
    let service = Service::start().await;
    service.stop();
    let url = "http://127.0.0.1:1/items";
    let error = Tap::closed(&Http::get(url)).failure().await;
    assert!(matches!(error, Error::Unavailable { answered: false, .. }), "{error}");
    for url in ["items", "ftp://host/items", "http:///items"] {
        let error = Tap::closed(&Http::get(url)).failure().await;
        assert!(matches!(error, Error::Fatal(_)), "{url}: {error}");
    }
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_or_for_another_name_is_said() {
    let now = SystemTime::now();
    let authority = |name| Authority::with_key(name, Key::generate().unwrap(), now).unwrap();
    let (ours, theirs) = (authority("ours"), authority("theirs"));
    let key = Key::generate().unwrap();
    let certificate =
        ours.issue(&key, ("service", &[]), &Purpose::Server(&["127.0.0.1".into()]), now).unwrap();
    let (certificate, key) = (pem::certificate(&certificate), pem::key(key.pkcs8()));
    let shown = ServerCertificate::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    let answer = |_: Request| async { Response::new(Body::whole(r#"{"a": {"value": 1}}"#)) };
    let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let url = format!("https://{}/items", listener.address());
    let tls = Tls::new(shown, &ClientAuth::Off).unwrap();
    let front = Front::builder(answer).https(listener, tls).start().unwrap();

    let directory = tempfile::tempdir().unwrap();
    let trusting = |authority: &Authority, name: &str| {
        let file = directory.path().join(name);
        std::fs::write(&file, pem::certificate(authority.certificate())).unwrap();
        Http::get(&url).ca_file(file)
    };
    assert_eq!(Tap::on(&trusting(&ours, "ours")).await.values.len(), 1);
    let error = Tap::closed(&trusting(&theirs, "theirs")).failure().await;
    assert!(matches!(error, Error::Unavailable { answered: false, .. }), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");

    // Of the right authority, and for another name.
    let elsewhere =
        format!("https://localhost:{}/items?key=hunter2", front.addresses().next().unwrap().port());
    let file = directory.path().join("ours");
    let error = Tap::closed(&Http::get(&elsewhere).ca_file(file)).failure().await;
    assert!(matches!(error, Error::Unavailable { answered: false, .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("certificate") && !said.contains("hunter2"), "{said}");
    front.shutdown(Duration::ZERO).await;

    let missing = Http::get("https://127.0.0.1:1/").ca_file("/does/not/exist.pem");
    let error = Tap::closed(&missing).failure().await;
    assert!(matches!(&error, Error::Fatal(said) if said.contains("/does/not/exist.pem")), "{error}");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_not_read() {
    let service = Service::start().await;
    service.change(|items| items.extend((0..1000).map(|number| (format!("n{number}"), 1))));
    let error = Tap::closed(&http(&service).max_body_bytes(5000)).failure().await;
    assert!(error.to_string().contains("larger than the 5000 bytes"), "{error}");
}

#[tokio::test]
async fn an_empty_list_is_believed_the_second_time() {
    let service = Service::start().await;
    service.change(|items| items.extend((0..10).map(|number| (format!("n{number}"), 1))));
    let informer = Informer::<Value>::builder().start(http(&service));
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    while changes.try_next().is_some() {}
    // One that is wrong.
    service.fail(Fault::Empty);
    service.put("n0", 2);
    let change = tokio::time::timeout(LONG, changes.next()).await.unwrap().unwrap();
    assert_eq!((change.key.to_string(), change.kind()), ("n0".into(), ChangeKind::Modified));
    assert_eq!(informer.store().len(), 10);
    // One that is right.
    service.change(|items| items.clear());
    while !informer.store().is_empty() {
        tokio::time::timeout(LONG, changes.next()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn two_false_alarms_with_the_truth_between_them_delete_nothing() {
    let service = Service::start().await;
    service.change(|items| items.extend((0..10).map(|number| (format!("n{number}"), 1))));
    let informer = Informer::<Value>::builder().start(http(&service));
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    while changes.try_next().is_some() {}
    for fault in
        [Fault::Empty, Fault::AnotherTag, Fault::Third, Fault::AnotherTag, Fault::Empty, Fault::AnotherTag]
    {
        service.fail(fault);
    }
    while !service.lock().faults.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    service.put("n0", 2);
    let change = tokio::time::timeout(LONG, changes.next()).await.unwrap().unwrap();
    assert_eq!((change.key.to_string(), change.kind()), ("n0".into(), ChangeKind::Modified));
    assert_eq!(informer.store().len(), 10);
}
