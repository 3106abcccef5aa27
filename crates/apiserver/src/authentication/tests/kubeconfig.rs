use std::fs;
use std::os::unix::fs::PermissionsExt;

use kube_client::config::{KubeConfigOptions, Kubeconfig as Read};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn kube_client_reads_it_and_is_admin() {
    let server = Server::start().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kubeconfig");
    let url = format!("https://{}", server.https);
    Kubeconfig::new(&url, &server.credentials).unwrap().write(&file).unwrap();

    let read = Read::read_from(&file).unwrap();
    let context = KubeConfigOptions::default();
    let config = kube_client::Config::from_custom_kubeconfig(read, &context).await.unwrap();
    let client = kube_client::Client::try_from(config).unwrap();
    let answer = client.request_text(http::Request::get("/whoami").body(vec![]).unwrap()).await.unwrap();
    assert_eq!(answer, "admin  system:masters|system:authenticated false");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_certificate_alone_is_enough_and_so_is_its_token() {
    let server = Server::start().await;
    let url = format!("https://{}", server.https);
    let text = Kubeconfig::new(&url, &server.credentials).unwrap().as_str().to_owned();
    for without in ["token: ", "client-"] {
        let part: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with(without)).collect();
        let read: Read = Read::from_yaml(&part.join("\n")).unwrap();
        let config =
            kube_client::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
        let client = kube_client::Client::try_from(config).unwrap();
        let answer = client.request_text(http::Request::get("/whoami").body(vec![]).unwrap()).await.unwrap();
        assert_eq!(answer, "admin  system:masters|system:authenticated false", "without {without}");
    }
}

#[test]
fn kubectl_understands_it() {
    let credentials = Credentials::load_or_create(None).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kubeconfig");
    Kubeconfig::new("https://[::1]:6443", &credentials).unwrap().write(&file).unwrap();
    let mut kubectl = std::process::Command::new("kubectl");
    kubectl.args(["config", "view", "--minify", "--raw", "-o"]).arg(
        "jsonpath={.current-context} {.clusters[0].cluster.server} {.contexts[0].context.user} {.users[0].user.token}",
    );
    let output = kubectl.arg("--kubeconfig").arg(&file).output().expect("kubectl is installed");
    let expected = format!("watchkeeper https://[::1]:6443 watchkeeper {}", credentials.admin_token());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn it_takes_the_place_of_its_own_kind_and_of_an_empty_file_only() {
    let credentials = Credentials::load_or_create(None).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kubeconfig");
    let ours = Kubeconfig::new("https://127.0.0.1:6443", &credentials).unwrap();
    ours.write(&file).unwrap();
    Kubeconfig::new("https://127.0.0.1:7443", &credentials).unwrap().write(&file).unwrap();
    assert!(fs::read_to_string(&file).unwrap().contains("7443"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);

    for (content, complaint) in [
        ("my notes", "is not a kubeconfig"),
        ("{\"kind\": \"Pod\"}", "is not a kubeconfig"),
        ("\tno yaml", "is not a kubeconfig"),
        ("kind: Config\ncontexts: []\n", "is a kubeconfig without the context watchkeeper"),
        (
            "kind: Config\ncurrent-context: watchkeeper\ncontexts: [{name: watchkeeper}, {name: prod}]",
            "is a kubeconfig that has more than watchkeeper in it (prod)",
        ),
        (
            "kind: Config\ncurrent-context: watchkeeper\ncontexts: [{name: watchkeeper}]\nusers: [{name: me}]",
            "is a kubeconfig that has more than watchkeeper in it (me)",
        ),
    ] {
        fs::write(&file, content).unwrap();
        let error = ours.write(&file).unwrap_err().to_string();
        assert!(error.contains(complaint) && error.ends_with("choose another file"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
    }

    fs::write(&file, "\n").unwrap();
    ours.write(&file).unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let dangling = directory.path().join("dangling");
    std::os::unix::fs::symlink(directory.path().join("nowhere"), &dangling).unwrap();
    for link in [link, dangling] {
        let error = ours.write(&link).unwrap_err().to_string();
        assert!(
            error.ends_with("is a symbolic link, and is not written through: name the file itself"),
            "{error}"
        );
        assert!(link.is_symlink());
    }
    assert!(!directory.path().join("nowhere").exists());
    let error = ours.write(&directory.path().join("missing/kubeconfig")).unwrap_err().to_string();
    assert!(error.contains("missing/kubeconfig: No such file"), "{error}");
}
