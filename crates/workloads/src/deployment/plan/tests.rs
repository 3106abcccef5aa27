use std::sync::Arc;

use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStrategy, ReplicaSet, ReplicaSetSpec, ReplicaSetStatus,
    RollingUpdateDeployment,
};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;

use super::*;

fn template(image: &str) -> PodTemplateSpec {
    let container = Container { name: "web".into(), image: Some(image.into()), ..Container::default() };
    PodTemplateSpec {
        metadata: None,
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
    }
}

fn deployment(replicas: i32, surge: i32, unavailable: i32) -> Deployment {
    let rolling = RollingUpdateDeployment {
        max_surge: Some(IntOrString::Int(surge)),
        max_unavailable: Some(IntOrString::Int(unavailable)),
    };
    Deployment {
        spec: DeploymentSpec {
            replicas: Some(replicas),
            strategy: Some(DeploymentStrategy { rolling_update: Some(rolling), type_: None }),
            template: template("new"),
            ..DeploymentSpec::default()
        },
        ..Deployment::default()
    }
}

/// A set that has as many pods as it should, some of them available, and that was sized for a Deployment.
fn set(name: &str, size: i32, available: i32, sized_for: &Deployment) -> ReplicaSet {
    let second = name.bytes().last().map_or(0, i64::from);
    let mut set = ReplicaSet {
        metadata: ObjectMeta {
            name: Some(name.into()),
            creation_timestamp: Some(Time(Timestamp::from_second(second).unwrap_or_default())),
            generation: Some(5),
            ..ObjectMeta::default()
        },
        spec: ReplicaSetSpec {
            replicas: Some(size),
            template: Some(template(name)),
            ..ReplicaSetSpec::default()
        },
        status: Some(ReplicaSetStatus {
            replicas: size,
            available_replicas: Some(available),
            observed_generation: Some(5),
            ..ReplicaSetStatus::default()
        }),
    };
    annotations::set_sizes(&mut set, Bounds::of(sized_for));
    set
}

fn sets(deployment: &Deployment, all: impl IntoIterator<Item = ReplicaSet>) -> Sets {
    Sets::of(deployment, all.into_iter().map(Arc::new).collect())
}

fn said(all: Vec<Resize>) -> Vec<(String, i32)> {
    all.into_iter().map(|one| (one.set.metadata.name.clone().unwrap_or_default(), one.size)).collect()
}

/// The name of a set, its size, and how many of its pods are available.
type Said = (&'static str, i32, i32);

#[test]
fn a_rollout_goes_as_far_as_its_bounds_allow() {
    // Replicas, surge, unavailable; the sets; their next sizes.
    type Case = ((i32, i32, i32), &'static [Said], &'static [(&'static str, i32)]);
    let cases: &[Case] = &[
        // The new set grows first, by what is left of the surge.
        ((10, 3, 0), &[("a", 10, 10), ("new", 0, 0)], &[("new", 3)]),
        ((10, 3, 0), &[("a", 8, 8), ("new", 2, 2)], &[("new", 5)]),
        ((10, 3, 0), &[("a", 2, 2), ("new", 9, 9)], &[("new", 10)]),
        // Old ones go only for available new ones, or for what may be unavailable.
        ((10, 3, 0), &[("a", 10, 10), ("new", 3, 0)], &[]),
        ((10, 3, 0), &[("a", 10, 10), ("new", 3, 2)], &[("a", 8)]),
        ((10, 2, 2), &[("a", 10, 10), ("new", 2, 0)], &[("a", 8)]),
        ((10, 3, 0), &[("a", 1, 1), ("new", 10, 10)], &[("a", 0)]),
        // Of the old ones, first those that are not available, then the oldest.
        ((10, 3, 2), &[("a", 5, 2), ("b", 5, 5), ("new", 3, 0)], &[("a", 3)]),
        ((10, 3, 0), &[("a", 10, 10), ("b", 3, 0), ("new", 0, 0)], &[("b", 0)]),
        ((10, 3, 0), &[("a", 2, 1), ("b", 8, 8), ("new", 3, 3)], &[("a", 0), ("b", 7)]),
        ((4, 1, 1), &[("a", 4, 0), ("new", 1, 0)], &[("a", 3)]),
        // A new set that is too large for the Deployment.
        ((4, 1, 0), &[("a", 1, 1), ("new", 6, 6)], &[("new", 4)]),
        // Nothing left to do.
        ((4, 1, 1), &[("a", 0, 0), ("new", 4, 3)], &[]),
    ];
    for ((replicas, surge, unavailable), all, expected) in cases {
        let web = deployment(*replicas, *surge, *unavailable);
        let sets = sets(&web, all.iter().map(|(name, size, available)| set(name, *size, *available, &web)));
        let expected: Vec<_> = expected.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
        assert_eq!(said(rolling(&web, &sets)), expected, "{replicas} +{surge} -{unavailable}: {all:?}");
    }
}

#[test]
fn pods_that_are_about_to_go_are_not_available_but_take_up_room() {
    let web = deployment(10, 3, 0);
    // Made smaller from 10 to 7; the status is from when the three were deleted.
    let mut old = set("a", 7, 10, &web);
    old.status.get_or_insert_default().replicas = 10;
    // Ten are there, so that one may go: not the four that 14 available ones would allow.
    let new = set("new", 6, 4, &web);
    assert_eq!(said(rolling(&web, &sets(&web, [old.clone(), new]))), [("a".to_owned(), 6)]);
    // By their sizes three more would fit.
    let new = set("new", 3, 0, &web);
    assert_eq!(said(rolling(&web, &sets(&web, [old, new]))), []);
}

#[test]
fn nothing_is_decided_before_the_last_size_was_observed() {
    let web = deployment(10, 3, 0);
    let smaller = deployment(8, 3, 0);
    let mut old = set("a", 10, 10, &web);
    let new = set("new", 3, 3, &web);
    old.metadata.generation = Some(6);
    let unobserved = sets(&web, [old.clone(), new.clone()]);
    assert_eq!(said(rolling(&web, &unobserved)), []);
    assert_eq!(said(scaling(&smaller, &unobserved)), []);
    let first = new_set(&with_name(&web), &sets(&web, [old.clone()])).map(|set| set.spec.replicas);
    assert_eq!(first.ok(), Some(Some(0)));
    // Nobody observes a set that is being deleted.
    old.metadata.deletion_timestamp = old.metadata.creation_timestamp.clone();
    let deleted = sets(&web, [old.clone(), new]);
    assert_eq!(said(rolling(&web, &deleted)), [("a".to_owned(), 7)]);
    assert!(!scaling(&smaller, &deleted).is_empty());
    let first = new_set(&with_name(&web), &sets(&web, [old])).map(|set| set.spec.replicas);
    assert_eq!(first.ok(), Some(Some(3)));
}

fn with_name(deployment: &Deployment) -> Deployment {
    let mut deployment = deployment.clone();
    deployment.metadata.name = Some("web".into());
    deployment.metadata.uid = Some("1".into());
    deployment
}

#[test]
fn a_deployment_that_is_scaled_in_the_middle_of_a_rollout_keeps_its_proportions() {
    // Replicas and surge before and after; the sizes of the sets before and after, in the order of writing.
    type Sizes = &'static [(&'static str, i32)];
    type Case = ((i32, i32), (i32, i32), Sizes, Sizes);
    let cases: &[Case] = &[
        ((5, 0), (10, 0), &[("a", 3), ("new", 2)], &[("a", 6), ("new", 4)]),
        ((13, 0), (8, 0), &[("a", 3), ("b", 8), ("new", 2)], &[("b", 5), ("a", 2), ("new", 1)]),
        ((10, 2), (20, 2), &[("a", 6), ("new", 6)], &[("new", 11), ("a", 11)]),
        ((10, 3), (50, 6), &[("a", 8), ("new", 5)], &[("a", 34), ("new", 22)]),
        // What is left over goes to the largest: of equal ones to the newest, and away from the oldest.
        ((3, 0), (4, 0), &[("a", 1), ("b", 1), ("new", 1)], &[("new", 2), ("b", 1), ("a", 1)]),
        ((3, 0), (2, 0), &[("a", 1), ("b", 1), ("new", 1)], &[("a", 0), ("b", 1), ("new", 1)]),
        ((9, 0), (4, 0), &[("a", 1), ("new", 8)], &[("new", 4), ("a", 0)]),
        ((6, 1), (0, 1), &[("a", 2), ("new", 4)], &[("new", 0), ("a", 0)]),
        // The same again, to be noted in the sets.
        ((4, 1), (4, 1), &[("a", 3), ("new", 2)], &[("a", 3), ("new", 2)]),
        // Only one has pods, or none has.
        ((4, 1), (6, 1), &[("a", 4), ("new", 0)], &[("a", 6)]),
        ((0, 1), (6, 1), &[("a", 0), ("new", 0)], &[("new", 6)]),
        ((0, 1), (6, 1), &[("a", 0), ("b", 0)], &[("b", 6)]),
        ((6, 1), (6, 1), &[("a", 6)], &[]),
        ((9, 1), (6, 1), &[("a", 6), ("new", 0)], &[("a", 6)]),
    ];
    for ((replicas, surge), (more, more_surge), all, expected) in cases {
        let (before, after) = (deployment(*replicas, *surge, 1), deployment(*more, *more_surge, 1));
        let sets = sets(&after, all.iter().map(|(name, size)| set(name, *size, 0, &before)));
        let expected: Vec<_> = expected.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
        assert_eq!(said(scaling(&after, &sets)), expected, "{replicas} to {more}: {all:?}");
        let has_pods = all.iter().any(|(_, size)| *size > 0);
        assert_eq!(was_scaled(&after, &sets), replicas != more && has_pods, "{replicas} to {more}: {all:?}");
    }
}

#[test]
fn old_pods_go_at_once_where_the_new_ones_are_all_available() {
    let web = deployment(3, 1, 0);
    let of = |available| sets(&web, [set("a", 1, 1, &web), set("new", 3, available, &web)]);
    assert_eq!(said(scaling(&web, &of(3))), [("a".to_owned(), 0)]);
    assert_eq!(said(scaling(&web, &of(2))), [("new".to_owned(), 3), ("a".to_owned(), 1)]);
}

#[test]
fn a_deployment_that_recreates_is_not_scaled_in_proportion() {
    let mut web = deployment(3, 1, 0);
    web.spec.strategy = Some(DeploymentStrategy { type_: Some("Recreate".into()), rolling_update: None });
    let sets = sets(&web, [set("a", 2, 2, &web), set("new", 1, 1, &web)]);
    assert_eq!(said(scaling(&web, &sets)), []);
    assert_eq!(said(emptying(&sets)), [("a".to_owned(), 0)]);
    assert_eq!(said(rolling(&web, &sets)), [("new".to_owned(), 3)]);
}
