//! Keeps ClusterRoles that are the sum of others up to date, as kube-controller-manager does elsewhere.

use std::sync::Arc;

use watchkeeper_rbac::{Rule, aggregated};

use crate::access::GROUP;
use crate::resource::ObjectRef;
use crate::server::Server;
use crate::status_error::StatusError;
use crate::write::Subresource;

/// What the task is called.
pub(super) const TASK: &str = "role-aggregation";

/// Works out the sums again whenever something changed. A sum may be a part of another, which this notices as one more
/// change.
pub(super) async fn run(server: Arc<Server>) {
    let mut changes = server.access.changes();
    loop {
        changes.mark_unchanged();
        for (name, rules) in outdated(&server) {
            let updated = server.supervisor.caught_async(TASK, &name, update(&server, &name, &rules)).await;
            if let Some(Err(failure)) = updated {
                tracing::warn!(role = %name, failure = %failure.message, "aggregated ClusterRole could not be updated");
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// The sums that have other rules than their parts, with the rules they should have.
fn outdated(server: &Server) -> Vec<(String, Vec<Rule>)> {
    let policy = server.access.policy();
    let roles = policy.cluster_roles();
    let sums = roles.clone().filter_map(|role| {
        let sum = server.supervisor.caught(TASK, &role.name, || aggregated(role, roles.clone()))?;
        Some((role, sum?))
    });
    sums.filter(|(role, rules)| role.rules != *rules)
        .map(|(role, rules)| (role.name.clone(), rules))
        .collect()
}

async fn update(server: &Server, name: &str, rules: &[Rule]) -> Result<(), StatusError> {
    let Some(resource) = server.registry().find(GROUP, "v1", "clusterroles") else { return Ok(()) };
    let place = ObjectRef { resource, namespace: None, name: name.to_owned() };
    let change = |object: &mut serde_json::Value| {
        object["rules"] = rules.iter().map(Rule::value).collect();
    };
    server.writer.modify(&place, Subresource::Main, change).await
}
