use std::fmt;
use std::sync::Arc;

/// The path of a field, printed as Kubernetes prints it: `spec.containers[0].name`, `spec.labels[app]`.
///
/// A name follows a dot, an index or a map key stands in brackets; nothing is quoted or escaped, so two different
/// places can print alike (`a.b` as one name or as two). The path of the whole object prints as `<nil>`, which is
/// what clients of kube-apiserver see there.
///
/// ```
/// use watchkeeper_wire::field::Path;
/// let path = Path::root().child("spec").child("ports").index(2).child("name");
/// assert_eq!(path.to_string(), "spec.ports[2].name");
/// assert_eq!(Path::root().child("labels").key("app").to_string(), "labels[app]");
/// assert_eq!(Path::root().to_string(), "<nil>");
/// ```
///
/// A path shares its beginning with the path it was made from, so going down a tree costs one small step each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    last: Option<Arc<Step>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Step {
    before: Path,
    place: Place,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Child(Box<str>),
    Index(usize),
    Key(Box<str>),
}

impl Path {
    /// The whole object.
    pub fn root() -> Self {
        Self::default()
    }

    /// The field `name` of what this path leads to.
    pub fn child(&self, name: &str) -> Self {
        self.step(Place::Child(name.into()))
    }

    /// The element of an array.
    pub fn index(&self, index: usize) -> Self {
        self.step(Place::Index(index))
    }

    /// The entry of a map.
    pub fn key(&self, key: &str) -> Self {
        self.step(Place::Key(key.into()))
    }

    /// Whether this is the whole object.
    pub fn is_root(&self) -> bool {
        self.last.is_none()
    }

    fn step(&self, place: Place) -> Self {
        Self { last: Some(Arc::new(Step { before: self.clone(), place })) }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(step) = &self.last else {
            return Ok(());
        };
        step.before.write(f)?;
        match &step.place {
            Place::Child(name) if step.before.is_root() => f.write_str(name),
            Place::Child(name) => write!(f, ".{name}"),
            Place::Index(index) => write!(f, "[{index}]"),
            Place::Key(key) => write!(f, "[{key}]"),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() { f.write_str("<nil>") } else { self.write(f) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_dots_and_keys_stand_in_brackets() {
        let spec = Path::root().child("spec");
        assert_eq!(spec.child("map").key("a.b/c").to_string(), "spec.map[a.b/c]");
        assert_eq!(spec.child("list").index(3).child("name").to_string(), "spec.list[3].name");
        assert_eq!(Path::root().key("x").child("y").to_string(), "[x].y");
    }
}
