/// The parts of objects that are kept while objects are read, and the kind that objects must have.
///
/// What is dropped is skipped, not decoded and thrown away. The default drops `metadata.managedFields`, which no
/// controller reads and which makes up a third of a typical Pod. What identifies an object is read before it is
/// dropped, so that no projection can lose it.
///
/// ```
/// use watchkeeper_core::{Document, Projection};
/// let projection = Projection::default().drop("/spec/containers/env");
/// let json = br#"{"metadata":{"name":"a","managedFields":[{}]},"spec":{"containers":[{"env":[],"image":"i"}]}}"#;
/// let document = Document::read(json, &projection).unwrap();
/// assert_eq!(&*document.body, br#"{"metadata":{"name":"a"},"spec":{"containers":[{"image":"i"}]}}"#);
/// ```
#[derive(Clone, Debug)]
pub struct Projection {
    pub(crate) root: Node,
    pub(crate) only_metadata: bool,
    pub(crate) kind: Option<Kind>,
}

#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) api_version: Box<str>,
    pub(crate) kind: Box<str>,
    /// Whether to write it into objects that do not say it.
    pub(crate) complete: bool,
}

/// A place in an object: what is dropped here, and what is of interest below. Lists are transparent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) dropped: bool,
    children: Vec<(Box<str>, Node)>,
}

impl Node {
    pub(crate) fn child(&self, name: &[u8]) -> Option<&Self> {
        self.children.iter().find(|(child, _)| child.as_bytes() == name).map(|(_, node)| node)
    }

    fn child_mut(&mut self, name: &str) -> &mut Self {
        let at = self.children.iter().position(|(child, _)| **child == *name).unwrap_or_else(|| {
            self.children.push((name.into(), Self::default()));
            self.children.len() - 1
        });
        &mut self.children[at].1
    }
}

impl Default for Projection {
    fn default() -> Self {
        Self::everything().drop("/metadata/managedFields")
    }
}

impl Projection {
    /// Keeps all bytes.
    pub fn everything() -> Self {
        Self { root: Node::default(), only_metadata: false, kind: None }
    }

    /// Drops a field, named by a JSON pointer. Lists on the way are passed through: `/spec/containers/env` drops `env`
    /// of every container. The empty pointer and `/metadata` itself are ignored.
    #[must_use]
    pub fn drop(mut self, pointer: &str) -> Self {
        let names: Vec<String> =
            pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
        if !names.is_empty() && names != ["metadata"] {
            names.iter().fold(&mut self.root, |node, name| node.child_mut(name)).dropped = true;
        }
        self
    }

    /// Keeps nothing but `apiVersion`, `kind` and `metadata`.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.only_metadata = true;
        self
    }

    /// Refuses objects whose `apiVersion` or `kind` is another one. Objects without them pass.
    #[must_use]
    pub fn expect_kind(mut self, api_version: &str, kind: &str) -> Self {
        self.kind = Some(Kind { api_version: api_version.into(), kind: kind.into(), complete: false });
        self
    }

    /// As [`expect_kind`](Self::expect_kind), and writes the kind into objects that do not say it: items of a list of
    /// built-in Kubernetes kinds do not.
    #[must_use]
    pub fn complete_kind(self, api_version: &str, kind: &str) -> Self {
        let mut projection = self.expect_kind(api_version, kind);
        if let Some(expected) = &mut projection.kind {
            expected.complete = true;
        }
        projection
    }
}
