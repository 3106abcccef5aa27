//! Decisions, compared with those of the Go packages of Kubernetes, and what must hold for all rules.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;
use watchkeeper_rbac::{
    About, Binding, ClusterRole, Policy, Request, Role, Rule, User, describe_missing, missing,
};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn policy(objects: &Value) -> Policy {
    let mut policy = Policy::default();
    for object in objects.as_array().unwrap() {
        let name = object["metadata"]["name"].as_str().unwrap();
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        match object["kind"].as_str().unwrap() {
            "ClusterRole" => policy.set_cluster_role(name, Some(ClusterRole::read(object))),
            "Role" => policy.set_role(namespace, name, Some(Role::read(object))),
            _ => policy.set_binding(namespace, name, Some(Binding::read(object))),
        }
    }
    policy
}

fn request(asked: &Value) -> Request<'_> {
    let text = |field: &str| asked[field].as_str().unwrap();
    let about = match text("path") {
        "" => About::Resource {
            group: text("group"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
        },
        path => About::Path(path),
    };
    Request { verb: text("verb"), about }
}

#[test]
fn requests_are_decided_as_kubernetes_decides_them() {
    let mut allowed = 0;
    for case in lines(include_str!("decide.jsonl")) {
        let policy = policy(&case["objects"]);
        for asked in case["asked"].as_array().unwrap() {
            let groups = texts(&asked["groups"]);
            let user = User { name: asked["user"].as_str().unwrap(), groups: &groups };
            let decision = policy.decide(&user, &request(asked));
            assert_eq!(asked["allowed"], decision.is_allowed(), "{asked}\n{case}");
            assert_eq!(asked["reason"], decision.reason(), "{asked}\n{case}");
            allowed += usize::from(decision.is_allowed());
        }
    }
    assert!(allowed > 30, "{allowed}");
}

#[test]
fn nobody_gives_away_more_than_they_have_and_is_told_what_is_missing() {
    for case in lines(include_str!("covers.jsonl")) {
        let (held, wanted) = (Rule::read_all(&case["held"]), Rule::read_all(&case["wanted"]));
        let groups = texts(&case["groups"]);
        let missing = missing(&held, &wanted);
        let said = match missing.is_empty() {
            true => String::new(),
            false => describe_missing(&User { name: "jane", groups: &groups }, missing, &[]),
        };
        assert_eq!(case["said"], said, "{case}");
    }
}

#[test]
fn what_is_taken_back_is_no_longer_allowed() {
    for case in lines(include_str!("decide.jsonl")) {
        let mut policy = policy(&case["objects"]);
        for object in case["objects"].as_array().unwrap() {
            let name = object["metadata"]["name"].as_str().unwrap();
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            match object["kind"].as_str().unwrap() {
                "ClusterRole" | "Role" => {}
                _ => policy.set_binding(namespace, name, None),
            }
        }
        for asked in case["asked"].as_array().unwrap() {
            let groups = texts(&asked["groups"]);
            let user = User { name: asked["user"].as_str().unwrap(), groups: &groups };
            assert!(!policy.decide(&user, &request(asked)).is_allowed());
            assert!(policy.rules_of(&user, "x").rules.is_empty());
        }
    }
}

fn some(from: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(select(from).prop_map(str::to_owned), 0..3)
}

prop_compose! {
    fn rule()(
        verbs in some(&["get", "list", "*"]),
        api_groups in some(&["", "apps", "*"]),
        resources in some(&["pods", "pods/log", "*/log", "*", "nodes"]),
        resource_names in some(&["a", "b"]),
        non_resource_urls in some(&["/a", "/a/*", "/a*", "*", "/b"]),
        is_about_paths in any::<bool>(),
    ) -> Rule {
        // No role has a rule that is about both.
        if is_about_paths {
            return Rule { verbs, non_resource_urls, ..Rule::default() };
        }
        Rule { verbs, api_groups, resources, resource_names, ..Rule::default() }
    }
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    proptest::collection::vec(rule(), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn rules_that_lack_nothing_allow_all_that_the_others_allow(
        held in rules(),
        wanted in rules(),
        verb in select(&["get", "list", "watch"][..]),
        group in select(&["", "apps", "batch"][..]),
        resource in select(&["pods", "nodes", "jobs"][..]),
        subresource in select(&["", "log", "exec"][..]),
        name in select(&["", "a", "c"][..]),
        path in select(&["/a", "/a/b", "/ab", "/b", "/c"][..]),
    ) {
        let allow = |rules: &[Rule], request: &Request<'_>| rules.iter().any(|rule| rule.allows(request));
        // Together they lack nothing, so that every case says something.
        let both: Vec<Rule> = held.iter().chain(&wanted).cloned().collect();
        prop_assert_eq!(missing(&both, &wanted), vec![]);
        let lacks_nothing = missing(&held, &wanted).is_empty();
        for about in [About::Resource { group, resource, subresource, namespace: "x", name }, About::Path(path)] {
            let request = Request { verb, about };
            if allow(&wanted, &request) {
                prop_assert!(allow(&both, &request));
                prop_assert!(!lacks_nothing || allow(&held, &request), "{:?}", request);
            }
        }
    }
}
