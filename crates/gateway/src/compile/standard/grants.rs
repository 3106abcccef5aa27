//! Who may refer to objects of other namespaces.

use std::collections::BTreeMap;

use watchkeeper_core::Key;

use crate::kinds::standard::{GROUP, ReferenceGrantSpec};

/// All grants.
#[derive(Debug, Default)]
pub(super) struct Grants(BTreeMap<Key, ReferenceGrantSpec>);

impl Grants {
    pub(super) fn put(&mut self, key: &Key, grant: ReferenceGrantSpec) {
        self.0.insert(key.clone(), grant);
    }

    pub(super) fn remove(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// Whether objects of a kind of Gateway API in a namespace may refer to an object of a core kind in another.
    pub(super) fn allow(&self, from: (&str, &str), kind: &str, to: &Key) -> bool {
        let there = self.0.iter().filter(|(key, _)| key.namespace() == to.namespace());
        there.map(|(_, grant)| grant).any(|grant| {
            let is_from = grant.from.iter().any(|allowed| {
                (allowed.group.as_str(), allowed.kind.as_str(), allowed.namespace.as_str())
                    == (GROUP, from.0, from.1)
            });
            let is_to = grant.to.iter().any(|allowed| {
                allowed.group.is_empty()
                    && allowed.kind == kind
                    && allowed.name.as_deref().is_none_or(|name| name == to.name())
            });
            is_from && is_to
        })
    }
}
