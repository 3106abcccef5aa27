//! The order of changes does not matter, nor how often they are told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use http::{HeaderMap, Method};
use proptest::prelude::*;
use serde_json::{Value, json};
use watchkeeper_core::Key;
use watchkeeper_gateway::kinds::API_VERSION;
use watchkeeper_gateway::object::Input;
use watchkeeper_gateway::table::{Asked, Table};
use watchkeeper_gateway::{Compiler, Settings, dump};

/// One thing that a source says: what it has under a key now.
#[derive(Clone, Debug)]
struct Told {
    source: usize,
    object: Value,
    is_gone: bool,
}

fn object(kind: &str, name: &str, created: u8, spec: Value) -> Value {
    let mut metadata = json!({"name": name});
    if created > 0 {
        metadata["creationTimestamp"] = json!(format!("2026-01-0{created}T00:00:00Z"));
    }
    json!({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec})
}

fn path() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::sample::select(vec!["/", "/a", "/a/b"]).prop_map(|path| json!({"prefix": path})),
        prop::sample::select(vec!["/", "/a", "/a/b"]).prop_map(|path| json!({"exact": path})),
        prop::sample::select(vec!["/[ab]+", "/a.*"]).prop_map(|path| json!({"regex": path})),
    ]
}

fn route() -> impl Strategy<Value = Value> {
    let hosts = prop::sample::select(vec![
        json!([]),
        json!(["a.test"]),
        json!(["*.test"]),
        json!(["a.test", "*.test"]),
    ]);
    let method = prop::option::of(prop::sample::select(vec!["GET", "PUT"]));
    let listeners = prop::sample::select(vec![json!([]), json!(["l1"]), json!(["l1", "l2"])]);
    ("[ab]{1,2}", 0..3_u8, hosts, path(), method, listeners, "[xyz]").prop_map(
        |(name, created, hosts, path, method, listeners, backend)| {
            let mut wanted = json!({"path": path});
            if let Some(method) = method {
                wanted["method"] = json!(method);
            }
            let rules = json!([{"matches": [wanted], "backends": [{"name": backend}]}]);
            object(
                "GatewayRoute",
                &name,
                created,
                json!({"hosts": hosts, "listeners": listeners, "rules": rules}),
            )
        },
    )
}

fn any_object() -> impl Strategy<Value = Value> {
    let backend = ("[xyz]", 1..4_u8).prop_map(|(name, last)| {
        object("GatewayBackend", &name, 0, json!({"endpoints": [{"address": format!("10.0.0.{last}:80")}]}))
    });
    let service = "[xyz]"
        .prop_map(|name| object("GatewayBackend", &name, 0, json!({"service": {"name": "s", "port": 80}})));
    let slice = (1..4_u8, 1..4_u8).prop_map(|(name, last)| {
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": format!("s-{name}"), "labels": {"kubernetes.io/service-name": "s"}},
            "ports": [{"name": "", "port": 80}], "endpoints": [{"addresses": [format!("10.1.0.{last}")]}]})
    });
    let hostname = prop::sample::select(vec!["a.test", "*.test", "*"]);
    let listener = ("l[12]", 0..3_u8, 1..3_u16, hostname).prop_map(|(name, created, port, hostname)| {
        object("GatewayListener", &name, created, json!({"port": 8000 + port, "hostname": hostname}))
    });
    let policy = ("p[12]", "[ab]").prop_map(|(name, route)| {
        let targets = json!([{"kind": "Route", "name": route}, {"kind": "Namespace"}]);
        object("GatewayPolicy", &name, 0, json!({"targets": targets, "rate": {"requests": 1}}))
    });
    prop_oneof![6 => route(), 2 => backend, 1 => service, 1 => slice, 2 => listener, 1 => policy, 6 => standard(), 4 => ai_object()]
}

/// An object of Gateway API, or one that such objects refer to.
fn standard() -> impl Strategy<Value = Value> {
    let of = |kind: &str, namespace: &str, name: &str, created: u8, spec: Value| {
        let mut object = object(kind, name, created, spec);
        object["apiVersion"] = json!("gateway.networking.k8s.io/v1");
        object["metadata"]["namespace"] = json!(namespace);
        object
    };
    let class = prop::bool::weighted(0.8).prop_map(move |is_ours| {
        let controller = if is_ours { "watchkeeper.dev/gateway" } else { "example.com/other" };
        of("GatewayClass", "", "c", 0, json!({"controllerName": controller}))
    });
    let from = prop::sample::select(vec![
        json!({"from": "All"}),
        json!({"from": "Same"}),
        json!({"from": "Selector", "selector": {"matchLabels": {"team": "a"}}}),
    ]);
    let hostname = prop::sample::select(vec!["a.test", "*.test", ""]);
    let gateway = ("g[12]", 0..3_u8, 1..3_u16, from, hostname).prop_map(move |(name, created, port, from, hostname)| {
        let one = json!({"name": "one", "port": 8000 + port, "protocol": "HTTP", "allowedRoutes": {"namespaces": from}});
        let two = json!({"name": "two", "port": 8001, "protocol": "HTTP", "hostname": hostname});
        of("Gateway", "default", &name, created, json!({"gatewayClassName": "c", "listeners": [one, two]}))
    });
    let section = prop::option::of(prop::sample::select(vec!["one", "two"]));
    let namespace = prop::sample::select(vec!["default", "other"]);
    let route = ("r[12]", namespace, 0..3_u8, "g[12]", section, prop::sample::select(vec!["/", "/a"]))
        .prop_map(move |(name, namespace, created, gateway, section, path)| {
            let mut parent = json!({"name": gateway, "namespace": "default"});
            if let Some(section) = section {
                parent["sectionName"] = json!(section);
            }
            let rules = json!([{
                "matches": [{"path": {"value": path}}],
                "backendRefs": [{"name": "s", "namespace": "default", "port": 80}],
            }]);
            of(
                "HTTPRoute",
                namespace,
                &format!("{namespace}-{name}"),
                created,
                json!({"parentRefs": [parent], "rules": rules}),
            )
        });
    let grant = prop::sample::select(vec!["s", "t"]).prop_map(move |service| {
        let from = json!([{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "other"}]);
        let to = json!([{"group": "", "kind": "Service", "name": service}]);
        of("ReferenceGrant", "default", "grant", 0, json!({"from": from, "to": to}))
    });
    let labels = (prop::sample::select(vec!["default", "other"]), "[ab]").prop_map(|(name, team)| {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}})
    });
    let service = (80..82_u16).prop_map(|port| {
        let spec = json!({"ports": [{"port": port}]});
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec})
    });
    prop_oneof![2 => class, 3 => gateway, 4 => route, 1 => grant, 1 => labels, 2 => service]
}

fn ai_object() -> impl Strategy<Value = Value> {
    let gateway = ("g[12]", "[xy]", prop::option::of("k[12]")).prop_map(|(name, provider, secret)| {
        let mut provider = json!({"name": provider, "dialect": "OpenAI", "url": "http://10.0.0.1"});
        if let Some(secret) = secret {
            provider["key"] = json!({"secretName": secret});
        }
        object("AIGatewayConfig", &name, 0, json!({"providers": [provider]}))
    });
    let secret = "k[12]".prop_map(|name| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"apiKey": "a"}})
    });
    let names = ("m[12]", "[ab]", "[xy]");
    let model = (names, 0..3_u8, any::<bool>()).prop_map(|((name, model, provider), created, priced)| {
        let mut spec = json!({"model": model, "targets": [{"provider": provider}]});
        if priced {
            spec["prices"] = json!({"input": "1.00", "output": "1.00"});
        }
        object("ModelContextMapping", &name, created, spec)
    });
    let keys = prop::collection::btree_set("[ab]", 0..3);
    let policy = ("q[12]", keys, any::<bool>()).prop_map(|(name, keys, is_limited)| {
        let keys: Vec<Value> =
            keys.iter().map(|key| json!({"name": key, "sha256": key.repeat(64)})).collect();
        let limits = if is_limited { json!([{"per": "Day", "cost": "1.00"}]) } else { json!([]) };
        object("LLMGatewayPolicy", &name, 0, json!({"keys": keys, "limits": limits}))
    });
    let prompt = ("t[12]", "g[12]", "v[12]").prop_map(|(name, gateway, version)| {
        let spec =
            json!({"gateway": gateway, "prompt": "p", "version": version, "model": "a", "template": "t"});
        object("PromptTemplate", &name, 0, spec)
    });
    let tools = ("r[12]", "[xy]", prop::option::of("k[12]")).prop_map(|(name, server, secret)| {
        let mut server = json!({"name": server, "url": "http://10.0.0.1/mcp"});
        if let Some(secret) = secret {
            server["key"] = json!({"secretName": secret});
        }
        object("McpRoute", &name, 0, json!({"servers": [server]}))
    });
    prop_oneof![2 => gateway, 1 => secret, 2 => model, 2 => policy, 1 => prompt, 1 => tools]
}

fn told() -> impl Strategy<Value = Told> {
    (0..2_usize, any_object(), prop::bool::weighted(0.2)).prop_map(|(source, object, is_gone)| Told {
        source,
        object,
        is_gone,
    })
}

fn tell(compiler: &mut Compiler, told: &Told) {
    let input = Input::read(told.object.clone()).unwrap().unwrap();
    let id = input.id.clone();
    let place = (told.source, Key::new(None, &id.to_string()));
    compiler.apply(&place, &id, (!told.is_gone).then_some(input));
}

fn identity(told: &Told) -> (usize, String, String) {
    let text = |pointer: &str| told.object.pointer(pointer).unwrap().to_string();
    (told.source, text("/kind"), text("/metadata/name"))
}

/// The table, what became of every object, and which rule serves which request.
fn outcome(compiler: &Compiler) -> (Value, Vec<Value>, Vec<String>) {
    let objects = compiler.objects();
    let reports = objects.iter().filter_map(|id| compiler.report(id));
    let reports = reports.map(|report| json!([report.to_json(), report.status]));
    (dump(compiler.table()), reports.collect(), served(compiler.table()))
}

fn served(table: &Table) -> Vec<String> {
    let (headers, mut served) = (HeaderMap::new(), Vec::new());
    for listener in table.ports().flat_map(|(_, listeners)| listeners.iter()) {
        for host in ["a.test", "b.test", "other"] {
            for path in ["/", "/a", "/a/b", "/a/b/c", "/b", "/ab"] {
                for method in [Method::GET, Method::PUT, Method::POST] {
                    let asked =
                        Asked { listener, host, path, query: None, method: &method, headers: &headers };
                    let rule = table.find(&asked).map(|rule| rule.route.key.to_string());
                    served.push(format!("{} {method} {host}{path} {rule:?}", listener.key));
                }
            }
        }
    }
    served
}

fn cases() -> u32 {
    std::env::var("WATCHKEEPER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300)
}

#[test]
fn a_status_that_comes_back_is_in_the_form_that_is_kept_unless_that_is_an_older_one() {
    let mut compiler = Compiler::new(Settings::default());
    let mut say = |rules: &Value, status: &str| {
        let mut object = object("GatewayRoute", "a", 1, json!({"rules": rules}));
        object["status"] = json!({"observed": status});
        tell(&mut compiler, &Told { source: 0, object, is_gone: false });
        let good = compiler.good();
        assert_eq!(good.len(), 1);
        let kept = good[0].1.json.read();
        (kept["spec"]["rules"].clone(), kept["status"]["observed"].as_str().unwrap().to_owned())
    };
    let (rules, wrong) = (json!([{"backends": [{"name": "x"}]}]), json!([{"nonsense": true}]));
    assert_eq!(say(&rules, "one"), (rules.clone(), "one".to_owned()));
    assert_eq!(say(&rules, "two"), (rules.clone(), "two".to_owned()), "or there would be two");
    assert_eq!(say(&wrong, "three"), (rules.clone(), "two".to_owned()));
    assert_eq!(say(&wrong, "four"), (rules.clone(), "two".to_owned()), "what counts cannot be used");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// However the news of different objects are mixed, whatever is told twice, and however it came to be: the same objects make the
    /// same table, and so does a list of what there is at the end.
    #[test]
    fn the_same_objects_make_the_same_table(
        news in prop::collection::vec(told(), 0..40),
        seed in any::<u64>(),
    ) {
        let mut straight = Compiler::new(Settings::default());
        for told in &news {
            tell(&mut straight, told);
        }
        // What is told of one object stays in order; of different objects it comes in any, and some of it comes twice.
        let mut random = fastrand::Rng::with_seed(seed);
        let mut lines: Vec<Vec<Told>> = Vec::new();
        for told in &news {
            match lines.iter_mut().find(|line| identity(&line[0]) == identity(told)) {
                Some(line) => line.push(told.clone()),
                None => lines.push(vec![told.clone()]),
            }
        }
        let last: Vec<Told> = lines.iter().filter_map(|line| line.last().cloned()).filter(|told| !told.is_gone).collect();
        let mut mixed = Compiler::new(Settings::default());
        lines.iter_mut().for_each(|line| line.reverse());
        while !lines.is_empty() {
            let at = random.usize(..lines.len());
            if let Some(next) = lines[at].pop() {
                tell(&mut mixed, &next);
                if random.bool() {
                    tell(&mut mixed, &next);
                }
            }
            lines.retain(|line| !line.is_empty());
        }
        let mut listed = Compiler::new(Settings::default());
        let mut rest = last;
        random.shuffle(&mut rest);
        for told in &rest {
            tell(&mut listed, told);
        }
        prop_assert_eq!(outcome(&straight), outcome(&mixed));
        prop_assert_eq!(outcome(&straight), outcome(&listed));
    }

    /// An object that cannot be used leaves the table as it was.
    #[test]
    fn an_invalid_object_keeps_its_last_good_form(news in prop::collection::vec(told(), 1..30), at in any::<prop::sample::Index>()) {
        let mut compiler = Compiler::new(Settings::default());
        for told in &news {
            tell(&mut compiler, told);
        }
        let before = dump(compiler.table());
        let mut broken = at.get(&news).clone();
        broken.source = 0;
        broken.is_gone = false;
        let known = Input::read(broken.object.clone()).unwrap().unwrap();
        let is_there = |compiler: &Compiler| compiler.report(&known.id).is_some_and(|report| report.source == 0 && report.accepted.is_true);
        if known.id.kind.is_own() && is_there(&compiler) {
            broken.object["spec"] = json!({"nonsense": true});
            tell(&mut compiler, &broken);
            prop_assert_eq!(before, dump(compiler.table()));
            let report = compiler.report(&known.id).unwrap();
            prop_assert!(!report.accepted.is_true && !report.programmed.is_true);
        }
    }
}
