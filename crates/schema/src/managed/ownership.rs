use super::Request;
use super::conflict::Conflicts;
use super::entries::ManagedFields;
use super::set::FieldSet;
use super::typed::{Changes, Typed};
use super::versions::convert;
use crate::Error;
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

/// Why owners did not change hands.
pub(super) enum Refusal {
    Conflicts(Vec<(String, FieldSet)>),
    Error(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl Refusal {
    /// In words, with the managers it is about.
    pub(super) fn explain(self, managed: &ManagedFields) -> Result<Conflicts, Error> {
        match self {
            Self::Conflicts(owned) => Ok(Conflicts::of(
                owned.into_iter().filter_map(|(id, fields)| Some((managed.get(&id)?, fields))),
            )),
            Self::Error(error) => Err(error),
        }
    }
}

impl Request<'_> {
    pub(super) fn typed(&self) -> Result<Typed<'_>, Error> {
        let shape = self.versions.shape(self.api_version).ok_or_else(|| {
            let group = if self.api_version.contains('/') { "" } else { "/" };
            Error::Apply(format!("no corresponding type for {group}{}, Kind={}", self.api_version, self.kind))
        })?;
        Ok(Typed::new(shape))
    }

    /// Brings all sets in line with the shapes of today, and forgets those of versions that are gone.
    pub(super) fn reconcile(&self, live: &Value, managed: &mut ManagedFields) -> Result<(), Error> {
        let mut gone: Vec<String> = Vec::new();
        let mut checked: Vec<String> = Vec::new();
        for (id, entry) in managed.with_ids() {
            if entry.api_version == self.api_version || checked.contains(&entry.api_version) {
                continue;
            }
            match convert(self.versions, live, &entry.api_version)? {
                Some(_) => checked.push(entry.api_version.clone()),
                None => gone.push(id.clone()),
            }
        }
        for id in gone {
            managed.remove(&id);
        }
        managed.retain(|_, entry| {
            if let Some(shape) = self.versions.shape(&entry.api_version) {
                Typed::new(shape).reconcile(&mut entry.fields);
            }
            true
        });
        Ok(())
    }

    /// Takes away from all managers but one what changed or is gone. What changed and is owned is a conflict, which ends
    /// it unless forced.
    pub(super) fn transfer(
        &self,
        old: &Value,
        new: &Value,
        managed: &mut ManagedFields,
        own: &str,
        force: bool,
    ) -> Result<Changes, Refusal> {
        let changes = self.typed()?.compare(old, new).without(self.reset);
        let mut elsewhere: BTreeMap<String, Option<Changes>> = BTreeMap::new();
        let mut conflicts: Vec<(String, FieldSet)> = Vec::new();
        for (id, entry) in managed.with_ids().filter(|(id, _)| *id != own) {
            let changes = if entry.api_version == self.api_version {
                Some(&changes)
            } else {
                match elsewhere.entry(entry.api_version.clone()) {
                    Slot::Occupied(found) => found.into_mut().as_ref(),
                    Slot::Vacant(free) => {
                        free.insert(self.compare_in(old, new, &entry.api_version)?).as_ref()
                    }
                }
            };
            if let Some(changes) = changes {
                let modified = entry.fields.intersection(&changes.modified);
                let owned = modified.union(entry.fields.intersection(&changes.added));
                if !owned.is_empty() {
                    conflicts.push((id.clone(), owned));
                }
            }
        }
        if !force && !conflicts.is_empty() {
            return Err(Refusal::Conflicts(conflicts));
        }
        let mut lost: BTreeMap<String, FieldSet> = conflicts.into_iter().collect();
        managed.retain(|id, entry| {
            if id != own {
                let changes = match entry.api_version == self.api_version {
                    true => Some(&changes),
                    false => elsewhere.get(&entry.api_version).and_then(Option::as_ref),
                };
                let Some(changes) = changes else {
                    return false;
                };
                let mut fields = std::mem::take(&mut entry.fields);
                if let Some(lost) = lost.remove(id) {
                    fields = fields.difference(&lost);
                }
                entry.fields = fields.difference(&changes.removed);
            }
            !entry.fields.is_empty()
        });
        Ok(changes)
    }

    fn compare_in(&self, old: &Value, new: &Value, api_version: &str) -> Result<Option<Changes>, Error> {
        let failed = |which: &'static str| {
            move |error| Error::Apply(format!("failed to convert {which} object: {error}"))
        };
        let Some((old, typed)) = convert(self.versions, old, api_version).map_err(failed("old"))? else {
            return Ok(None);
        };
        let Some((new, _)) = convert(self.versions, new, api_version).map_err(failed("new"))? else {
            return Ok(None);
        };
        Ok(Some(typed.compare(&old, &new).without(self.reset)))
    }

    /// Removes from a merged object what a manager applied the last time, does not apply this time, and nobody else owns.
    pub(super) fn prune(
        &self,
        merged: Value,
        managed: &ManagedFields,
        last: &FieldSet,
        last_version: &str,
        applied: &FieldSet,
    ) -> Result<Value, Error> {
        if last.is_empty() || last_version == self.api_version && last.is_subset(applied) {
            return Ok(merged);
        }
        let failed =
            |error| Error::Apply(format!("failed to convert merged object to last applied version: {error}"));
        let Some((converted, typed)) = convert(self.versions, &merged, last_version).map_err(failed)? else {
            return Ok(merged);
        };
        let converted = converted.into_owned();
        let last = typed.with_named_fields(last);
        let mut pruned = typed.remove(converted.clone(), &last);
        let mut by_version: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for entry in managed.entries() {
            let owned = by_version.entry(&entry.api_version).or_default();
            *owned = std::mem::take(owned).union(entry.fields.clone());
        }
        let mut current = converted.clone();
        // The version that was pruned goes first: what another version needs for its conversion may be missing.
        let first = by_version.remove_entry(last_version);
        for (version, owned) in first.into_iter().chain(by_version) {
            if let Some((all, kept)) = self.restore(&current, &pruned, version, &owned)? {
                current = all;
                pruned = kept;
            }
        }
        let Some((pruned, _)) = convert(self.versions, &pruned, last_version)? else {
            return Ok(merged);
        };
        let kept = typed.with_named_fields(&typed.fields(&pruned));
        let all = typed.with_named_fields(&typed.fields(&converted));
        let unwanted = all.difference(&kept).intersection(&last);
        let pruned = typed.remove(converted, &unwanted);
        match convert(self.versions, &pruned, self.api_version)? {
            Some((object, _)) => Ok(object.into_owned()),
            None => Ok(pruned),
        }
    }

    /// Brings back what was pruned and is owned in a version. Returns both objects in that version.
    fn restore(
        &self,
        merged: &Value,
        pruned: &Value,
        api_version: &str,
        owned: &FieldSet,
    ) -> Result<Option<(Value, Value)>, Error> {
        let failed = |which: &'static str| {
            let at = format!("failed to convert {which} object at version {api_version}");
            move |error| Error::Apply(format!("failed add back owned items: {at}: {error}"))
        };
        let Some((merged, typed)) = convert(self.versions, merged, api_version).map_err(failed("merged"))?
        else {
            return Ok(None);
        };
        let Some((pruned, _)) = convert(self.versions, pruned, api_version).map_err(failed("pruned"))? else {
            return Ok(None);
        };
        let kept = typed.with_named_fields(&typed.fields(&pruned)).union(typed.with_named_fields(owned));
        let unwanted = typed.with_named_fields(&typed.fields(&merged)).difference(&kept);
        let merged = merged.into_owned();
        let pruned = typed.remove(merged.clone(), &unwanted);
        Ok(Some((merged, pruned)))
    }
}
