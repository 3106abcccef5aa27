//! `watchkeeper generate`, as an operator's project meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use quorum::{Quorum, QuorumFields, QuorumFieldsMethod};
use serde_json::{Value, json};
use watchkeeper::prelude::{Client, Key, Manager};
use watchkeeper_testkit::TestEnv;

/// What `generate types` makes of `quorums.yaml`.
#[path = "generate/quorum.rs"]
#[rustfmt::skip]
#[allow(unreachable_pub, reason = "it is generated")]
mod quorum;

fn generate(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    command.arg("generate").args(arguments).current_dir(folder).stdin(Stdio::null());
    command.output().unwrap()
}

fn told(output: &Output) -> String {
    [&*output.stdout, &*output.stderr].map(String::from_utf8_lossy).concat()
}

fn operators() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../operators").canonicalize().unwrap()
}

/// What the program of an operator prints about itself.
fn webapp() -> Value {
    let manager = Manager::try_from_args(["watchkeeper-webapp"]).unwrap().version(env!("CARGO_PKG_VERSION"));
    let manager = watchkeeper_webapp::webhooks(watchkeeper_webapp::operator(manager));
    serde_json::to_value(manager.description()).unwrap()
}

/// A folder with the description of the WebApp operator.
struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        project.describe(&webapp());
        project
    }

    fn describe(&self, description: &Value) {
        fs::write(self.0.path().join("description.json"), description.to_string()).unwrap();
    }

    fn generate(&self, arguments: &[&str]) -> Output {
        let mut all = vec!["--description", "description.json"];
        all.extend(arguments);
        generate(self.0.path(), &all)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }
}

#[test]
fn what_is_checked_in_for_the_webapp_operator_is_what_its_code_says() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("description.json");
    fs::write(&file, webapp().to_string()).unwrap();
    let output = generate(&operators().join("webapp"), &["--check", "--description", file.to_str().unwrap()]);
    let hint = "cd operators/webapp && cargo run -p watchkeeper-cli -- generate";
    assert!(output.status.success(), "{}\n{hint}", told(&output));
}

#[test]
fn check_names_what_was_edited_is_missing_or_is_left_from_earlier() {
    let project = Project::new();
    let output = project.generate(&[]);
    assert!(output.status.success(), "{}", told(&output));
    assert!(project.generate(&["--check"]).status.success());

    fs::write(project.at("deploy/rbac.yaml"), "edited").unwrap();
    fs::remove_file(project.at("deploy/install.yaml")).unwrap();
    fs::write(project.at("deploy/crds/old.yaml"), "left").unwrap();
    fs::write(project.at("deploy/chart/values.yaml"), "replicas: 1 # mine\n").unwrap();
    fs::write(project.at("deploy/notes.md"), "mine").unwrap();
    let output = project.generate(&["--check"]);
    assert_eq!(output.status.code(), Some(1));
    let lines = told(&output);
    for line in [
        "deploy/rbac.yaml differs",
        "deploy/install.yaml is missing",
        "deploy/crds/old.yaml is left from earlier",
    ] {
        assert!(lines.contains(line), "{line} is not in {lines}");
    }
    assert!(!lines.contains("values.yaml") && !lines.contains("notes.md"), "{lines}");
    // Nothing was written.
    assert_eq!(fs::read_to_string(project.at("deploy/rbac.yaml")).unwrap(), "edited");

    assert!(project.generate(&["rbac"]).status.success());
    assert!(fs::read_to_string(project.at("deploy/rbac.yaml")).unwrap().contains("ServiceAccount"));
    assert!(!project.at("deploy/install.yaml").exists(), "only the roles were asked for");
    assert!(project.generate(&[]).status.success());
    assert!(!project.at("deploy/crds/old.yaml").exists());
    assert_eq!(fs::read_to_string(project.at("deploy/chart/values.yaml")).unwrap(), "replicas: 1 # mine\n");
    assert_eq!(fs::read_to_string(project.at("deploy/notes.md")).unwrap(), "mine");
}

#[test]
fn what_a_bundle_would_give_too_many_rights_has_everything_but_a_bundle_and_is_told_why() {
    let project = Project::new();
    assert!(project.generate(&[]).status.success());
    assert!(project.at("deploy/bundle").exists());
    let limited = Manager::try_from_args(["watchkeeper-webapp", "--namespaces", "shop"]).unwrap();
    let limited = watchkeeper_webapp::webhooks(watchkeeper_webapp::operator(limited));
    project.describe(&serde_json::to_value(limited.description()).unwrap());
    let output = project.generate(&[]);
    let note = "note: watchkeeper-webapp has no bundle for the Operator Lifecycle Manager: its rights to ";
    assert!(output.status.success() && told(&output).contains(note), "{}", told(&output));
    // That of before had the rights of the whole cluster.
    let csv = "deploy/bundle/manifests/watchkeeper-webapp.clusterserviceversion.yaml";
    assert!(!project.at(csv).exists() && project.at("deploy/install.yaml").exists());
    assert!(project.generate(&["--check"]).status.success());
    let output = project.generate(&["olm"]);
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(told(&output).contains("has no bundle"), "{}", told(&output));
}

#[test]
fn samples_that_are_given_are_examples_and_those_that_cannot_be_read_are_named() {
    let project = Project::new();
    let samples = operators().join("webapp/samples");
    let given = samples.to_str().unwrap();
    let output = project.generate(&["docs", "olm", "--samples", given]);
    assert!(output.status.success(), "{}", told(&output));
    let text = fs::read_to_string(project.at("deploy/docs/api.md")).unwrap();
    assert_eq!(text.matches("### Example").count(), 2, "one of each version: {text}");
    // What is of no kind of the program is an example of something else.
    fs::write(project.at("other.yaml"), "apiVersion: v1\nkind: Secret\nmetadata: {name: theirs}\n").unwrap();
    assert!(project.generate(&["olm", "--samples", given, "--samples", "other.yaml"]).status.success());
    let csv = project.at("deploy/bundle/manifests/watchkeeper-webapp.clusterserviceversion.yaml");
    let csv = fs::read_to_string(csv).unwrap();
    assert!(csv.contains("shop-as-before") && !csv.contains("theirs"), "{csv}");
    fs::write(project.at("list.yaml"), "- one\n").unwrap();
    for (wrong, why) in [("none.yaml", "No such file"), ("list.yaml", "no object")] {
        let output = project.generate(&["docs", "--samples", wrong]);
        assert_eq!(output.status.code(), Some(2), "{}", told(&output));
        assert!(told(&output).contains(&format!("--samples {wrong}: ")), "{}", told(&output));
        assert!(told(&output).contains(why), "{}", told(&output));
    }
}

#[test]
fn a_definition_that_breaks_an_earlier_one_is_refused_and_nothing_is_written() {
    let project = Project::new();
    assert!(project.generate(&["crds", "--output", "released"]).status.success());
    assert!(project.generate(&["crds", "--against", "released/crds"]).status.success());
    let mut changed = webapp();
    let spec = "/definitions/0/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    changed.pointer_mut(&format!("{spec}/properties")).unwrap().as_object_mut().unwrap().remove("env");
    changed.pointer_mut(&format!("{spec}/properties/replicas/maximum")).unwrap().clone_from(&Value::from(5));
    project.describe(&changed);
    let before = fs::read_to_string(project.at("deploy/crds/webapps.apps.watchkeeper.dev.yaml")).unwrap();
    let output = project.generate(&["crds", "--against", "released/crds"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    for line in ["spec.env: the field is gone", "spec.replicas: its maximum was 10"] {
        assert!(told(&output).contains(line), "{}", told(&output));
    }
    let after = fs::read_to_string(project.at("deploy/crds/webapps.apps.watchkeeper.dev.yaml")).unwrap();
    assert_eq!(before, after);
}

#[test]
fn a_mistake_in_a_definition_is_named_with_its_field_and_nothing_is_written() {
    let project = Project::new();
    let mut broken = webapp();
    let conditions =
        "/definitions/0/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions";
    let conditions = broken.pointer_mut(conditions).unwrap().as_object_mut().unwrap();
    conditions.remove("x-kubernetes-list-type");
    conditions.remove("x-kubernetes-list-map-keys");
    project.describe(&broken);
    let output = project.generate(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        told(&output).contains("error: webapps.apps.watchkeeper.dev v1alpha1: status.conditions: "),
        "{}",
        told(&output)
    );
    assert!(!project.at("deploy").exists());
}

#[test]
fn what_cannot_be_is_one_line_with_code_2_and_writes_nothing() {
    let project = Project::new();
    let script = |name: &str, text: &str| {
        fs::write(project.at(name), text).unwrap();
        fs::set_permissions(project.at(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("mute", "#!/bin/sh\nexit 0\n");
    script("hangs", "#!/bin/sh\nexec sleep 600\n");
    script("fails", "#!/bin/sh\nexit 3\n");
    script("other", "#!/bin/sh\necho '{\"apiVersion\": \"describe.watchkeeper.dev/v9\"}'\n");
    fs::write(project.at("text.json"), "Starting the operator").unwrap();
    fs::write(project.at("empty.yaml"), "kind: List\n").unwrap();
    let mut unnamed = webapp();
    unnamed["name"] = "My Operator".into();
    fs::write(project.at("unnamed.json"), unnamed.to_string()).unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&[], "there is no crate in this folder"),
        (&["--description", "nowhere.json"], "nowhere.json"),
        (&["--description", "text.json"], "this is not the description of an operator"),
        (&["--description", "unnamed.json"], "no DNS label"),
        (&["--binary", "nowhere"], "nowhere describe"),
        (&["--binary", "mute"], "this is not the description of an operator"),
        (&["--binary", "hangs"], "hangs describe: no answer within 10 s: the program has to describe itself"),
        (&["--description", "description.json", "--namespace", "No_Label"], "\"No_Label\" is no namespace"),
        (&["--description", "description.json", "--watch-namespaces", "a,b/c"], "\"b/c\" is no namespace"),
        (&["--binary", "fails"], "the program has to describe itself"),
        (&["--binary", "other"], "from the same version of watchkeeper"),
        (&["everything"], "invalid value 'everything'"),
        (&["--description", "description.json", "--against", "nowhere"], "--against nowhere"),
        (&["--description", "description.json", "--against", "empty.yaml"], "no CustomResourceDefinition"),
        (&["--description", "description.json", "--output", "mute"], "mute"),
    ];
    for (arguments, expected) in cases {
        let output = generate(project.0.path(), arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(expected) && told.trim_end().lines().count() == 1, "{arguments:?}: {told}");
        assert!(!project.at("deploy").exists(), "{arguments:?}");
    }
}

#[test]
fn a_new_version_reaches_the_chart_and_leaves_the_rest_of_it_to_its_user() {
    let project = Project::new();
    assert!(project.generate(&["chart", "--release", "1.0.0"]).status.success());
    let chart = || fs::read_to_string(project.at("deploy/chart/Chart.yaml")).unwrap();
    let mine = chart().replace("\ndescription: ", "\ndescription: Mine. ");
    let mine = mine.replace("\nversion: 1.0.0", "\nversion: 7.0.0 # mine");
    fs::write(project.at("deploy/chart/Chart.yaml"), mine).unwrap();
    assert!(project.generate(&["chart", "--release", "1.0.0", "--check"]).status.success());
    // A new version, and a kind of another name.
    let mut newer = webapp();
    newer["definitions"][0]["spec"]["names"]["kind"] = "Site".into();
    project.describe(&newer);
    let output = project.generate(&["chart", "--release", "1.1.0", "--check"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(told(&output).contains("deploy/chart/Chart.yaml is older than the program"), "{}", told(&output));
    assert!(project.generate(&["chart", "--release", "1.1.0"]).status.success());
    let text = chart();
    for line in ["appVersion: 1.1.0\n", "version: 7.0.0 # mine\n", "description: Mine. ", "kind: Site\n"] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    assert!(project.generate(&["chart", "--release", "1.1.0", "--check"]).status.success());
    // What cannot be changed line by line is told, and nothing is lost.
    fs::write(project.at("deploy/chart/Chart.yaml"), "{name: shop, appVersion: 1.0.0}\n").unwrap();
    let output = project.generate(&["chart", "--release", "1.1.0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("Chart.yaml: appVersion is outdated"), "{}", told(&output));
    assert_eq!(chart(), "{name: shop, appVersion: 1.0.0}\n");
}

#[test]
fn a_program_that_does_not_answer_is_given_up_however_it_was_built() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("src")).unwrap();
    let manifest = "[package]\nname = \"hangs\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
    fs::write(place.path().join("Cargo.toml"), manifest).unwrap();
    let program = "fn main() {\n    loop {\n        std::thread::park();\n    }\n}\n";
    fs::write(place.path().join("src/main.rs"), program).unwrap();
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
        command.arg("generate").current_dir(place.path()).stdin(Stdio::null());
        command.env("CARGO_TARGET_DIR", place.path().join("target")).output().unwrap()
    };
    let output = run();
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    let expected = "hangs describe: no answer within 10 s: the program has to describe itself";
    assert!(told(&output).contains(expected), "{}", told(&output));
    fs::write(place.path().join("src/main.rs"), "fn main() {").unwrap();
    let output = run();
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(told(&output).contains("cargo build --bin hangs"), "{}", told(&output));
    assert!(!place.path().join("deploy").exists());
}

/// Serves a text at every path, as web servers do: a code, a length, and the text.
fn web_server(text: &str) -> String {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let text = text.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let count = stream.read(&mut request).unwrap();
            let (code, body) = match request[..count].starts_with(b"GET /crd.yaml ") {
                true => ("200 OK", text.as_str()),
                false => ("404 Not Found", ""),
            };
            let head =
                format!("HTTP/1.1 {code}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all((head + body).as_bytes());
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types_are_made_of_a_definition_of_a_cluster_or_of_a_url() {
    let project = Project::new();
    assert!(project.generate(&["crds"]).status.success());
    let text = fs::read_to_string(project.at("deploy/crds/webapps.apps.watchkeeper.dev.yaml")).unwrap();
    let env = TestEnv::builder().listening().start().await;
    env.install_yaml(&text).await;
    let url = web_server(&text);
    let kubeconfig = env.kubeconfig().to_str().unwrap().to_owned();
    let types = |from: String| {
        let (folder, kubeconfig) = (project.0.path().to_owned(), kubeconfig.clone());
        let run = move || generate(&folder, &["types", &from, "--kubeconfig", &kubeconfig]);
        async move { tokio::task::spawn_blocking(run).await.unwrap() }
    };
    let of_file = generate(project.0.path(), &["types", "deploy/crds/webapps.apps.watchkeeper.dev.yaml"]);
    for from in ["webapps.apps.watchkeeper.dev".to_owned(), format!("{url}/crd.yaml")] {
        let output = types(from.clone()).await;
        assert!(output.status.success(), "{from}: {}", told(&output));
        assert!(told(&output).contains("pub struct WebAppSpec {"), "{from}");
        assert_eq!(output.stdout, of_file.stdout, "{from}");
    }
    for (from, expected) in [
        ("shops.example.com".to_owned(), "shops.example.com"),
        (format!("{url}/other.yaml"), "404"),
        ("http://127.0.0.1:1/crd.yaml".to_owned(), "127.0.0.1:1"),
    ] {
        let output = types(from.clone()).await;
        assert_eq!(output.status.code(), Some(1), "{from}: {}", told(&output));
        assert!(told(&output).contains(expected) && output.stdout.is_empty(), "{from}: {}", told(&output));
    }
}

#[test]
fn types_are_made_of_a_definition_and_not_of_anything_else() {
    let project = Project::new();
    assert!(project.generate(&["crds"]).status.success());
    let crd = "deploy/crds/webapps.apps.watchkeeper.dev.yaml";
    let output = generate(project.0.path(), &["types", crd, "--output", "webapp.rs"]);
    assert!(output.status.success(), "{}", told(&output));
    let text = fs::read_to_string(project.at("webapp.rs")).unwrap();
    assert!(text.contains("pub struct WebAppSpec {") && text.contains("pub struct WebAppStatus {"), "{text}");
    fs::write(project.at("two.yaml"), format!("{0}---\n{0}", fs::read_to_string(project.at(crd)).unwrap()))
        .unwrap();
    fs::write(project.at("none.yaml"), "kind: List\n").unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["types", "nowhere.yaml"], "there is no such file"),
        (&["types", "none.yaml"], "there is no CustomResourceDefinition"),
        (&["types", "two.yaml"], "several kinds: say --kind"),
        (&["types", crd, "--kind", "Shop"], "there is no such kind: it has WebApp"),
        (&["types", crd, "--api-version", "v9"], "has no version \"v9\": it has v1alpha1, v1beta1"),
    ];
    for (arguments, expected) in cases {
        let output = generate(project.0.path(), &[*arguments, &["--output", "new.rs"]].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(expected) && told.trim_end().lines().count() == 1, "{arguments:?}: {told}");
        assert!(!project.at("new.rs").exists());
    }
}

#[tokio::test]
async fn a_kind_without_a_spec_becomes_a_type_that_the_framework_works_with() {
    let definition = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generate/quorums.yaml");
    let output = generate(Path::new("."), &["types", definition.to_str().unwrap()]);
    assert!(output.status.success(), "{}", told(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), include_str!("generate/quorum.rs"));

    let object = json!({
        "apiVersion": "example.com/v1",
        "kind": "Quorum",
        "metadata": {"name": "shop", "namespace": "default"},
        "Kind": "of voters",
        "method": "ANY",
        "weights": {"one": 1, "two": 1.5},
        "voters": [{"name": "one"}, {"name": "two"}],
        "status": {"primary": "one"},
    });
    let quorum: Quorum = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&quorum).unwrap(), object);

    let env = TestEnv::start().await;
    env.install_file(&definition).await;
    let client = Client::new(env.connection());
    client.create(&quorum).await.unwrap();
    let key = Key::new(Some("default"), "shop");
    let first = |quorum: &mut Quorum| quorum.spec.method = QuorumFieldsMethod::FIRST;
    assert!(client.modify(&key, first).await.unwrap().is_changed());
    let live = client.live();
    let stored = live.get::<Quorum>(&key).await.unwrap().unwrap();
    assert_eq!(stored.spec, QuorumFields { method: QuorumFieldsMethod::FIRST, ..quorum.spec });
    assert_eq!(stored.status, None, "it is a subresource");
    let names = Some(vec!["two".to_owned()]);
    let found = names.clone();
    let write = client
        .status(&*stored)
        .set(move |quorum| quorum.status.get_or_insert_default().standby_names = found.clone());
    assert!(write.await.unwrap().is_changed());
    let stored = live.get::<Quorum>(&key).await.unwrap().unwrap();
    assert_eq!(stored.status.clone().unwrap().standby_names, names);
}
