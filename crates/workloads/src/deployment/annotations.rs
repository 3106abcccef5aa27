//! What Deployment and ReplicaSet say about each other in annotations.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use crate::deployment::bounds::Bounds;

pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// Those that are about the one object that has them.
const OWN: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
];

/// How long the list of earlier revisions may become.
const HISTORY_LENGTH: usize = 2000;

pub(crate) fn revision(set: &ReplicaSet) -> i64 {
    read(set, REVISION).unwrap_or(0)
}

/// How many replicas the Deployment had when it last sized this set.
pub(crate) fn desired(set: &ReplicaSet) -> Option<i32> {
    read(set, DESIRED)
}

/// How many it could have had at most then.
pub(crate) fn max(set: &ReplicaSet) -> Option<i32> {
    read(set, MAX)
}

fn read<T: std::str::FromStr>(set: &ReplicaSet, name: &str) -> Option<T> {
    set.metadata.annotations.as_ref()?.get(name)?.parse().ok()
}

/// Notes the size of the Deployment in a set.
pub(crate) fn set_sizes(set: &mut ReplicaSet, bounds: Bounds) {
    let annotations = set.metadata.annotations.get_or_insert_default();
    annotations.insert(DESIRED.into(), bounds.replicas.to_string());
    annotations.insert(MAX.into(), bounds.most().to_string());
}

/// Gives the newest set what the Deployment says, and a revision that is greater than those of all others. The revisions
/// that it had before are kept: it has been rolled back to.
pub(crate) fn set_newest(set: &mut ReplicaSet, deployment: &Deployment, at_least: i64) {
    let before = revision(set);
    let annotations = set.metadata.annotations.get_or_insert_default();
    for (name, value) in deployment.metadata.annotations.iter().flatten() {
        if !OWN.contains(&name.as_str()) {
            annotations.insert(name.clone(), value.clone());
        }
    }
    if before >= at_least {
        return;
    }
    if annotations.insert(REVISION.into(), at_least.to_string()).is_some() {
        remember(annotations, before);
    }
}

fn remember(annotations: &mut BTreeMap<String, String>, revision: i64) {
    let known = annotations.get(HISTORY).map(String::as_str).unwrap_or_default();
    let mut all: Vec<String> = known.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect();
    all.push(revision.to_string());
    while all.len() > 1
        && all.iter().map(|one| one.len().saturating_add(1)).sum::<usize>() > HISTORY_LENGTH + 1
    {
        all.remove(0);
    }
    annotations.insert(HISTORY.into(), all.join(","));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_is_rolled_back_to_keeps_its_earlier_revisions() {
        let (mut set, mut deployment) = (ReplicaSet::default(), Deployment::default());
        let said =
            [("note", "hello"), (REVISION, "9")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        deployment.metadata.annotations = Some(said.into());
        for at_least in [1, 3, 3, 2, 7] {
            set_newest(&mut set, &deployment, at_least);
        }
        let expected = [("note", "hello"), (REVISION, "7"), (HISTORY, "1,3")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(set.metadata.annotations, Some(expected.into()));
    }
}
