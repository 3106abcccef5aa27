//! Tables of kinds that are not served, or only as a subresource.

use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, integer, text};

const SCALE: Layout = Layout::new(
    &[
        text("Name", "The name of the scaled object."),
        integer("Desired", "How many replicas there should be."),
        integer("Available", "How many replicas there are."),
        AGE,
    ],
    |view| {
        let scale = view.object;
        vec![view.name(), scale.int("spec.replicas").into(), scale.int("status.replicas").into(), view.age()]
    },
);

const LEASE_CANDIDATE: Layout = Layout::new(
    &[
        NAME,
        text("LeaseName", "The lease that is wanted."),
        text("BinaryVersion", "The version of the candidate."),
        text("EmulationVersion", "The version that the candidate behaves as."),
        AGE,
    ],
    |view| {
        let spec = view.object.at("spec");
        vec![
            view.name(),
            spec.text("leaseName").into(),
            spec.text("binaryVersion").into(),
            spec.text("emulationVersion").into(),
            view.age(),
        ]
    },
);

/// The tables by group and kind.
pub(crate) const TABLES: [(&str, &str, Layout); 2] =
    [("autoscaling", "Scale", SCALE), ("coordination.k8s.io", "LeaseCandidate", LEASE_CANDIDATE)];
