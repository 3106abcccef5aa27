//! What one server does is in force on the others.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::{
    LONG, MAPS, PLAIN, SOMEBODY, Server, TOKEN, ask_as, config_map, directory, etcd, free_address, three,
};

#[test]
fn what_is_written_to_one_server_is_in_force_on_all() {
    let Some((_directory, _etcd, servers)) = three() else { return };
    for round in 0..30 {
        let (writer, reader) = (&servers[round % 3], &servers[(round + 1) % 3]);
        let name = format!("map-{round}");
        let (code, made) = writer.ask("POST", MAPS, Some(&config_map(&name)));
        assert_eq!(code, 201, "{made}");
        let (code, read) = reader.ask("GET", &format!("{MAPS}/{name}"), None);
        assert_eq!((code, &read), (200, &made));
        let version = made["metadata"]["resourceVersion"].as_str().unwrap();
        let (code, list) = reader.ask("GET", &format!("{MAPS}?resourceVersion={version}"), None);
        assert_eq!(code, 200, "{list}");
        assert_eq!(list["items"].as_array().unwrap().len(), round + 1 + 1, "with kube-root-ca.crt");
    }
}

/// With a lease of etcd, not by the server that leads: that would take two minutes longer.
#[test]
fn events_go_when_their_time_has_passed() {
    let (Some(etcd), directory) = (etcd(), directory()) else { return };
    let endpoint = etcd.endpoint();
    let arguments = ["--storage", "etcd", "--etcd-endpoints", &endpoint, "--event-ttl", "2s"];
    let server = Server::with(directory.path(), free_address(), &arguments);
    for (path, event) in [
        ("/api/v1/namespaces/default/events", json!({"involvedObject": {"namespace": "default"}})),
        (
            "/apis/events.k8s.io/v1/namespaces/default/events",
            json!({
                "regarding": {"namespace": "default"}, "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal",
                "reason": "r", "action": "a", "reportingController": "test/er", "reportingInstance": "i",
            }),
        ),
    ] {
        let mut event = event;
        event["metadata"] = json!({"name": "an-event"});
        let (code, answer) = server.ask("POST", path, Some(&event));
        assert_eq!(code, 201, "{answer}");
        let (begin, path) = (Instant::now(), format!("{path}/an-event"));
        while server.ask("GET", &path, None).0 != 404 {
            assert!(begin.elapsed() < LONG, "it stays");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Nothing is not there, and nothing forbidden, because a server has not heard of it yet: the first answer is right.
#[test]
fn the_first_answer_of_another_server_knows_definitions_and_roles() {
    let Some((_directory, _etcd, servers)) = three() else { return };
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    for round in 0..30 {
        let (writer, reader) = (&servers[round % 3], &servers[(round + 1) % 3]);
        let plural = format!("things{round}");
        let mut made = definition(&plural);
        let group = format!("g{round}.example.com");
        made["metadata"]["name"] = format!("{plural}.{group}").into();
        made["spec"]["group"] = group.clone().into();
        let (code, answer) = writer.ask("POST", definitions, Some(&made));
        assert_eq!(code, 201, "{answer}");
        let thing = json!({
            "apiVersion": format!("{group}/v1"), "kind": format!("Kind{plural}"), "metadata": {"name": "a"},
        });
        let (path, body) = match round % 3 {
            0 => (format!("/apis/{group}/v1/namespaces/default/{plural}"), Some(&thing)),
            1 => (format!("/apis/{group}/v1"), None),
            _ => (format!("/apis/{group}"), None),
        };
        let method = if body.is_some() { "POST" } else { "GET" };
        let (code, answer) = reader.ask(method, &path, body);
        assert!(matches!(code, 200 | 201), "{round} {path}: {code} {answer}");

        let listed = || ask_as(PLAIN, reader.http, "GET", MAPS, None).unwrap();
        assert_eq!(listed().0, 403);
        let name = format!("binding-{round}");
        let (code, answer) = writer.ask("POST", bindings, Some(&binding(&name, SOMEBODY)));
        assert_eq!(code, 201, "{answer}");
        let (code, _, body) = listed();
        assert_eq!(code, 200, "{round}: {body}");
        assert_eq!(writer.ask("DELETE", &format!("{bindings}/{name}"), None).0, 200);
        let begin = Instant::now();
        while servers.iter().any(|server| ask_as(PLAIN, server.http, "GET", MAPS, None).unwrap().0 != 403) {
            assert!(begin.elapsed() < LONG, "it is never taken back");
        }
    }
    let (code, _) = servers[0].ask("GET", "/apis/nowhere.example.com/v1/things", None);
    assert_eq!(code, 404, "what is nowhere is not there");
}

#[test]
fn no_two_services_of_several_servers_share_an_address() {
    let Some((_directory, _etcd, servers)) = three() else { return };
    let path = "/api/v1/namespaces/default/services";
    let service = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"type": "NodePort", "ports": [{"port": 80}]},
        })
    };
    thread::scope(|scope| {
        for client in 0..9 {
            let server = &servers[client % 3];
            scope.spawn(move || {
                for round in 0..10 {
                    let (code, made) =
                        server.ask("POST", path, Some(&service(&format!("s-{client}-{round}"))));
                    assert_eq!(code, 201, "{made}");
                }
            });
        }
    });
    let (_, list) = servers[0].ask("GET", path, None);
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 91, "with that of the API server");
    let addresses: BTreeSet<_> = items.iter().map(|item| item["spec"]["clusterIP"].as_str()).collect();
    let ports: BTreeSet<_> =
        items.iter().filter_map(|item| item["spec"]["ports"][0]["nodePort"].as_u64()).collect();
    assert_eq!((addresses.len(), ports.len()), (91, 90));
    // Of servers that all want the same one at once, one gives it away; and what was given back can be given away again.
    let wanted = |name: &str| {
        let mut service = service(name);
        service["spec"]["clusterIP"] = "10.0.0.77".into();
        service
    };
    for round in 0..5 {
        let won = AtomicUsize::new(0);
        thread::scope(|scope| {
            for (number, server) in servers.iter().enumerate() {
                let (won, wanted) = (&won, &wanted);
                scope.spawn(move || {
                    let name = format!("w-{round}-{number}");
                    let (code, made) = server.ask("POST", path, Some(&wanted(&name)));
                    match code {
                        201 => {
                            won.fetch_add(1, SeqCst);
                        }
                        // Taken; or taken while it was tried, as often as that is tried.
                        _ => assert!(matches!(code, 422 | 409 | 500), "{made}"),
                    }
                });
            }
        });
        assert_eq!(won.load(SeqCst), 1);
        for number in 0..3 {
            servers[(round + 1) % 3].ask("DELETE", &format!("{path}/w-{round}-{number}"), None);
        }
    }
}

/// The time below which 99 of 100 are.
fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[(times.len() * 99).div_ceil(100) - 1]
}

fn definition(plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": format!("Kind{plural}")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    })
}

/// A binding that lets a user look at everything.
fn binding(name: &str, user: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

/// How long something may take to be in force on other servers, in a release and on a machine that does nothing else. Held to ten times as
/// much in a debug build, beside which others are compiled.
const IN_FORCE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 500 } else { 50 });

/// Measures how long something is not yet in force.
fn until_in_force(what: &str, mut is_in_force: impl FnMut() -> bool) -> Duration {
    let begin = Instant::now();
    while !is_in_force() {
        assert!(begin.elapsed() < LONG, "{what} is never in force");
    }
    begin.elapsed()
}

#[test]
fn tokens_webhooks_and_what_is_taken_back_are_in_force_on_other_servers_within_50_ms() {
    let Some((_directory, _etcd, servers)) = three() else { return };
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let mut times: [Vec<Duration>; 4] = Default::default();
    for round in 0..40 {
        let (writer, reader) = (&servers[round % 3], &servers[(round + 1) % 3]);
        // A token is good on another server at once, and no longer once its account is gone.
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": format!("a-{round}")}});
        assert_eq!(writer.ask("POST", accounts, Some(&account)).0, 201);
        let account = format!("{accounts}/a-{round}");
        let (code, made) = writer.ask("POST", &format!("{account}/token"), Some(&json!({"spec": {}})));
        assert_eq!(code, 201, "{made}");
        let token = made["status"]["token"].as_str().unwrap();
        let shown = || ask_as(token, reader.http, "GET", "/version", None).unwrap().0;
        times[0].push(until_in_force("a token", || shown() == 200));
        assert_eq!(writer.ask("DELETE", &account, None).0, 200);
        times[1].push(until_in_force("its end", || shown() == 401));
        // A right that is taken back.
        let listed = || ask_as(PLAIN, reader.http, "GET", MAPS, None).unwrap().0;
        let name = format!("b-{round}");
        assert_eq!(writer.ask("POST", bindings, Some(&binding(&name, SOMEBODY))).0, 201);
        until_in_force("a binding", || listed() == 200);
        assert_eq!(writer.ask("DELETE", &format!("{bindings}/{name}"), None).0, 200);
        times[2].push(until_in_force("its end", || listed() == 403));
        // A webhook at which nobody listens refuses everything that it is asked about.
        let hook = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": "nobody.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
            }],
        });
        assert_eq!(writer.ask("POST", hooks, Some(&hook)).0, 201);
        let dry = format!("{MAPS}?dryRun=All");
        let map = config_map("dry");
        times[3].push(until_in_force("a webhook", || reader.ask("POST", &dry, Some(&map)).0 != 201));
        assert_eq!(writer.ask("DELETE", &format!("{hooks}/{name}"), None).0, 200);
        until_in_force("its end", || reader.ask("POST", &dry, Some(&map)).0 == 201);
    }
    let [good, ended, revoked, hooks] = times.map(p99);
    println!(
        "in force elsewhere, p99 of 40: tokens {good:?} and their end {ended:?}, rights taken back {revoked:?}, webhooks {hooks:?}"
    );
    assert!(good.max(ended).max(revoked).max(hooks) < IN_FORCE, "{good:?} {ended:?} {revoked:?} {hooks:?}");
}

#[test]
fn definitions_and_roles_of_one_server_are_in_force_on_the_others_within_50_ms() {
    let Some((_directory, _etcd, servers)) = three() else { return };
    let (mut definitions, mut roles) = (Vec::new(), Vec::new());
    for round in 0..50 {
        let (writer, reader) = (&servers[round % 3], &servers[(round + 1) % 3]);
        let plural = format!("things{round}");
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (code, made) = writer.ask("POST", path, Some(&definition(&plural)));
        assert_eq!(code, 201, "{made}");
        let begin = Instant::now();
        while reader.ask("GET", &format!("/apis/example.com/v1/namespaces/default/{plural}"), None).0 != 200 {
            assert!(begin.elapsed() < LONG, "{plural} is never served");
        }
        definitions.push(begin.elapsed());

        // A user without rights, who is given one.
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": format!("user-{round}"), "resourceAttributes": {"verb": "get", "resource": "pods"}},
        });
        let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        assert_eq!(reader.ask("POST", reviews, Some(&review)).1["status"]["allowed"], false);
        let binding = binding(&format!("binding-{round}"), &format!("user-{round}"));
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        let (code, made) = writer.ask("POST", path, Some(&binding));
        assert_eq!(code, 201, "{made}");
        let begin = Instant::now();
        while reader.ask("POST", reviews, Some(&review)).1["status"]["allowed"] != true {
            assert!(begin.elapsed() < LONG, "the binding is never in force");
        }
        roles.push(begin.elapsed());
    }
    let (definitions, roles) = (p99(definitions), p99(roles));
    println!("in force elsewhere, p99 of 50: definitions {definitions:?}, roles {roles:?}");
    assert!(definitions.max(roles) < IN_FORCE, "{definitions:?} {roles:?}");
}

#[test]
fn the_endpoints_of_the_api_are_all_servers_that_are_there() {
    let Some(etcd) = etcd() else { return };
    let (directory, endpoint) = (directory(), etcd.endpoint());
    let addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
    let mut servers = addresses.map(|address| {
        let arguments = ["--storage", "etcd", "--etcd-endpoints", &endpoint, "--advertise-address", address];
        Server::with(directory.path(), free_address(), &arguments)
    });
    let shown = |server: &Server| -> BTreeSet<String> {
        let (_, endpoints) = server.ask("GET", "/api/v1/namespaces/default/endpoints/kubernetes", None);
        let subsets = endpoints["subsets"].as_array().cloned().unwrap_or_default();
        let all = subsets.iter().flat_map(|subset| subset["addresses"].as_array().unwrap().clone());
        all.map(|address| address["ip"].as_str().unwrap().to_owned()).collect()
    };
    let until = |server: &Server, wanted: &[&str]| {
        let (begin, wanted) = (Instant::now(), wanted.iter().map(|text| (*text).to_owned()).collect());
        while shown(server) != wanted {
            assert!(begin.elapsed() < LONG, "{:?} instead of {wanted:?}", shown(server));
            thread::sleep(Duration::from_millis(50));
        }
    };
    until(&servers[0], &addresses);
    servers[1].terminate();
    until(&servers[2], &[addresses[0], addresses[2]]);
}

/// What kubectl prints when it asks a server.
fn kubectl(home: &Path, server: &Server, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new("kubectl")
        .args(["--server", &server.url, "--insecure-skip-tls-verify", "--token", TOKEN])
        .args(arguments)
        .env("KUBECONFIG", "/dev/null")
        // Each server is asked, and not what another one has answered before.
        .env("HOME", home.join(server.http.port().to_string()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kubectl is installed");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn kubectl_shows_the_same_whichever_server_it_asks() {
    let Some((directory, _etcd, servers)) = three() else { return };
    let home = directory.path();
    let mut gauges = definition("gauges");
    gauges["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "Level", "type": "integer", "jsonPath": ".level"}]);
    gauges["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
        "type": "object", "properties": {"level": {"type": "integer", "description": "How full it is."}},
    });
    let template = json!({
        "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "example.com/c:1"}]},
    });
    let mut made = vec![
        gauges,
        binding("somebody-looks", SOMEBODY),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template},
        }),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"app": "a"}}, "spec": template["spec"],
        }),
    ];
    made.extend((0..5).map(|number| config_map(&format!("map-{number}"))));
    // Each by another one, which kubectl asks for its documents first.
    for (number, object) in made.into_iter().enumerate() {
        kubectl(home, &servers[number % 3], &["apply", "-f", "-"], &object.to_string());
    }
    let gauge =
        json!({"apiVersion": "example.com/v1", "kind": "Kindgauges", "metadata": {"name": "g"}, "level": 7});
    kubectl(home, &servers[2], &["apply", "-f", "-"], &gauge.to_string());
    for arguments in [
        "get all,cm,sa,secrets,endpoints,endpointslices -A -o wide --show-labels",
        "get all,cm,sa,secrets,endpoints,endpointslices -A -o yaml --show-managed-fields",
        "get ns,crd,apiservices,clusterroles,clusterrolebindings,flowschemas,prioritylevelconfigurations -o json",
        "get gauges",
        "get gauges g -o yaml",
        "get cm --chunk-size=2",
        "get cm --sort-by=.metadata.resourceVersion -o name",
        "get deploy a -o jsonpath={.metadata.uid},{.metadata.resourceVersion},{.metadata.managedFields}",
        "get --raw /api/v1/namespaces/default/configmaps",
        "get --raw /apis",
        "get --raw /openapi/v3",
        "get --raw /openapi/v2",
        "get --raw /version",
        "describe deployment a",
        "describe gauges g",
        "api-resources -o wide --sort-by=name",
        "api-versions",
        "explain gauges --recursive",
        "explain deployment.spec",
        "auth can-i --list --as somebody",
        "auth whoami",
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let begin = Instant::now();
        // Ages, and what a server is still about to write, are the same a moment later.
        loop {
            let [first, second, third] = [0, 1, 2].map(|at| {
                let own = servers[at].http.to_string();
                kubectl(home, &servers[at], &words, "").replace(&own, "SERVER")
            });
            assert!(!first.is_empty(), "{arguments}: nothing is shown");
            if first == second && second == third {
                break;
            }
            assert!(begin.elapsed() < LONG, "{arguments}:\n{first}\n{second}\n{third}");
        }
    }
    // A list that one server begins, the others go on with.
    let (mut names, mut path, mut turn) = (Vec::new(), format!("{MAPS}?limit=1"), 0);
    loop {
        let page: Value =
            serde_json::from_str(&kubectl(home, &servers[turn % 3], &["get", "--raw", &path], "")).unwrap();
        names.push(page["items"][0]["metadata"]["name"].as_str().unwrap().to_owned());
        let Some(next) = page["metadata"]["continue"].as_str() else { break };
        (path, turn) = (format!("{MAPS}?limit=1&continue={next}"), turn + 1);
    }
    assert_eq!(names, ["kube-root-ca.crt", "map-0", "map-1", "map-2", "map-3", "map-4"]);
}
