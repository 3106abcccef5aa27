//! Bindings of roles.

use serde_json::Value;
use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text, wide};

/// `RoleBinding` and `ClusterRoleBinding`.
pub(crate) const BINDING: Layout = Layout::new(
    &[
        NAME,
        text("Role", "The role that is granted."),
        AGE,
        wide("Users", "The users it is granted to."),
        wide("Groups", "The groups it is granted to."),
        wide("ServiceAccounts", "The service accounts it is granted to."),
    ],
    |view| {
        let role = view.object.at("roleRef");
        vec![
            view.name(),
            format!("{}/{}", role.text("kind"), role.text("name")).into(),
            view.age(),
            subjects(view.object, "User"),
            subjects(view.object, "Group"),
            subjects(view.object, "ServiceAccount"),
        ]
    },
);

fn subjects(binding: &Value, kind: &str) -> Value {
    let subjects = binding.list("subjects").iter().filter(|subject| subject.text("kind") == kind);
    let names: Vec<String> = subjects
        .map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", subject.text("namespace"), subject.text("name")),
            _ => subject.text("name").into(),
        })
        .collect();
    names.join(", ").into()
}
