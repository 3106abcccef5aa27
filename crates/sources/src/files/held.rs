//! Which file holds which objects, both ways.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use watchkeeper_core::Key;

/// The objects of files, and the files of objects.
#[derive(Debug, Default)]
pub(super) struct Held {
    keys: HashMap<Arc<Path>, Vec<Key>>,
    /// Hardly ever more than one for each.
    paths: HashMap<Key, Vec<Arc<Path>>>,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.keys.keys().map(|path| &**path)
    }

    pub(super) fn has_objects(&self, path: &Path) -> bool {
        self.keys.get(path).is_some_and(|keys| !keys.is_empty())
    }

    /// The files that hold an object.
    pub(super) fn holders(&self, key: &Key) -> Vec<PathBuf> {
        self.paths.get(key).into_iter().flatten().map(|path| path.to_path_buf()).collect()
    }

    /// Notes what a file holds, of which nothing is known yet.
    pub(super) fn insert(&mut self, path: &Path, keys: Vec<Key>) {
        self.remove(path);
        let path: Arc<Path> = path.into();
        for key in &keys {
            let paths = self.paths.entry(key.clone()).or_insert_with(|| Vec::with_capacity(1));
            if !paths.contains(&path) {
                paths.push(Arc::clone(&path));
            }
        }
        self.keys.insert(path, keys);
    }

    /// Forgets a file, and gives what it held.
    pub(super) fn remove(&mut self, path: &Path) -> Vec<Key> {
        let keys = self.keys.remove(path).unwrap_or_default();
        self.forget(path, &keys);
        keys
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&Path) -> bool) {
        let gone: Vec<_> = self.keys.extract_if(|path, _| !keep(path)).collect();
        for (path, keys) in gone {
            self.forget(&path, &keys);
        }
    }

    fn forget(&mut self, path: &Path, keys: &[Key]) {
        for key in keys {
            if let Some(paths) = self.paths.get_mut(key) {
                paths.retain(|holder| **holder != *path);
                if paths.is_empty() {
                    self.paths.remove(key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new(None, name)
    }

    #[test]
    fn objects_know_their_files_as_long_as_the_files_have_them() {
        let mut held = Held::default();
        held.insert(Path::new("a"), vec![key("x"), key("y"), key("x")]);
        held.insert(Path::new("b"), vec![key("x")]);
        assert_eq!(held.holders(&key("x")), [Path::new("a"), Path::new("b")]);
        held.insert(Path::new("a"), vec![key("y")]);
        assert_eq!(held.holders(&key("x")), [Path::new("b")]);
        assert_eq!(held.holders(&key("y")), [Path::new("a")]);
        held.retain(|path| path == Path::new("a"));
        assert!(held.holders(&key("x")).is_empty());
        assert_eq!(held.remove(Path::new("a")), [key("y")]);
        assert!(held.is_empty() && held.paths.is_empty());
    }
}
