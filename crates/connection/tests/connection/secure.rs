//! TLS: whom we believe, and what we show.

use std::time::Duration;

use watchkeeper_connection::Connection;

use crate::place::{Place, Site, ask};

/// Has a minute pass, after which files are looked at again.
async fn later() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    // The server closes what was free for a minute, and the client has to hear of it before it sends anything.
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn a_server_of_our_authority_is_believed_and_paths_hosts_and_users_arrive() {
    let place = Place::start();
    let connection = place.connection("token: good, as: jane, as-groups: [a, b]").await;
    let said = ask(&connection).await.unwrap();
    assert_eq!(said["uri"], "/who?a=b");
    assert_eq!(said["host"], place.address.to_string());
    assert_eq!(said["authorization"], "Bearer good");
    assert_eq!((said["user"].as_str(), said["groups"].as_str()), (Some("jane"), Some("a,b")));
    assert!(said["certificate"].is_null());
}

#[tokio::test]
async fn a_name_and_a_password_are_sent() {
    let place = Place::start();
    let said = ask(&place.connection("username: jane, password: p").await).await.unwrap();
    assert_eq!(said["authorization"], "Basic amFuZTpw");
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_believed_unless_all_are() {
    let place = Place::start();
    place.write("other.crt", &Site::new().authority());
    let refused = |cluster: &'static str| {
        let kubeconfig = place.kubeconfig(cluster, "token: good");
        async move { Connection::from_kubeconfig(kubeconfig, None).await.unwrap() }
    };
    // The authorities of the system have not issued it either.
    for cluster in ["certificate-authority: other.crt", ""] {
        let error = ask(&refused(cluster).await).await.unwrap_err().to_string();
        assert!(
            error.contains("invalid peer certificate") && error.contains(&place.address.to_string()),
            "{error}"
        );
        assert!(!error.contains("good"), "{error}");
    }
    ask(&refused("insecure-skip-tls-verify: true").await).await.unwrap();
}

#[tokio::test]
async fn a_server_of_another_name_is_not_believed_unless_that_is_the_name_to_expect() {
    let place = Place::named(&["api.example.com"]);
    let error = ask(&place.connection("token: good").await).await.unwrap_err().to_string();
    assert!(error.contains("not valid for name"), "{error}");
    let cluster = "certificate-authority: ca.crt, tls-server-name: api.example.com";
    let kubeconfig = place.kubeconfig(cluster, "token: good");
    ask(&Connection::from_kubeconfig(kubeconfig, None).await.unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_server_whose_own_certificate_is_trusted_is_believed_if_it_is_for_that_host() {
    for (names, is_believed) in [(["127.0.0.1"], true), (["api.example.com"], false)] {
        let place = Place::named(&names);
        place.write("server.crt", &place.certificate);
        let kubeconfig = place.kubeconfig("certificate-authority: server.crt", "token: good");
        let answer = ask(&Connection::from_kubeconfig(kubeconfig, None).await.unwrap()).await;
        assert_eq!(answer.is_ok(), is_believed, "{answer:?}");
        // That of another server of the same authority is no proof.
        place.write("server.crt", &Place::named(&names).certificate);
        let kubeconfig = place.kubeconfig("certificate-authority: server.crt", "token: good");
        assert!(ask(&Connection::from_kubeconfig(kubeconfig, None).await.unwrap()).await.is_err());
    }
}

#[tokio::test]
async fn a_client_certificate_is_shown_and_replaced_when_its_files_are() {
    let place = Place::start();
    let write = |user: &str| {
        let (certificate, key) = place.site.client(user);
        place.write("me.crt", &certificate);
        place.write("me.key", &key);
    };
    write("jane");
    let connection = place.connection("client-certificate: me.crt, client-key: me.key").await;
    let first = ask(&connection).await.unwrap();
    assert_eq!(first["certificate"], "jane");
    write("joan");
    assert_eq!(ask(&connection).await.unwrap()["connection"], first["connection"]);
    later().await;
    assert_eq!(ask(&connection).await.unwrap()["certificate"], "joan");
    // What cannot be used leaves everything as it is.
    place.write("me.key", "nonsense");
    later().await;
    assert_eq!(ask(&connection).await.unwrap()["certificate"], "joan");
}

#[tokio::test]
async fn an_authority_is_replaced_when_its_file_is() {
    let place = Place::start();
    let connection = place.connection("token: good").await;
    ask(&connection).await.unwrap();
    place.write("ca.crt", &Site::new().authority());
    later().await;
    let error = ask(&connection).await.unwrap_err().to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");
    place.write("ca.crt", &place.site.authority());
    later().await;
    ask(&connection).await.unwrap();
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_when_the_connection_is_made() {
    let place = Place::start();
    let (certificate, _) = place.site.client("jane");
    place.write("me.crt", &certificate);
    place.write("empty", "");
    for (cluster, user, said) in [
        ("certificate-authority: nowhere", "", "nowhere: No such file"),
        ("certificate-authority: empty", "", "empty: no certificate in PEM"),
        ("", "client-certificate: me.crt, client-key: empty", "empty: no key in PEM"),
        ("", "client-certificate: empty, client-key: empty", "empty: no certificate in PEM"),
        ("", "tokenFile: empty", "it is empty"),
    ] {
        let error = Connection::from_kubeconfig(place.kubeconfig(cluster, user), None).await.unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}
