//! Webhooks that answer with what nobody should: each is refused and counted, and the server goes on.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use watchkeeper_apiserver::front::{Body, Front, Listener, Request, Response};

use crate::conversion::{V1, V2, at, define, thing};
use crate::harness::{Answer, Api};
use crate::hooks::{Hooks, converted};
use crate::webhooks::install;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn deep(depth: usize) -> String {
    format!("{}1{}", "[".repeat(depth), "]".repeat(depth))
}

fn review(request: &Value, response: Value) -> String {
    let mut response = response;
    response["uid"] = request["uid"].clone();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).to_string()
}

/// A server that speaks no TLS.
fn plain() -> (Front, String) {
    let service = |_: Request| async { Response::new(Body::whole("{}")) };
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("https://{}", listener.address());
    (Front::builder(service).http(listener).start().unwrap(), url)
}

fn message(answer: &Answer) -> String {
    answer.json()["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_answers_to_admission_reviews_are_refused_and_counted() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    let (_plain, plain) = plain();
    hooks.answer("/good", |_| json!({"allowed": true}));
    hooks.answer("/large", |_| {
        let patch = json!([{"op": "add", "path": "/data/a", "value": "x".repeat(10 << 20)}]).to_string();
        json!({"allowed": true, "patchType": "JSONPatch", "patch": watchkeeper_go::base64::encode(patch)})
    });
    hooks.script("/deep", |request| {
        let answer = review(request, json!({"allowed": true}));
        (200, answer.replace("true", &deep(20_000)))
    });
    hooks.script("/deep-patch", |request| {
        let patch = format!(r#"[{{"op":"add","path":"/data/a","value":{}}}]"#, deep(20_000));
        let patch = watchkeeper_go::base64::encode(patch);
        (200, review(request, json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})))
    });
    hooks.script("/many", |request| {
        let operation = r#"{"op":"add","path":"/data/a","value":"1"},"#.repeat(20_000);
        let patch = watchkeeper_go::base64::encode(format!("[{}]", operation.trim_end_matches(',')));
        (200, review(request, json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})))
    });
    hooks.script("/types", |request| {
        let response =
            json!({"allowed": {"a": 1}, "status": [1], "warnings": "w", "patch": 7, "uid": request["uid"]});
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        (200, review.to_string())
    });
    hooks.script("/number", |_| (200, "17".to_owned()));
    hooks.script("/redirect", |_| (302, String::new()));
    for path in
        ["/large", "/deep", "/deep-patch", "/many", "/types", "/number", "/drip", "/redirect", "/plain"]
    {
        let mut hook = hooks.hook(&format!("{}.m.io", &path[1..]), path);
        hook["timeoutSeconds"] = json!(5);
        if path == "/plain" {
            hook["clientConfig"] = json!({"url": format!("{plain}/plain"), "caBundle": hooks.bundle});
        }
        install(&api, "mutating", "m", json!([hook])).await;
        let failed = api.post(MAPS, json!({"metadata": {"name": "m"}, "data": {"b": "2"}})).await;
        assert!(failed.code >= 400, "{path}: {}", failed.text);
        assert!(failed.text.len() < 64 << 10, "{path}: {} bytes of error", failed.text.len());
        api.get(&format!("{MAPS}/m")).await.failed(404);
        api.delete("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/m").await.ok();
        let metrics = api.get("/metrics").await.text;
        let counted = format!("apiserver_admission_webhook_rejection_count{{name=\"{}.m.io\"", &path[1..]);
        assert!(metrics.contains(&counted), "{path} is not counted: {}", message(&failed));
    }
    let asked = hooks.paths();
    assert!(!asked.contains(&"/good".to_owned()), "nobody follows a redirection");
    api.post(MAPS, json!({"metadata": {"name": "m"}})).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_other_types_is_no_verdict() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    for (number, (field, value, why)) in [
        ("allowed", json!({}), "object into Go struct field AdmissionResponse.response.allowed of type bool"),
        (
            "allowed",
            json!("true"),
            "string into Go struct field AdmissionResponse.response.allowed of type bool",
        ),
        ("patch", json!(7), "number into Go struct field AdmissionResponse.response.patch of type []uint8"),
        (
            "warnings",
            json!("w"),
            "string into Go struct field AdmissionResponse.response.warnings of type []string",
        ),
        (
            "warnings",
            json!([1]),
            "number into Go struct field AdmissionResponse.response.warnings of type string",
        ),
        (
            "status",
            json!([]),
            "array into Go struct field AdmissionResponse.response.status of type v1.Status",
        ),
        (
            "status",
            json!({"code": "403"}),
            "string into Go struct field Status.response.status.code of type int32",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (path, answer) = (format!("/{number}"), value.clone());
        hooks.answer(&path, move |_| json!({"allowed": true, field: answer}));
        for policy in ["Fail", "Ignore"] {
            let mut hook = hooks.hook("types.m.io", &path);
            hook["failurePolicy"] = policy.into();
            install(&api, "mutating", "m", json!([hook])).await;
            let answer = api.post(&format!("{MAPS}?dryRun=All"), json!({"metadata": {"name": "m"}})).await;
            match policy {
                "Ignore" => drop(answer.ok()),
                _ => {
                    answer.failed(500);
                    let said = message(&answer);
                    assert!(
                        said.ends_with(&format!("failed to call webhook: json: cannot unmarshal {why}")),
                        "{said}"
                    );
                }
            }
            api.delete("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/m").await.ok();
        }
    }
}

/// A server that answers every ClientHello with a ServerHello of TLS 1.0. Returns its URL.
async fn downgrading() -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut head = [0; 5];
            socket.read_exact(&mut head).await.unwrap();
            let mut hello = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
            socket.read_exact(&mut hello).await.unwrap();
            assert_eq!((head[0], hello[0]), (22, 1), "a ClientHello");
            // The version, a random number, no session, TLS_RSA_WITH_AES_128_CBC_SHA, no compression.
            let body = [&[3, 1][..], &[7; 32], &[0], &[0, 0x2f], &[0]].concat();
            let length = u8::try_from(body.len()).unwrap();
            let handshake = [&[2, 0, 0, length][..], &body].concat();
            let record = [&[22, 3, 1, 0, length + 4][..], &handshake].concat();
            socket.write_all(&record).await.unwrap();
            let _ = socket.read_to_end(&mut Vec::new()).await;
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_wants_an_older_tls_is_not_asked() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    let mut hook = hooks.hook("old.m.io", "/old");
    hook["clientConfig"]["url"] = format!("{}/old", downgrading().await).into();
    install(&api, "mutating", "m", json!([hook])).await;
    let failed = api.post(MAPS, json!({"metadata": {"name": "m"}})).await;
    failed.failed(500);
    assert!(message(&failed).contains("failed calling webhook \"old.m.io\""), "{}", message(&failed));
    assert!(!message(&failed).contains("deadline"), "it is refused, not waited for: {}", message(&failed));
    let metrics = api.get("/metrics").await.text;
    assert!(metrics.contains("apiserver_admission_webhook_rejection_count{name=\"old.m.io\""), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_answers_to_conversion_reviews_are_refused_and_counted() {
    let (api, hooks) = (Api::start().await, Hooks::start().await);
    let (_plain, plain) = plain();
    hooks.convert("/good", |_| ());
    hooks.convert("/large", |object| object["spec"]["note"] = "x".repeat(10 << 20).into());
    hooks.script("/deep", |request| {
        let answer = converted(request, &json!([17])).to_string();
        (200, answer.replace("17", &deep(20_000)))
    });
    hooks.script("/types", |request| (200, converted(request, &json!({"a": 1})).to_string()));
    hooks.script("/objects", |request| (200, converted(request, &json!([[1, 2, 3]])).to_string()));
    hooks.script("/many", |request| (200, converted(request, &json!(vec![1; 100_000])).to_string()));
    hooks.convert("/metadata", |object| object["metadata"] = json!([1]));
    hooks.convert("/owner", |object| object["metadata"]["uid"] = "another".into());
    hooks.script("/redirect", |_| (302, String::new()));
    define(&api, at(&hooks, "/good")).await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com";
    api.post(V1, thing("v1", "a", json!({"size": 1}))).await.ok();
    let hostile =
        ["/large", "/deep", "/types", "/objects", "/many", "/metadata", "/owner", "/redirect", "/plain"];
    for (count, hook) in hostile.into_iter().enumerate() {
        let mut client = at(&hooks, hook);
        if hook == "/plain" {
            client["url"] = json!(format!("{plain}/plain"));
        }
        api.merge(path, json!({"spec": {"conversion": {"webhook": {"clientConfig": client}}}})).await.ok();
        let failed = api.get(&format!("{V2}/a")).await;
        failed.failed(500);
        assert!(failed.text.len() < 64 << 10, "{hook}: {} bytes of error", failed.text.len());
        api.post(V2, thing("v2", "b", json!({"amount": 1}))).await.failed(500);
        api.get(&format!("{V1}/b")).await.failed(404);
        let metrics = api.get("/metrics").await.text;
        let line =
            |line: &&str| line.starts_with("apiserver_conversion_webhook_request_total{result=\"failure\"");
        let number = |line: &str| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap();
        let failures: usize = metrics.lines().filter(line).map(number).sum();
        assert_eq!(failures, 2 * (count + 1), "{hook}: {}", message(&failed));
    }
    assert!(!hooks.paths().contains(&"/good".to_owned()), "nobody follows a redirection");
    // One that never ends costs the request its time and no more.
    let client = at(&hooks, "/drip");
    api.merge(path, json!({"spec": {"conversion": {"webhook": {"clientConfig": client}}}})).await.ok();
    api.get(&format!("{V2}/a?timeout=1s")).await.failed(504);
    let client = at(&hooks, "/good");
    api.merge(path, json!({"spec": {"conversion": {"webhook": {"clientConfig": client}}}})).await.ok();
    assert_eq!(api.get(&format!("{V2}/a")).await.ok()["spec"]["amount"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_writes_that_wait_for_a_hook_slow_nobody_else() {
    hundred_writes_wait(200, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_large_writes_that_wait_for_a_hook_slow_nobody_elses_large_writes() {
    hundred_writes_wait(20, &"x".repeat(70_000)).await;
}

/// Creates and changes maps that wait for a hook, while others create and change so many secrets. All of them hold this text.
async fn hundred_writes_wait(others: usize, text: &str) {
    let (api, hooks) = (Arc::new(Api::start().await), Hooks::start().await);
    let secrets = "/api/v1/namespaces/default/secrets";
    let object = |name: &str, field: &str| json!({"metadata": {"name": name}, field: {"text": text}});
    for number in 0..50 {
        api.post(MAPS, object(&format!("old{number}"), "data")).await.ok();
    }
    let mut hook = hooks.hook("hang.v.io", "/hang");
    hook["timeoutSeconds"] = json!(30);
    install(&api, "validating", "v", json!([hook])).await;
    let write = async |prefix: &str| {
        let begin = std::time::Instant::now();
        for number in 0..others {
            let name = format!("{prefix}{number}");
            api.post(secrets, object(&name, "stringData")).await.ok();
            let change = json!({"metadata": {"labels": {"changed": "yes"}}});
            api.merge(&format!("{secrets}/{name}"), change).await.ok();
        }
        begin.elapsed()
    };
    let before = write("before").await;
    let waiting: Vec<_> = (0..100)
        .map(|number| {
            let (api, new) = (Arc::clone(&api), object(&format!("new{number}"), "data"));
            let mut old = object(&format!("old{}", number / 2), "data");
            old["metadata"]["labels"] = json!({"changed": "yes"});
            let path = format!("{MAPS}/old{}", number / 2);
            tokio::spawn(async move {
                let answer =
                    if number % 2 == 0 { api.put(&path, old).await } else { api.post(MAPS, new).await };
                answer.code
            })
        })
        .collect();
    let deadline = std::time::Instant::now() + Duration::from_secs(25);
    while hooks.asked.lock().len() < 100 {
        assert!(std::time::Instant::now() < deadline, "{} of them wait", hooks.asked.lock().len());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let during = write("during").await;
    assert!(waiting.iter().all(|write| !write.is_finished()), "they still wait");
    assert!(during < before * 10 + Duration::from_secs(2), "{during:?} instead of {before:?}");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_writes_something_large_does_not_wait_for_itself() {
    let (api, hooks) = (Arc::new(Api::start().await), Hooks::start().await);
    let text = "x".repeat(70_000);
    let (writer, written) = (Arc::clone(&api), text.clone());
    hooks.answer("/writes", move |_| {
        let secret = json!({"metadata": {"name": "of-the-hook"}, "stringData": {"text": written}});
        let write = writer.post("/api/v1/namespaces/default/secrets", secret);
        let answer = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(write));
        json!({"allowed": answer.code == 201})
    });
    let mut hook = hooks.hook("writes.v.io", "/writes");
    hook["timeoutSeconds"] = json!(10);
    install(&api, "validating", "v", json!([hook])).await;
    api.post(MAPS, json!({"metadata": {"name": "large"}, "data": {"text": text}})).await.ok();
    api.get("/api/v1/namespaces/default/secrets/of-the-hook").await.ok();
}
