//! What became of objects, in little memory.

use std::collections::BTreeMap;

use crate::compile::Report;
use crate::object::ObjectId;
use crate::packed_json::PackedJson;

/// What became of all objects.
///
/// There are as many reports as objects, and of nearly all there is nothing to say but that they are served: of those, no text is kept.
#[derive(Default)]
pub(crate) struct Reports(BTreeMap<ObjectId, Kept>);

enum Kept {
    /// See [`Report::of_served`].
    Served {
        source: usize,
        generation: i64,
    },
    Other(Box<Other>),
}

struct Other {
    /// Without its status.
    report: Report,
    status: Option<PackedJson>,
}

impl Reports {
    /// What became of an object.
    pub(crate) fn get(&self, id: &ObjectId) -> Option<Report> {
        self.0.get(id).map(|kept| kept.report(id))
    }

    /// What became of all objects, in their order.
    pub(crate) fn all(&self) -> Vec<Report> {
        self.0.iter().map(|(id, kept)| kept.report(id)).collect()
    }

    pub(super) fn insert(&mut self, report: Report) {
        self.0.insert(report.id.clone(), Kept::of(report));
    }

    pub(super) fn remove(&mut self, id: &ObjectId) {
        self.0.remove(id);
    }
}

impl Kept {
    fn of(mut report: Report) -> Self {
        let (source, generation) = (report.source, report.generation);
        if report == Report::of_served(report.id.clone(), source, generation) {
            return Self::Served { source, generation };
        }
        let status = report.status.take().map(|status| PackedJson::of(&status));
        Self::Other(Box::new(Other { report, status }))
    }

    fn report(&self, id: &ObjectId) -> Report {
        match self {
            Self::Served { source, generation } => Report::of_served(id.clone(), *source, *generation),
            Self::Other(other) => {
                Report { status: other.status.as_ref().map(PackedJson::read), ..other.report.clone() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use watchkeeper_core::Key;

    use super::*;
    use crate::object::InputKind;

    #[test]
    fn reports_are_given_as_they_came() {
        let id = |name: &str| ObjectId { kind: InputKind::Route, key: Key::new(Some("default"), name) };
        let served = Report::of_served(id("a"), 1, 7);
        let mut other = Report::of_served(id("b"), 0, 3);
        other.accepted.message = "there is something to say".to_owned();
        let standard = Report { status: Some(json!({"parents": [1]})), ..Report::of_served(id("c"), 0, 1) };
        let all = [served, other, standard];
        let mut reports = Reports::default();
        all.iter().rev().for_each(|report| reports.insert(report.clone()));
        assert_eq!(reports.all(), all);
        assert!(matches!(reports.0[&id("a")], Kept::Served { .. }));
        reports.remove(&id("b"));
        assert_eq!(reports.get(&id("b")), None);
        assert_eq!(reports.get(&id("c")).as_ref(), all.last());
    }
}
