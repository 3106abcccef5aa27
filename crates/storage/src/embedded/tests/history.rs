use std::collections::BTreeMap;

use crate::tree::Tree;
use crate::{Commit, Error, Revision};

/// What a storage has said so far, against what it holds later.
#[derive(Default)]
pub(super) struct History {
    /// The numbers of the commits that are known to have happened, in the order of revisions.
    happened: Vec<u64>,
    /// Those of which nobody knows.
    unknown: Vec<u64>,
    next: u64,
}

/// A commit of three parts that tells its number.
pub(super) fn commit(number: u64) -> Commit {
    let commit = Commit::new()
        .put(format!("/left/{number}"), number.to_string())
        .put("/last", "x".repeat(number as usize % 150) + &number.to_string());
    match number % 3 {
        0 => commit.delete(format!("/left/{}", number as i64 - 4)),
        _ => commit.put(format!("/right/{}", number % 7), number.to_string()),
    }
}

type Contents = BTreeMap<String, (Vec<u8>, Revision, Revision)>;

impl History {
    pub(super) fn take(&mut self, count: u64) -> Vec<u64> {
        let numbers = (self.next..self.next + count).collect();
        self.next += count;
        numbers
    }

    pub(super) fn revision(&self) -> Revision {
        self.happened.len() as u64
    }

    pub(super) fn answered<T>(&mut self, number: u64, answer: &Result<T, Error>) {
        match answer {
            Ok(_) => {
                assert!(self.unknown.is_empty(), "{number} was accepted after a commit of unknown fate");
                self.happened.push(number);
            }
            Err(Error::Unknown { .. } | Error::Closed) => self.unknown.push(number),
            Err(Error::Full { .. } | Error::Halted { .. }) => {}
            Err(error) => panic!("{number}: {error}"),
        }
    }

    /// The machine stopped while these were under way: nothing that was said about them counts.
    pub(super) fn interrupted(&mut self, numbers: &[u64]) {
        self.unknown.extend(numbers);
    }

    /// At most this much of what happened may be lost.
    pub(super) fn may_lose_back_to(&mut self, revision: Revision) {
        let lost = self.happened.split_off(revision as usize);
        self.unknown.splice(..0, lost);
    }

    /// The storage holds what happened, and of the unknown a beginning, each as a whole. These have happened then.
    pub(super) fn check(&mut self, tree: &Tree) {
        let known = self.revision();
        assert!(tree.revision() >= known, "revision {} of {known} was lost", tree.revision() + 1);
        let unclear = (tree.revision() - known) as usize;
        assert!(unclear <= self.unknown.len(), "revisions that nobody committed");
        let contents = contents(tree);
        for revision in known + 1..=tree.revision() {
            // Every commit leaves its number under a key of its own, unless a later one deletes that.
            let number = self.unknown[(revision - known - 1) as usize];
            if let Some(found) = contents.get(&format!("/left/{number}")) {
                assert_eq!(found.1, revision, "the order of commits changed");
            }
            self.happened.push(number);
        }
        self.unknown.clear();
        assert_eq!(contents, self.expected(), "the state is not what the commits make");
    }

    /// What the storage holds may be any beginning of what happened, but no shorter than this.
    pub(super) fn check_beginning(&self, tree: &Tree, at_least: Revision) {
        assert!(tree.revision() >= at_least, "only {} of {at_least} revisions", tree.revision());
        assert!(tree.revision() <= self.revision());
        let beginning =
            Self { happened: self.happened[..tree.revision() as usize].to_vec(), ..Self::default() };
        assert_eq!(contents(tree), beginning.expected());
    }

    fn expected(&self) -> Contents {
        let mut tree = Tree::default();
        for number in &self.happened {
            tree.apply(&commit(*number)).unwrap();
        }
        contents(&tree)
    }
}

fn contents(tree: &Tree) -> Contents {
    let entries = tree.iter();
    entries
        .map(|entry| (entry.key.to_string(), (entry.value.to_vec(), entry.created, entry.modified)))
        .collect()
}
