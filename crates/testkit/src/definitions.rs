//! The definitions of custom resources that a test installs.

use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use watchkeeper_apiserver::authentication::Identity;
use watchkeeper_apiserver::front::Body;
use watchkeeper_schema::yaml;

use crate::server::Server;

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// How long a definition may take until it is served.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Creates a definition and waits until its kind is served.
pub(crate) async fn install(server: &Server, definition: &Value) -> Result<(), String> {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    ask(server, "POST", PATH, definition).await.map_err(|why| format!("definition {name:?}: {why}"))?;
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let found = ask(server, "GET", &format!("{PATH}/{name}"), &Value::Null).await?;
        let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions
            .iter()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
        {
            return served(server, definition, deadline).await;
        }
        if Instant::now() > deadline {
            return Err(format!("definition {name:?} is not served: {conditions:?}"));
        }
        sleep(Duration::from_millis(1)).await;
    }
}

/// Waits until a kind is served in all versions: a real server may say that it is established a moment before.
async fn served(server: &Server, definition: &Value, deadline: Instant) -> Result<(), String> {
    let spec = &definition["spec"];
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let versions = spec["versions"].as_array().into_iter().flatten();
    for version in versions.filter(|version| version["served"] == true) {
        let root = format!("/apis/{group}/{}", text(&version["name"]));
        let path = format!("{root}/{plural}?limit=1");
        while let Err(why) = ask(server, "GET", &path, &Value::Null).await {
            if Instant::now() > deadline {
                return Err(format!("{path} is not served: {why}"));
            }
            sleep(Duration::from_millis(10)).await;
        }
        if let Server::Real(_) = server {
            // A real server holds up whoever creates something of a kind that is new, for two seconds; not the test.
            let scope = if spec["scope"] == "Namespaced" { "/namespaces/default" } else { "" };
            let path = format!("{root}{scope}/{plural}?dryRun=All");
            let _refused = ask(server, "POST", &path, &json!({})).await;
        }
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Sends something past all faults and without being noted.
pub(crate) async fn ask(server: &Server, method: &str, path: &str, body: &Value) -> Result<Value, String> {
    let body = if body.is_null() { Body::empty() } else { Body::whole(body.to_string()) };
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(body).map_err(|error| error.to_string())?;
    let response = server.call(request, Identity::admin()).await.map_err(|error| error.to_string())?;
    let code = response.status();
    let bytes = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
    let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if code.is_success() {
        Ok(value)
    } else {
        Err(value["message"].as_str().unwrap_or(code.as_str()).to_owned())
    }
}

/// The documents of a YAML text, without empty ones.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>, String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if line == "---" || line.starts_with("--- ") {
            documents.push(String::new());
        } else if let Some(document) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    let values =
        documents.iter().map(|document| yaml::decode(document.as_bytes()).map(|decoded| decoded.value));
    let values: Vec<Value> = values.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    Ok(values.into_iter().filter(|value| !value.is_null()).collect())
}
