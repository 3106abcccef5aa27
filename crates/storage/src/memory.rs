use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::Engine;
use crate::tree::Tree;
use crate::{
    Answer, Commit, Committed, Error, Found, Options, Page, Range, Revision, Snapshot, Stats, Storage, Watch,
};

/// A storage that lives as long as its process. A commit is as durable as the process.
pub struct Memory {
    engine: Arc<Engine>,
    /// Held while a commit is judged, made and shown, so that revisions are shown in order. Counts commits.
    writer: Mutex<u64>,
}

impl Memory {
    /// An empty storage.
    pub fn new(options: Options) -> Self {
        Self { engine: Arc::new(Engine::new(Tree::default(), options)), writer: Mutex::new(0) }
    }

    /// A storage that begins with a snapshot, at its revision.
    pub fn of(snapshot: Snapshot, options: Options) -> Self {
        Self { engine: Arc::new(Engine::new(snapshot.into_tree(), options)), writer: Mutex::new(0) }
    }

    fn commit_now(&self, commit: &Commit) -> Result<Committed, Error> {
        commit.validate()?;
        let mut commits = self.writer.lock();
        let mut tree = self.engine.now();
        let (committed, events) = tree.apply(commit)?;
        if !events.is_empty() {
            *commits += 1;
            self.engine.publish(tree, events);
        }
        Ok(committed)
    }
}

impl Storage for Memory {
    fn get<'a>(&'a self, key: &'a str, at: Option<Revision>) -> Answer<'a, Found> {
        Box::pin(async move { self.engine.get(key, at) })
    }

    fn range(&self, range: Range) -> Answer<'_, Page> {
        Box::pin(async move { self.engine.range(&range) })
    }

    fn commit(&self, commit: Commit) -> Answer<'_, Committed> {
        Box::pin(async move { self.commit_now(&commit) })
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> Answer<'a, Watch> {
        Box::pin(async move { self.engine.watch(prefix, after) })
    }

    fn compact(&self, to: Revision) -> Answer<'_, ()> {
        Box::pin(async move { self.engine.compact(to) })
    }

    fn pack(&self) -> bool {
        self.engine.pack()
    }

    fn stats(&self) -> Stats {
        Stats { commits: *self.writer.lock(), ..self.engine.stats() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.engine.close();
    }
}
