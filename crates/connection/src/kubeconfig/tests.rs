use std::fs;

use http::HeaderMap;
use serde_json::json;

use super::*;
use crate::Config;
use crate::credentials::{CredentialSettings, Interactive};
use crate::tls::{Identity, Pem, Trust};

const FOLDER: &str = "/etc/kube";

fn parse(text: &str) -> Kubeconfig {
    Kubeconfig::parse(text, Path::new(FOLDER)).unwrap()
}

/// A kubeconfig with one context, of a cluster and a user with these fields in YAML's flow style.
fn one(cluster: &str, user: &str) -> Kubeconfig {
    parse(&format!(
        "current-context: here\ncontexts: [{{name: here, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
    ))
}

fn config(cluster: &str, user: &str) -> Result<Config, String> {
    let kubeconfig = one(cluster, user);
    Config::from_kubeconfig(&kubeconfig, None).map_err(|error| error.to_string())
}

fn credentials(user: &str) -> CredentialSettings {
    config("server: 'https://a'", user).unwrap().credentials
}

fn unusable(cluster: &str, user: &str) -> String {
    let error = config(cluster, user).unwrap_err();
    assert!(!error.contains("hunter2"), "{error}");
    error
}

#[test]
fn of_several_files_the_first_wins_with_whole_entries() {
    let first = parse(
        "contexts: [{name: a, context: {cluster: one}}]\nclusters: [{name: one, cluster: {server: 'https://first'}}]\n\
         users: [{name: red, user: {token: first}}]\n",
    );
    let second = parse(
        "current-context: b\ncontexts: [{name: a, context: {cluster: two}}, {name: b, context: {cluster: one, user: red, namespace: shop}}]\n\
         clusters: [{name: one, cluster: {server: 'https://second', tls-server-name: x}}]\n\
         users: [{name: red, user: {username: second, password: p}}]\n",
    );
    let third = parse("current-context: a\n");
    let merged = first.merge(second).merge(third);
    assert_eq!(merged.current_context(), Some("b"));
    assert_eq!(merged.contexts().collect::<Vec<_>>(), ["a", "b"]);
    let config = Config::from_kubeconfig(&merged, None).unwrap();
    assert_eq!((config.url().as_str(), config.default_namespace()), ("https://first", "shop"));
    assert_eq!(config.tls.server_name, None);
    assert_eq!(config.credentials, CredentialSettings::Token("first".into()));
    let other = Config::from_kubeconfig(&merged, Some("a")).unwrap();
    assert_eq!((other.url().as_str(), other.default_namespace()), ("https://first", "default"));
}

#[test]
fn paths_are_relative_to_their_file_and_commands_only_with_a_folder() {
    let cluster = "server: 'https://a', certificate-authority: ca.crt";
    let config =
        config(cluster, "client-certificate: ../me.crt, client-key: /keys/me.key, tokenFile: token").unwrap();
    let file = |path: &str| Pem::File(path.into());
    assert_eq!(config.tls.trust, Trust::Authorities(file("/etc/kube/ca.crt")));
    let identity = Identity { certificate: file("/etc/kube/../me.crt"), key: file("/keys/me.key") };
    assert_eq!(config.tls.identity, Some(identity));
    assert_eq!(config.credentials, CredentialSettings::TokenFile("/etc/kube/token".into(), None));
    let command = |command: &str| match credentials(&format!(
        "exec: {{apiVersion: client.authentication.k8s.io/v1beta1, command: {command}}}"
    )) {
        CredentialSettings::Plugin(plugin) => plugin.command,
        other => panic!("{other:?}"),
    };
    assert_eq!(command("aws"), "aws");
    assert_eq!(command("bin/aws"), "/etc/kube/bin/aws");
    assert_eq!(command("/bin/aws"), "/bin/aws");
}

#[test]
fn data_counts_more_than_files() {
    // "hunter2\n" in base64.
    let cluster = "server: 'https://a', certificate-authority: f, certificate-authority-data: aHVudGVyMgo=";
    let user = "client-certificate: f, client-certificate-data: aHVudGVyMgo=, client-key: f, client-key-data: aHVudGVyMgo=";
    let config = config(cluster, user).unwrap();
    let data = || Pem::Data(b"hunter2\n".to_vec());
    assert_eq!(config.tls.trust, Trust::Authorities(data()));
    assert_eq!(config.tls.identity, Some(Identity { certificate: data(), key: data() }));
    let shown = format!("{config:?} {:?} {:?}", config.tls, one(cluster, user));
    assert!(!shown.contains("hunter2") && !shown.contains("104, 117"), "{shown}");
}

#[test]
fn one_way_to_prove_who_asks_is_chosen() {
    assert_eq!(credentials(""), CredentialSettings::None);
    assert_eq!(credentials("token: t"), CredentialSettings::Token("t".into()));
    assert_eq!(
        credentials("token: t, tokenFile: f"),
        CredentialSettings::TokenFile("/etc/kube/f".into(), Some("t".into()))
    );
    assert_eq!(credentials("username: u, password: p"), CredentialSettings::Basic("u".into(), "p".into()));
    let exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: c, interactiveMode: Never}";
    assert!(matches!(credentials(exec), CredentialSettings::Plugin(_)));
    assert_eq!(credentials(&format!("token: t, {exec}")), CredentialSettings::Token("t".into()));
    let shown =
        format!("{:?} {:?}", credentials("token: hunter2"), credentials("username: u, password: hunter2"));
    assert!(!shown.contains("hunter2"), "{shown}");
    // As kubectl has it, nothing of this is sent without TLS.
    assert_eq!(config("server: 'http://a'", "token: t").unwrap().credentials, CredentialSettings::None);
}

#[test]
fn a_plugin_has_all_that_it_is_configured_with() {
    let user = "exec: {apiVersion: client.authentication.k8s.io/v1, command: c, args: [a, b], env: [{name: ENV, value: v}], \
                interactiveMode: IfAvailable, installHint: \"get it\\e[1m\", provideClusterInfo: true}";
    let cluster = "server: 'https://a', tls-server-name: name, certificate-authority-data: Y2E=, disable-compression: true, \
                   extensions: [{name: other, extension: 1}, {name: client.authentication.k8s.io/exec, extension: {k: v}}]";
    let CredentialSettings::Plugin(plugin) = config(cluster, user).unwrap().credentials else { panic!() };
    assert_eq!(plugin.args, ["a", "b"]);
    assert_eq!(plugin.env, [("ENV".to_owned(), "v".to_owned())]);
    assert_eq!((plugin.interactive, plugin.install_hint.as_str()), (Interactive::IfAvailable, "get it[1m"));
    let told = json!({
        "server": "https://a", "tls-server-name": "name", "certificate-authority-data": "Y2E=", "disable-compression": true,
        "config": {"k": "v"},
    });
    assert_eq!(plugin.cluster, Some(told));
}

#[test]
fn whom_to_act_as_is_in_headers() {
    let user = "as: jane, as-uid: '7', as-groups: [a, b], as-user-extra: {example.com/team: [x, z]}";
    let headers = config("server: 'http://a'", user).unwrap().impersonation;
    let all = |headers: &HeaderMap, name: &str| {
        headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(all(&headers, "impersonate-user"), ["jane"]);
    assert_eq!(all(&headers, "impersonate-uid"), ["7"]);
    assert_eq!(all(&headers, "impersonate-group"), ["a", "b"]);
    assert_eq!(all(&headers, "impersonate-extra-example.com%2fteam"), ["x", "z"]);
}

#[test]
fn what_cannot_be_used_is_said_without_secrets() {
    let https = "server: 'https://a'";
    for (cluster, user, said) in [
        ("", "", "cluster \"c\" has no server"),
        ("server: 'ftp://a'", "", "ftp://a"),
        (
            "server: 'https://a', insecure-skip-tls-verify: true, certificate-authority: f",
            "",
            "one of them has to go",
        ),
        ("server: 'https://a', proxy-url: 'socks5://u:hunter2@a'", "", "socks5 proxies are not supported"),
        (https, "client-certificate: f", "no client-key"),
        (https, "token: hunter2, username: u", "one of them has to go"),
        (
            https,
            "auth-provider: {name: gcp, config: {access-token: hunter2}}",
            "auth-provider, which Kubernetes has removed",
        ),
        (https, "as-groups: [a]", "without as"),
        (https, "as: \"a\\nb\"", "impersonate-user"),
        (
            https,
            "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, interactiveMode: Never, command: c}",
            "v1alpha1",
        ),
        (https, "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}", "no command"),
        (https, "exec: {apiVersion: client.authentication.k8s.io/v1, command: c}", "interactiveMode"),
        (
            "server: 'https://a', certificate-authority: nowhere",
            "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: c, provideClusterInfo: true}",
            "/etc/kube/nowhere",
        ),
    ] {
        let error = unusable(cluster, user);
        assert!(error.contains(said), "{cluster} {user}: {error}");
    }
}

#[test]
fn what_is_no_kubeconfig_is_said_without_secrets() {
    for (text, said) in [
        ("- a", "expected fields"),
        ("kind: Pod", "kind is \"Pod\""),
        ("apiVersion: v2", "apiVersion is \"v2\""),
        ("users: [{name: u, user: {token: [hunter2]}}]", "user \"u\": token: expected a text"),
        (
            "users: [{name: u, user: {client-key-data: 'hunter2!'}}]",
            "user \"u\": client-key-data: expected base64",
        ),
        ("users: hunter2", "users: expected a list"),
        ("users: [{name: u}, {name: u}]", "users has \"u\" twice"),
        ("clusters: [{name: c, cluster: {insecure-skip-tls-verify: maybe}}]", "expected true or false"),
        ("a: b: c", "1:"),
    ] {
        let error = Kubeconfig::parse(text, Path::new(FOLDER)).unwrap_err();
        assert!(error.contains(said) && !error.contains("hunter2"), "{text}: {error}");
    }
}

#[test]
fn contexts_that_are_not_there_are_answered_with_those_that_are() {
    let kubeconfig = parse("contexts: [{name: b, context: {}}, {name: a, context: {cluster: gone}}]");
    let error = |context| Config::from_kubeconfig(&kubeconfig, context).unwrap_err().to_string();
    assert_eq!(error(Some("c")), "there is no context \"c\" in the kubeconfig: it has a, b");
    assert_eq!(error(None), "the kubeconfig has no current context: it has a, b");
    assert!(error(Some("a")).contains("\"gone\", which is not in the kubeconfig"));
    assert!(error(Some("b")).contains("names no cluster"));
    let empty = Config::from_kubeconfig(&parse(""), None).unwrap_err();
    assert_eq!(empty.to_string(), "the kubeconfig has no current context: it has none");
}

#[test]
fn servers_without_a_scheme_speak_tls_if_there_is_something_to_speak_it_with() {
    let url = |cluster: &str, user: &str| config(cluster, user).unwrap().url();
    assert_eq!(url("server: 'a:1'", ""), "http://a:1");
    assert_eq!(url("server: 'a:1', insecure-skip-tls-verify: true", ""), "https://a:1");
    assert_eq!(url("server: 'a:1'", "client-certificate: f, client-key: f"), "https://a:1");
}

#[test]
fn files_are_read_in_the_encodings_that_editors_write() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let text = "current-context: hübsch\n";
    let wide = |mark: [u8; 2], bytes: fn(u16) -> [u8; 2]| {
        mark.into_iter().chain(text.encode_utf16().flat_map(bytes)).collect::<Vec<u8>>()
    };
    for bytes in [
        text.as_bytes().to_vec(),
        [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        wide([0xff, 0xfe], u16::to_le_bytes),
        wide([0xfe, 0xff], u16::to_be_bytes),
    ] {
        fs::write(&file, bytes).unwrap();
        assert_eq!(Kubeconfig::read(&file).unwrap().current_context(), Some("hübsch"));
    }
    fs::write(&file, b"\xff\xff").unwrap();
    let error = Kubeconfig::read(&file).unwrap_err().to_string();
    assert!(error.contains("UTF-8") && error.contains(&file.display().to_string()), "{error}");
    let error = Kubeconfig::read(folder.path().join("nowhere")).unwrap_err().to_string();
    assert!(error.contains("nowhere"), "{error}");
}
