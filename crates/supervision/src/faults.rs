use std::collections::HashSet;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::Supervisor;

/// What is to panic, by the word of a test.
#[derive(Default)]
pub(crate) struct Faults {
    /// The name of a task, and how many times it was told to panic.
    tasks: watch::Sender<Vec<(String, u64)>>,
    /// Tasks that panic whenever they begin.
    broken: Mutex<HashSet<String>>,
    objects: Mutex<HashSet<String>>,
}

impl Faults {
    /// Resolves, with a panic, when the task is told to.
    pub(crate) async fn strike(&self, task: &str) {
        assert!(!self.broken.lock().contains(task), "{task}: injected");
        let times = |tasks: &Vec<(String, u64)>| {
            tasks.iter().find(|(name, _)| name == task).map_or(0, |(_, times)| *times)
        };
        let mut tasks = self.tasks.subscribe();
        let known = times(&tasks.borrow());
        if tasks.wait_for(|tasks| times(tasks) > known).await.is_ok() {
            panic!("{task}: injected");
        }
    }

    pub(crate) fn meet(&self, object: &str) {
        assert!(!self.objects.lock().contains(object), "{object}: injected");
    }
}

/// For tests, with the feature `faults`.
impl Supervisor {
    /// Has the running task of this name panic where it waits.
    pub fn inject(&self, task: &str) {
        self.faults().tasks.send_modify(|tasks| match tasks.iter_mut().find(|(name, _)| name == task) {
            Some((_, times)) => *times = times.wrapping_add(1),
            None => tasks.push((task.to_owned(), 1)),
        });
    }

    /// Has the task of this name panic, now and whenever it begins again.
    pub fn break_down(&self, task: &str) {
        self.faults().broken.lock().insert(task.to_owned());
        self.inject(task);
    }

    /// Undoes [`break_down`](Self::break_down).
    pub fn mend(&self, task: &str) {
        self.faults().broken.lock().remove(task);
    }

    /// Has whoever works on an object panic.
    pub fn poison(&self, object: &str) {
        self.faults().objects.lock().insert(object.to_owned());
    }
}
