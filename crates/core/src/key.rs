use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The name of an object within its kind: an optional namespace and a name.
///
/// A key says *where* an object is, not *which* one it is: after a delete and a re-create the key is the same and
/// the [`Uid`](crate::Uid) differs. Cloning is a reference count; the text is stored once, as `namespace/name`.
///
/// ```
/// use watchkeeper_core::Key;
/// let key = Key::new(Some("shop"), "cart");
/// assert_eq!(key.namespace(), Some("shop"));
/// assert_eq!(key.name(), "cart");
/// assert_eq!(key.to_string(), "shop/cart");
/// assert_ne!(Key::new(None, "a/b"), Key::new(Some("a"), "b"));
/// ```
#[derive(Clone)]
pub struct Key {
    text: Arc<str>,
    /// Length of the namespace; `NO_NAMESPACE` if there is none. Kept apart from the text because a name may
    /// contain a slash (a file's path does).
    split: u32,
}

const NO_NAMESPACE: u32 = u32::MAX;

impl Key {
    /// A key from its parts. An empty namespace is no namespace.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace {
            Some(namespace) if !namespace.is_empty() => {
                Self { text: join(namespace, name), split: namespace.len() as u32 }
            }
            _ => Self { text: name.into(), split: NO_NAMESPACE },
        }
    }

    /// The namespace, if the object has one.
    pub fn namespace(&self) -> Option<&str> {
        (self.split != NO_NAMESPACE).then(|| &self.text[..self.split as usize])
    }

    /// The name within the namespace.
    pub fn name(&self) -> &str {
        if self.split == NO_NAMESPACE { &self.text } else { &self.text[self.split as usize + 1..] }
    }

    /// Heap bytes behind this key, shared by all its clones.
    pub fn heap_bytes(&self) -> usize {
        self.text.len() + 2 * size_of::<usize>()
    }
}

/// `namespace/name` in one allocation, as long as it is no longer than names are.
fn join(namespace: &str, name: &str) -> Arc<str> {
    let mut buffer = [0; 320];
    let length = namespace.len() + 1 + name.len();
    if let Some(text) = buffer.get_mut(..length) {
        let (left, right) = text.split_at_mut(namespace.len());
        left.copy_from_slice(namespace.as_bytes());
        right[0] = b'/';
        right[1..].copy_from_slice(name.as_bytes());
        if let Ok(text) = std::str::from_utf8(text) {
            return text.into();
        }
    }
    format!("{namespace}/{name}").into()
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.split == other.split && (Arc::ptr_eq(&self.text, &other.text) || self.text == other.text)
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// By namespace, then by name; objects without a namespace first.
impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.namespace().cmp(&other.namespace()).then_with(|| self.name().cmp(other.name()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.text)
    }
}
