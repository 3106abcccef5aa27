//! The roles that the operator is shipped with, rule by rule.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use watchkeeper_description::{Roles, When, roles};
use watchkeeper_schema::yaml;
use watchkeeper_testkit::{Call, Fate, TestEnv};

use crate::world::{NAME, OPERATOR, description_of};

/// A rule that is refused nothing where it is missing, and why it is there all the same.
pub(crate) const EXCEPTIONS: &[(&str, &str)] = &[(
    "ClusterRole: update webapps/finalizers",
    "asked for by OwnerReferencesPermissionEnforcement, a plug-in of the server that few have",
)];

/// A rule of the operator.
pub(crate) struct Rule {
    is_own: bool,
    at: usize,
    value: Value,
}

/// What is shipped for a program of this name: whoever installs it brings the definitions.
pub(crate) fn shipped(name: &str) -> Roles {
    roles(&description_of(name).rights, |when| when != When::InstallingDefinitions)
}

/// All rules, those of its webhooks or the others.
pub(crate) fn rules(of_webhooks: bool) -> Vec<Rule> {
    let whole = shipped(NAME);
    assert!(whole.namespaces.is_empty(), "{:?}", whole.namespaces);
    let numbered = |is_own: bool, rules: Vec<Value>| {
        rules.into_iter().enumerate().map(move |(at, value)| Rule { is_own, at, value })
    };
    let all = numbered(false, whole.cluster).chain(numbered(true, whole.own));
    all.filter(|rule| rule.is_of_webhooks() == of_webhooks).collect()
}

impl Rule {
    fn words(&self, field: &str) -> Vec<&str> {
        let words = self.value[field].as_array().into_iter().flatten();
        words.map(|word| word.as_str().unwrap()).collect()
    }

    fn is_of_webhooks(&self) -> bool {
        let of_webhooks = ["admissionregistration.k8s.io", "apiextensions.k8s.io"];
        self.words("resources") == ["secrets"] || of_webhooks.contains(&self.words("apiGroups")[0])
    }

    /// All rules but this one.
    pub(crate) fn left_out(&self) -> Roles {
        let mut rest = shipped(NAME);
        let rules = if self.is_own { &mut rest.own } else { &mut rest.cluster };
        rules.remove(self.at);
        rest
    }

    /// Whether it is what allows such a request.
    pub(crate) fn allows(&self, call: &Call) -> bool {
        let target = target(call);
        self.words("apiGroups").contains(&&*call.group)
            && self.words("resources").contains(&&*target)
            && self.words("verbs").contains(&call.verb)
    }

    /// As people read it: `Role: get, update leases named webapp`.
    pub(crate) fn shown(&self) -> String {
        let place = if self.is_own { "Role" } else { "ClusterRole" };
        let names = self.words("resourceNames").join(", ");
        let named = if names.is_empty() { names } else { format!(" named {names}") };
        format!("{place}: {} {}{named}", self.words("verbs").join(", "), self.words("resources").join(", "))
    }

    /// Prints what was refused without it, for the table in `docs/packaging.md`. Fails if that is nothing and it is no exception, or something and it is one.
    #[allow(clippy::print_stdout, reason = "a table that is read from the output of the test")]
    pub(crate) fn judge(&self, refused: &[Call]) {
        let own: BTreeSet<String> = refused
            .iter()
            .filter(|call| self.allows(call))
            .map(|call| format!("{} {}", call.verb, target(call)))
            .collect();
        let shown = self.shown();
        let reason = EXCEPTIONS.iter().find(|(rule, _)| *rule == shown).map(|(_, reason)| *reason);
        assert_eq!(own.is_empty(), reason.is_some(), "without {shown:?}, {refused:?} is refused");
        let told = own.into_iter().collect::<Vec<_>>().join(", ");
        println!("rule: {shown} | {}", reason.map_or(told, |reason| format!("nothing: {reason}")));
    }
}

fn target(call: &Call) -> String {
    match &*call.subresource {
        "" => call.resource.clone(),
        subresource => format!("{}/{subresource}", call.resource),
    }
}

/// What the operator was refused.
pub(crate) fn refused(env: &TestEnv) -> Vec<Call> {
    let refused = env.requests().into_iter().filter(|seen| seen.fate == Fate::Answered(403));
    refused.map(|seen| seen.call).filter(|call| call.user == OPERATOR).collect()
}

#[test]
fn the_rules_are_those_of_rbac_yaml() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/rbac.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let name = "watchkeeper-webapp";
    let written = |kind: &str| {
        let mut objects =
            yaml::documents(&text).map(|part| yaml::decode(part.text.as_bytes()).unwrap().value);
        let is_it = |object: &Value| object["kind"] == kind && object["metadata"]["name"] == name;
        objects.find(is_it).unwrap()["rules"].clone()
    };
    let roles = shipped(name);
    assert_eq!((json!(roles.cluster), json!(roles.own)), (written("ClusterRole"), written("Role")));
}
