//! What is on a server before the cases are sent.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use kube_client::{Client, client::Body};
use serde_json::{Value, json};

use super::kind::{KINDS, Kind, LABEL, NAMESPACES};
use super::user::{ANONYMOUS, STRANGER, USERS};

/// How long a server may take until what was written is in force.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The objects of the fixture and of requests, each with its version.
pub type State = BTreeMap<String, String>;

/// Puts the rights of the users and all objects on a server, and returns when they are in force.
pub async fn prepare(admin: &Client) -> Result<(), String> {
    let namespaces = &KINDS[0];
    for name in NAMESPACES {
        create(admin, namespaces, name, None).await?;
    }
    for (path, object) in USERS.iter().flat_map(|user| user.rights()) {
        post(admin, &path, &object).await?;
    }
    for kind in KINDS.iter().skip(1) {
        let places: &[Option<&str>] = if kind.namespaced { &[Some("x"), Some("y")] } else { &[None] };
        for namespace in places {
            for name in kind.names {
                create(admin, kind, name, *namespace).await?;
            }
        }
        if kind.plural == "customresourcedefinitions" {
            until_served(admin).await?;
        }
    }
    until_in_force(admin).await
}

/// Whether a server was started with the tokens of the users.
pub async fn knows_users(anonymous: &Client) -> Result<bool, String> {
    let request = Request::get("/api").header("authorization", "Bearer nobody");
    let request = request.body(Body::empty()).map_err(|error| error.to_string())?;
    let answer = anonymous.send(request).await.map_err(|error| error.to_string())?;
    Ok(answer.status() != http::StatusCode::UNAUTHORIZED)
}

/// All objects with the label of the fixture.
pub async fn state(admin: &Client) -> Result<State, String> {
    let mut state = State::new();
    for kind in KINDS.iter().filter(|kind| !kind.names.is_empty()) {
        let path = format!("/{}/{}?labelSelector={LABEL}%3D1", kind.root().join("/"), kind.plural);
        let list = get(admin, &path).await?;
        for item in list["items"].as_array().into_iter().flatten() {
            let part = |name: &str| item["metadata"][name].as_str().unwrap_or_default();
            let name = format!("{} {}/{}", kind.plural, part("namespace"), part("name"));
            state.insert(name, format!("{} {}", part("uid"), part("resourceVersion")));
        }
    }
    Ok(state)
}

async fn create(admin: &Client, kind: &Kind, name: &str, namespace: Option<&str>) -> Result<(), String> {
    let place = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
    let path = format!("/{}/{place}{}", kind.root().join("/"), kind.plural);
    post(admin, &path, &kind.object(name, namespace)).await
}

/// Waits until the custom resources are served.
async fn until_served(admin: &Client) -> Result<(), String> {
    for kind in KINDS.iter().filter(|kind| kind.group == "example.com") {
        let path = format!("/{}/{}", kind.root().join("/"), kind.plural);
        until(&path, async || Ok(send(admin, "GET", &path, None).await?.0 == 200)).await?;
    }
    Ok(())
}

/// Waits until every user has the rights of the table: a server may follow roles and bindings at some distance.
async fn until_in_force(admin: &Client) -> Result<(), String> {
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    for user in USERS.iter().filter(|user| ![ANONYMOUS, STRANGER].contains(&user.name)) {
        // `pods/*` is a star that allows nothing.
        for rule in user.read().iter().filter(|rule| !rule.resources.contains(&"pods/*")) {
            let verb = rule.verbs.first().map_or("get", |verb| if *verb == "*" { "get" } else { verb });
            let name = rule.names.first().copied().unwrap_or_default();
            let mut spec = json!({"user": user.name, "groups": [user.group]});
            match (rule.paths.first(), rule.resources.first()) {
                (Some(path), _) => {
                    spec["nonResourceAttributes"] = json!({"verb": verb, "path": path.replace('*', "a")});
                }
                (None, resource) => {
                    let (resource, part) = resource
                        .and_then(|it| it.split_once('/'))
                        .unwrap_or_else(|| (resource.copied().unwrap_or_default(), ""));
                    let star = |text: &str| text.replace('*', "pods");
                    spec["resourceAttributes"] = json!({
                        "verb": verb,
                        "group": rule.groups.first().map(|group| group.replace('*', "")),
                        "resource": star(resource),
                        "subresource": star(part),
                        "namespace": user.scope,
                        "name": name,
                    });
                }
            }
            let review =
                json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec});
            until(&format!("the rights of {}: {review}", user.name), async || {
                let (_, answer) = send(admin, "POST", path, Some(&review)).await?;
                Ok(answer["status"]["allowed"] == true)
            })
            .await?;
        }
    }
    Ok(())
}

async fn until(what: &str, condition: impl AsyncFn() -> Result<bool, String>) -> Result<(), String> {
    let start = tokio::time::Instant::now();
    while !condition().await? {
        if start.elapsed() > TIMEOUT {
            return Err(format!("not after {TIMEOUT:?}: {what}"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

async fn get(admin: &Client, path: &str) -> Result<Value, String> {
    match send(admin, "GET", path, None).await? {
        (200, value) => Ok(value),
        (code, answer) => Err(format!("GET {path}: {code} {answer}")),
    }
}

async fn post(admin: &Client, path: &str, object: &Value) -> Result<(), String> {
    match send(admin, "POST", path, Some(object)).await? {
        // Nothing changes the fixture, so one that is there is as good as a new one.
        (201 | 409, _) => Ok(()),
        (code, answer) => Err(format!("POST {path} {object}: {code} {answer}")),
    }
}

async fn send(
    admin: &Client,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<(u16, Value), String> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(Body::from(body.into_bytes())).map_err(|error| error.to_string())?;
    let answer = admin.send(request).await.map_err(|error| format!("{method} {path}: {error}"))?;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.map_err(|error| format!("{method} {path}: {error}"))?;
    Ok((code, serde_json::from_slice(&bytes.to_bytes()).unwrap_or_default()))
}
