//! Credentials that change while the connection is in use.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use watchkeeper_connection::RequestError;

use crate::place::{Place, ask};

/// A credential plugin that prints what the file `answer` holds, and counts its runs in `runs`.
fn plugin(place: &Place) -> String {
    let script = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\necho run >>runs\ncat answer\n";
    place.write("plugin", script);
    fs::set_permissions(place.file("plugin"), fs::Permissions::from_mode(0o755)).unwrap();
    "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}".into()
}

fn answers(place: &Place, status: &serde_json::Value) {
    let answer = serde_json::json!({
        "kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status,
    });
    place.write("answer", &answer.to_string());
}

fn runs(place: &Place) -> usize {
    fs::read_to_string(place.file("runs")).map_or(0, |runs| runs.lines().count())
}

fn is_refused(error: &RequestError) -> bool {
    matches!(error, RequestError::Refused(status) if status.code == Some(401))
}

#[tokio::test]
async fn a_plugin_is_asked_again_after_a_refusal_and_the_request_is_not_repeated() {
    let place = Place::start();
    answers(&place, &serde_json::json!({"token": "bad"}));
    let connection = place.connection(&plugin(&place)).await;
    assert_eq!(runs(&place), 0, "nothing was asked for yet");
    assert!(is_refused(&ask(&connection).await.unwrap_err()));
    assert_eq!(runs(&place), 1);
    answers(&place, &serde_json::json!({"token": "good"}));
    assert_eq!(ask(&connection).await.unwrap()["authorization"], "Bearer good");
    ask(&connection).await.unwrap();
    assert_eq!(runs(&place), 2);
}

#[tokio::test]
async fn a_certificate_of_a_plugin_is_shown_and_replaced() {
    let place = Place::start();
    let issue = |user: &str, expires: &str| {
        let (certificate, key) = place.site.client(user);
        answers(
            &place,
            &serde_json::json!({
                "clientCertificateData": certificate, "clientKeyData": key, "expirationTimestamp": expires,
            }),
        );
    };
    issue("jane", "2020-01-01T00:00:00Z");
    let connection = place.connection(&plugin(&place)).await;
    assert_eq!(ask(&connection).await.unwrap()["certificate"], "jane");
    issue("joan", "2999-01-01T00:00:00Z");
    let said = ask(&connection).await.unwrap();
    assert_eq!(said["certificate"], "joan");
    assert_eq!(ask(&connection).await.unwrap()["connection"], said["connection"]);
    assert_eq!(runs(&place), 2);
}

#[tokio::test]
async fn a_plugin_that_fails_is_why_nothing_is_sent_and_may_succeed_later() {
    let place = Place::start();
    let connection = place.connection(&plugin(&place)).await;
    let error = ask(&connection).await.unwrap_err().to_string();
    assert!(error.contains("plugin") && error.contains("exit status: 1"), "{error}");
    answers(&place, &serde_json::json!({"token": "good"}));
    ask(&connection).await.unwrap();
}

#[tokio::test]
async fn a_token_file_is_read_again_after_a_refusal() {
    let place = Place::start();
    place.write("token", "bad");
    let connection = place.connection("tokenFile: token").await;
    assert!(is_refused(&ask(&connection).await.unwrap_err()));
    place.write("token", "good\n");
    assert_eq!(ask(&connection).await.unwrap()["authorization"], "Bearer good");
}
