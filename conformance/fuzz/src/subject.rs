//! What can be done with objects of one kind.

use serde_json::Value;

use crate::mutation::mutate;
use crate::{Dice, Request, Tree, options, patch, protobuf, values, yaml};

/// What a scenario is about.
pub(crate) struct Subject<'a> {
    /// Where objects are created.
    pub(crate) collection: String,
    /// A valid one.
    pub(crate) object: Value,
    /// What its objects look like.
    pub(crate) schema: Option<&'a Value>,
    /// The name under which it will be found.
    pub(crate) name: String,
    /// What it has besides the object itself.
    pub(crate) subresources: Vec<&'static str>,
    /// Whether there is a protobuf of it.
    pub(crate) is_builtin: bool,
}

impl Subject<'_> {
    /// Creates an object, and does a few things with it.
    pub(crate) fn life(&self, requests: &mut Vec<Request>, dice: &mut Dice) {
        if dice.chance(70) {
            requests.push(self.create(true, dice));
        }
        requests.push(self.create(false, dice));
        for _ in 0..3 + dice.below(8) {
            self.step(requests, dice);
        }
    }

    /// Does one thing with an object that may be there.
    pub(crate) fn step(&self, requests: &mut Vec<Request>, dice: &mut Dice) {
        let path = format!("{}/{}", self.collection, self.name);
        let mut request = match dice.below(30) {
            0..=4 => self.create(true, dice),
            5..=8 => self.put(&path, dice),
            9..=16 => self.patch(&path, dice),
            17..=19 if self.subresources.contains(&"status") => {
                let path = format!("{path}/status");
                if dice.chance(40) { self.put(&path, dice) } else { self.patch(&path, dice) }
            }
            20 | 21 if self.subresources.contains(&"scale") => self.scale(&format!("{path}/scale"), dice),
            22 => self.delete(&path, dice),
            23 if dice.chance(30) => {
                let mut request = self.delete(&self.collection, dice);
                let more = options::query(&options::list(dice), dice);
                request.target += &format!("{}{more}", if request.target.contains('?') { "&" } else { "?" });
                request
            }
            24 if !self.subresources.is_empty() => {
                let part = *dice.item(&self.subresources);
                Request::new(dice.pick(&["GET", "PUT", "POST", "PATCH"]), format!("{path}/{part}"))
                    .json(self.changed(dice).json())
            }
            25 | 26 => {
                let mut query = options::list(dice);
                query.push(("watch".into(), "1".into()));
                if dice.chance(50) {
                    query.push(("timeoutSeconds".into(), "1".into()));
                }
                Request::new("GET", format!("{}?{}", self.collection, options::query(&query, dice)))
            }
            27 => Request::new("GET", format!("{path}?{}", options::query(&options::list(dice), dice))),
            _ => Request::new(
                "GET",
                format!("{}?{}", self.collection, options::query(&options::list(dice), dice)),
            ),
        };
        request.mutated = true;
        request.headers.extend(options::headers(dice));
        if dice.chance(2) {
            let at = request.headers.iter().position(|(name, _)| name == "content-type");
            if let Some(at) = at {
                request.headers[at].1 = dice
                    .pick(&[
                        "", "application/json;charset=utf-8", "text/plain", "application/*",
                        "application/json, text/plain", "json", "application/JSON", "application/cbor",
                        "application/x-www-form-urlencoded",
                    ])
                    .into();
            }
        }
        requests.push(request);
    }

    fn changed(&self, dice: &mut Dice) -> Tree {
        let mut tree = Tree::from(&self.object);
        mutate(&mut tree, self.schema, dice);
        tree
    }

    fn create(&self, is_mutated: bool, dice: &mut Dice) -> Request {
        let tree = if is_mutated { self.changed(dice) } else { Tree::from(&self.object) };
        let mut request = Request::new("POST", self.collection.clone());
        if is_mutated {
            request.target = with(request.target, &options::write(false, dice), dice);
        }
        self.encode(&mut request, &tree, is_mutated, dice);
        request.mutated = is_mutated;
        request
    }

    fn put(&self, path: &str, dice: &mut Dice) -> Request {
        let mut tree = self.changed(dice);
        if matches!(tree.get("metadata"), Some(Tree::Map(_))) && dice.chance(60) {
            *tree.field("metadata").field("resourceVersion") = Tree::text("{version}");
        }
        let mut request = Request::new("PUT", with(path.to_owned(), &options::write(false, dice), dice));
        self.encode(&mut request, &tree, true, dice);
        request
    }

    fn patch(&self, path: &str, dice: &mut Dice) -> Request {
        let content_type = *dice.item(&patch::TYPES);
        let tree = patch::patch(content_type, &Tree::from(&self.object), self.schema, dice);
        let mut request = Request::new("PATCH", path);
        request.target = with(request.target, &options::write(content_type.contains("apply"), dice), dice);
        request.headers.push(("content-type".into(), content_type.into()));
        request.body = if content_type.contains("yaml") && dice.chance(50) {
            yaml::yaml(&tree, dice)
        } else {
            tree.json()
        };
        request
    }

    fn scale(&self, path: &str, dice: &mut Dice) -> Request {
        let scale = serde_json::json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": self.name}, "spec": {"replicas": 2},
        });
        let mut tree = Tree::from(&scale);
        mutate(&mut tree, None, dice);
        if dice.chance(50) {
            return Request::new("PUT", path).json(tree.json());
        }
        let content_type = *dice.item(&patch::TYPES);
        let mut request = Request::new(
            "PATCH",
            with(path.to_owned(), &options::write(content_type.contains("apply"), dice), dice),
        );
        request.headers.push(("content-type".into(), content_type.into()));
        request.body = patch::patch(content_type, &Tree::from(&scale), None, dice).json();
        request
    }

    fn delete(&self, path: &str, dice: &mut Dice) -> Request {
        let target = with(path.to_owned(), &options::delete(dice), dice);
        if dice.chance(50) {
            return Request::new("DELETE", target);
        }
        let options = serde_json::json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
            "preconditions": {"uid": "{uid}"},
        });
        let mut tree = Tree::from(&options);
        mutate(&mut tree, None, dice);
        if dice.chance(20) {
            *tree.field("gracePeriodSeconds") = values::number(dice);
        }
        let mut request = Request::new("DELETE", target);
        self.encode(&mut request, &tree, true, dice);
        request
    }

    /// Writes a body as JSON, YAML or protobuf.
    fn encode(&self, request: &mut Request, tree: &Tree, is_mutated: bool, dice: &mut Dice) {
        let form = dice.below(100);
        let (content_type, body) = match form {
            0..=14 => ("application/yaml", if is_mutated { yaml::yaml(tree, dice) } else { tree.json() }),
            15..=34 if self.is_builtin => match tree.value().and_then(|value| protobuf::encoded(&value)) {
                Some(mut bytes) => {
                    if is_mutated {
                        for _ in 0..dice.below(3) {
                            protobuf::mutate(&mut bytes, dice);
                        }
                    }
                    ("application/vnd.kubernetes.protobuf", bytes)
                }
                None => ("application/json", tree.json()),
            },
            _ => ("application/json", tree.json()),
        };
        request.headers.push(("content-type".into(), content_type.into()));
        request.body = body;
    }
}

fn with(path: String, query: &[(String, String)], dice: &mut Dice) -> String {
    match options::query(query, dice) {
        query if query.is_empty() => path,
        query => format!("{path}?{query}"),
    }
}
