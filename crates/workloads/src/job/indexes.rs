//! Jobs whose pods have numbers.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, Pod};

use crate::pods;

const INDEX: &str = "batch.kubernetes.io/job-completion-index";

pub(crate) fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}

fn index(pod: &Pod) -> Option<i32> {
    pod.metadata.annotations.as_ref()?.get(INDEX)?.parse().ok()
}

/// The indexes of which a pod has succeeded.
pub(crate) fn succeeded(all: &[Arc<Pod>]) -> BTreeSet<i32> {
    all.iter().filter(|pod| pods::phase(pod) == "Succeeded").filter_map(|pod| index(pod)).collect()
}

/// The indexes that have not succeeded and of which no pod is on its way, lowest first.
pub(crate) fn missing(spec: &JobSpec, all: &[Arc<Pod>]) -> impl Iterator<Item = i32> + use<> {
    let active = all.iter().filter(|pod| pods::is_active(pod)).filter_map(|pod| index(pod));
    let taken: BTreeSet<i32> = succeeded(all).into_iter().chain(active).collect();
    (0..spec.completions.unwrap_or(0)).filter(move |index| !taken.contains(index))
}

/// Gives a pod its number, in all the places where it is looked for.
pub(crate) fn give(pod: &mut Pod, job: &Job, index: i32) {
    let name = job.metadata.name.as_deref().unwrap_or_default();
    let metadata = &mut pod.metadata;
    metadata.generate_name = Some(format!("{name}-{index}-"));
    metadata.annotations.get_or_insert_default().insert(INDEX.into(), index.to_string());
    metadata.labels.get_or_insert_default().insert(INDEX.into(), index.to_string());
    let Some(spec) = &mut pod.spec else { return };
    spec.hostname = Some(format!("{name}-{index}"));
    let field =
        ObjectFieldSelector { field_path: format!("metadata.labels['{INDEX}']"), ..Default::default() };
    let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    let variable = EnvVar { name: "JOB_COMPLETION_INDEX".into(), value: None, value_from: Some(source) };
    for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
        let variables = container.env.get_or_insert_default();
        if variables.iter().all(|known| known.name != variable.name) {
            variables.push(variable.clone());
        }
    }
}

/// Indexes as the API writes them: `0-2,4`.
pub(crate) fn text(indexes: &BTreeSet<i32>) -> String {
    let mut text = String::new();
    let mut rest = indexes.iter().copied().peekable();
    while let Some(first) = rest.next() {
        let mut last = first;
        while let Some(next) = rest.next_if(|next| last.checked_add(1) == Some(*next)) {
            last = next;
        }
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a text cannot fail.
        let _ = match last.saturating_sub(first) {
            0 => write!(text, "{comma}{first}"),
            1 => write!(text, "{comma}{first},{last}"),
            _ => write!(text, "{comma}{first}-{last}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_as_the_api_writes_them() {
        let of = |all: &[i32]| text(&all.iter().copied().collect());
        assert_eq!(of(&[]), "");
        assert_eq!(of(&[3]), "3");
        assert_eq!(of(&[0, 1]), "0,1");
        assert_eq!(of(&[0, 1, 2, 4, 6, 7, 8]), "0-2,4,6-8");
        assert_eq!(of(&[i32::MIN, i32::MAX - 1, i32::MAX]), "-2147483648,2147483646,2147483647");
    }

    #[test]
    fn a_job_of_absurd_size_needs_no_room_for_all_its_indexes() {
        let spec = JobSpec { completions: Some(i32::MAX), ..JobSpec::default() };
        assert_eq!(missing(&spec, &[]).take(3).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
