use super::element::FieldPath;
use super::entries::{Entry, Operation};
use super::set::FieldSet;
use std::fmt;
use watchkeeper_go as go;

/// A field that is applied with another value than that of the manager who owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The manager of the field, in words: `"curl" using apps/v1`.
    pub manager: String,
    /// The field.
    pub path: FieldPath,
}

/// The conflicts of an apply that was refused. They print as the message of the `Status` with reason `Conflict`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Conflicts {
    /// Sorted by manager; never empty.
    pub conflicts: Vec<Conflict>,
}

/// A cause in the details of the `Status`, with reason `FieldManagerConflict`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `conflict with "curl" using apps/v1`.
    pub message: String,
    /// `.spec.replicas`.
    pub field: String,
}

impl Conflicts {
    /// The causes, one per field and manager.
    pub fn causes(&self) -> Vec<Cause> {
        let causes = self.conflicts.iter().map(|conflict| Cause {
            message: format!("conflict with {}", conflict.manager),
            field: conflict.path.to_string(),
        });
        causes.collect()
    }

    /// From what each manager owns of what changed; in the order of their entries.
    pub(super) fn of<'e>(owned: impl IntoIterator<Item = (&'e Entry, FieldSet)>) -> Self {
        let conflicts = owned.into_iter().flat_map(|(entry, fields)| {
            let manager = describe(entry);
            fields.paths().into_iter().map(move |path| Conflict { manager: manager.clone(), path })
        });
        Self { conflicts: conflicts.collect() }
    }
}

fn describe(entry: &Entry) -> String {
    let mut text = go::quote(&entry.manager);
    if !entry.subresource.is_empty() {
        text.push_str(&format!(" with subresource {}", go::quote(&entry.subresource)));
    }
    if entry.operation == Operation::Update {
        text.push_str(&format!(" using {}", entry.api_version));
    }
    text
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [Conflict { manager, path }] = self.conflicts.as_slice() {
            return write!(f, "Apply failed with 1 conflict: conflict with {manager}: {path}");
        }
        write!(f, "Apply failed with {} conflicts: ", self.conflicts.len())?;
        let mut last = None;
        for Conflict { manager, path } in &self.conflicts {
            if last != Some(manager) {
                let line = if last.is_some() { "\n" } else { "" };
                write!(f, "{line}conflicts with {manager}:")?;
                last = Some(manager);
            }
            write!(f, "\n- {path}")?;
        }
        Ok(())
    }
}
