//! Sequences of requests, each made from one seed.

use serde_json::Value;
use watchkeeper_conformance::Exchange;
use watchkeeper_kinds::Kind;

use crate::corpus::{self, Corpus, DEFINITION, THING};
use crate::mutation::{bent, mutate};
use crate::subject::Subject;
use crate::{Dice, Request, Tree, options};

/// Requests in their order, in a namespace of their own. The first creates it.
#[derive(Debug)]
pub struct Scenario {
    /// What it is, in a word.
    pub class: &'static str,
    /// The requests.
    pub requests: Vec<Request>,
}

impl Scenario {
    /// The scenario of a seed. Where it is run must not matter to it, so names of namespaces have to be equally long.
    pub fn generate(corpus: &Corpus, seed: u64, namespace: &str) -> Self {
        let mut dice = Dice::new(seed);
        let create =
            format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{namespace}"}}}}"#);
        let mut requests = vec![Request::new("POST", "/api/v1/namespaces").json(create)];
        let class = match dice.below(10) {
            0..=4 => builtin(corpus, namespace, &mut requests, &mut dice),
            5 | 6 => custom(namespace, &mut requests, &mut dice),
            _ => session(corpus, namespace, &mut requests, &mut dice),
        };
        requests.push(Request::new("DELETE", format!("/api/v1/namespaces/{namespace}")));
        Self { class, requests }
    }
}

/// An object of a built-in kind, through its life.
fn builtin(corpus: &Corpus, namespace: &str, requests: &mut Vec<Request>, dice: &mut Dice) -> &'static str {
    let (path, objects) = dice.item(&corpus.objects);
    let object = dice.item(objects).to_string().replace("{namespace}", namespace);
    let mut object: Value = serde_json::from_str(&object).unwrap_or_default();
    let kind = corpus::kind(path);
    let is_namespaced = kind.is_none_or(|kind| kind.namespaced);
    let named = object["metadata"]["name"].as_str().map(str::to_owned);
    let name = match named {
        Some(name) if is_namespaced || name.contains(namespace) => name,
        Some(_) => format!("{namespace}-x"),
        None => "a".to_owned(),
    };
    if object["metadata"].is_object() && object["metadata"]["name"].is_string() {
        object["metadata"]["name"] = name.clone().into();
    }
    let subject = Subject {
        collection: path.replace("{namespace}", namespace),
        object,
        schema: kind.map(Kind::definition),
        name,
        subresources: kind
            .map(|kind| kind.subresources.iter().map(|part| part.name).collect())
            .unwrap_or_default(),
        is_builtin: true,
    };
    subject.life(requests, dice);
    match kind {
        Some(_) => "built-in",
        None => "subresources",
    }
}

/// A definition, and objects of it.
fn custom(namespace: &str, requests: &mut Vec<Request>, dice: &mut Dice) -> &'static str {
    let definition: Value =
        serde_json::from_str(&DEFINITION.replace("{namespace}", namespace)).unwrap_or_default();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let schema = watchkeeper_kinds::find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        .map(Kind::definition);
    let mut tree = Tree::from(&definition);
    let is_mutated = dice.chance(40);
    if is_mutated {
        // What makes of it a definition stays: there is nothing to learn from a hundred that are refused.
        mutate(
            tree.field("spec").field("versions"),
            schema.map(|schema| &schema["properties"]["spec"]["properties"]["versions"]),
            dice,
        );
        if dice.chance(30) {
            mutate(&mut tree, schema, dice);
        }
    }
    let mut create = Request::new("POST", path).json(tree.json());
    create.mutated = is_mutated;
    requests.push(create);
    if is_mutated {
        requests.push(Request::new("POST", path).json(definition.to_string()));
    }
    let group = format!("{namespace}.example.org");
    requests.push(Request {
        until: Some(200),
        ..Request::new("GET", format!("/apis/{group}/v1/namespaces/{namespace}/things"))
    });
    let version = if dice.chance(85) { "v1" } else { "v1beta1" };
    let thing =
        THING.replace("{namespace}", namespace).replace("example.org/v1", &format!("example.org/{version}"));
    let versions = definition["spec"]["versions"].as_array();
    let schema =
        versions.and_then(|versions| versions.first()).map(|version| &version["schema"]["openAPIV3Schema"]);
    let subject = Subject {
        collection: format!("/apis/{group}/{version}/namespaces/{namespace}/things"),
        object: serde_json::from_str(&thing).unwrap_or_default(),
        schema,
        name: "a".into(),
        subresources: vec!["status", "scale"],
        is_builtin: false,
    };
    subject.life(requests, dice);
    let name = format!("{path}/things.{group}");
    if dice.chance(30) {
        let subject = Subject {
            collection: path.into(),
            object: definition.clone(),
            schema: None,
            name: format!("things.{group}"),
            subresources: vec!["status"],
            is_builtin: true,
        };
        let steps = 1 + dice.below(3);
        (0..steps).for_each(|_| subject.step(requests, dice));
    }
    requests.push(Request::new("DELETE", name));
    "custom"
}

/// The beginning of a recorded session, with some of its requests changed.
fn session(corpus: &Corpus, namespace: &str, requests: &mut Vec<Request>, dice: &mut Dice) -> &'static str {
    let exchanges = dice.item(&corpus.sessions);
    let count = 5 + dice.below(40);
    for exchange in exchanges.iter().take(count) {
        let is_mutated = dice.chance(35);
        let body = exchange.body.replace("{namespace}", namespace);
        let mut request = Request {
            method: exchange.method.clone(),
            target: exchange.path.replace("{namespace}", namespace).replace(' ', "%20"),
            headers: exchange
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.replace("{namespace}", namespace).into_bytes()))
                .collect(),
            body: body.into_bytes(),
            mutated: is_mutated,
            until: exchange.until,
            captures: exchange
                .captures
                .iter()
                .map(|capture| (capture.name.clone(), capture.path.clone()))
                .collect(),
        };
        if is_mutated {
            request.until = None;
            change(&mut request, exchange, dice);
        }
        requests.push(request);
    }
    "sessions"
}

/// Changes a recorded request.
fn change(request: &mut Request, exchange: &Exchange, dice: &mut Dice) {
    let parsed: Option<Value> = serde_json::from_slice(&request.body).ok();
    match dice.below(10) {
        0..=5 if parsed.is_some() => {
            let mut tree = Tree::from(&parsed.unwrap_or_default());
            let path = exchange.path.split('?').next().unwrap_or_default();
            mutate(&mut tree, corpus::kind(path).map(Kind::definition), dice);
            request.body = tree.json();
        }
        6 if !request.body.is_empty() => {
            let at = dice.below(request.body.len());
            request.body[at] = dice.byte();
        }
        7 => {
            let extra = options::query(
                &if dice.chance(50) { options::list(dice) } else { options::delete(dice) },
                dice,
            );
            request.target += &format!("{}{extra}", if request.target.contains('?') { "&" } else { "?" });
        }
        8 => {
            request.target = bent(&request.target, dice).replace([' ', '"', '\u{0}', 'é', '\u{202e}'], "%20");
        }
        _ => request.headers.extend(options::headers(dice)),
    }
}
