use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::Simulated;
use super::history::commit;
use crate::embedded::Embedded;
use crate::embedded::counters::Counters;
use crate::embedded::simulated::Fault;
use crate::{Error, Options, Storage};

/// The name of the storage's own thread.
const THREAD: &str = "storage-writer";

fn several_threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).thread_name("worker").build().unwrap()
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

fn on(disk: &Simulated) -> Arc<Embedded> {
    Arc::new(Embedded::on_disk(Arc::new(disk.clone()), None, Options::default()).unwrap())
}

/// Makes commits one after the other until one was written by a task: a machine that is busy may make the disk look slow for
/// a while.
fn until_written_by_a_task(runtime: &Runtime, storage: &Arc<Embedded>, disk: &Simulated) {
    let mut number = storage.stats().revision;
    while disk.synced_by().as_deref() != Some("worker") {
        assert!(number < 50_000, "written by {:?}", disk.synced_by());
        one_by_one(runtime, storage, number..number + 1);
        number += 1;
    }
}

/// Makes commits one after the other, in a task.
fn one_by_one(runtime: &Runtime, storage: &Arc<Embedded>, numbers: std::ops::Range<u64>) {
    let storage = Arc::clone(storage);
    let task = runtime.spawn(async move {
        for number in numbers {
            storage.commit(commit(number)).await.unwrap();
        }
    });
    runtime.block_on(task).unwrap();
}

#[test]
fn a_lone_commit_is_written_by_its_own_task_once_the_disk_is_known_to_be_quick() {
    let (disk, runtime) = (Simulated::new(1), several_threads());
    let storage = on(&disk);
    one_by_one(&runtime, &storage, 0..1);
    assert_eq!(disk.synced_by().as_deref(), Some(THREAD));
    until_written_by_a_task(&runtime, &storage, &disk);
    let stats = storage.stats();
    assert_eq!(stats.commits, stats.revision);
}

#[test]
fn a_runtime_of_one_thread_is_never_held_up() {
    let (disk, runtime) = (Simulated::new(1), one_thread());
    one_by_one(&runtime, &on(&disk), 0..100);
    assert_eq!(disk.synced_by().as_deref(), Some(THREAD));
}

#[test]
fn a_disk_that_becomes_slow_is_waited_for_in_the_thread_until_it_is_quick_again() {
    let (disk, runtime) = (Simulated::new(1), several_threads());
    let storage = on(&disk);
    until_written_by_a_task(&runtime, &storage, &disk);
    disk.slow_down(Duration::from_millis(5));
    one_by_one(&runtime, &storage, 60_000..60_010);
    assert_eq!(disk.synced_by().as_deref(), Some(THREAD));
    disk.slow_down(Duration::ZERO);
    until_written_by_a_task(&runtime, &storage, &disk);
}

#[test]
fn commits_that_meet_share_syncs_also_where_they_could_be_made_alone() {
    let (disk, runtime) = (Simulated::new(1), several_threads());
    let storage = on(&disk);
    one_by_one(&runtime, &storage, 0..50);
    let before = storage.stats();
    disk.slow_down(Duration::from_micros(200));
    let tasks: Vec<_> = (0..32)
        .map(|task| {
            let storage = Arc::clone(&storage);
            runtime.spawn(async move {
                for number in 0..20 {
                    storage.commit(commit(100 + task * 20 + number)).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    let after = storage.stats();
    let (commits, syncs) = (after.commits - before.commits, after.syncs - before.syncs);
    assert_eq!(commits, 32 * 20);
    assert!(syncs < commits / 4, "{syncs} syncs for {commits} commits");
}

#[test]
fn after_a_mistake_in_the_middle_of_a_write_nothing_more_is_written() {
    let (disk, runtime) = (Simulated::new(1), several_threads());
    let storage = on(&disk);
    until_written_by_a_task(&runtime, &storage, &disk);
    let revision = storage.stats().revision;
    disk.arm(0, Fault::Panic);
    let again = Arc::clone(&storage);
    let task = runtime.spawn(async move { again.commit(commit(60_000)).await });
    let answer = runtime.block_on(task);
    assert!(matches!(answer, Ok(Err(Error::Unknown { .. }))), "{answer:?}");
    assert_eq!(storage.stats().halted.as_deref(), Some("the writer panicked"));
    let answer = runtime.block_on(storage.commit(commit(60_001)));
    assert!(matches!(answer, Err(Error::Halted { .. })), "{answer:?}");
    let found = runtime.block_on(storage.get("/nothing", None)).unwrap();
    assert_eq!(found.revision, revision, "what was there can still be read");
}

#[test]
fn a_panic_of_the_writing_thread_is_told_to_whoever_waits_and_halts_the_storage() {
    let (disk, runtime) = (Simulated::new(1), one_thread());
    let storage = on(&disk);
    runtime.block_on(storage.commit(commit(1))).unwrap();
    disk.arm(0, Fault::Panic);
    let answer = runtime.block_on(storage.commit(commit(2)));
    assert!(matches!(answer, Err(Error::Unknown { .. })), "{answer:?}");
    assert_eq!(storage.stats().halted.as_deref(), Some("the writer panicked"));
    let answer = runtime.block_on(storage.commit(commit(3)));
    assert!(matches!(answer, Err(Error::Halted { .. })), "{answer:?}");
}

#[test]
fn a_checkpoint_that_panics_is_counted_and_the_next_one_is_made() {
    let disk = Simulated::new(1);
    let mut writer = super::open(&disk, crate::Durability::Relaxed).unwrap();
    let mut number = 0;
    let mut commit_until = |is_so: &dyn Fn(&Counters) -> bool| {
        for _ in 0..1_000 {
            number += 1;
            super::serve(&mut writer, [commit(number)]).pop().unwrap().unwrap();
            if is_so(&writer.counters) {
                return;
            }
        }
        panic!("not within a thousand commits");
    };
    commit_until(&|counters| counters.checkpoints.load(Relaxed) == 1);
    disk.arm(0, Fault::CheckpointPanic);
    commit_until(&|counters| counters.checkpoint_failures.load(Relaxed) == 1);
    commit_until(&|counters| counters.checkpoints.load(Relaxed) == 2);
    assert_eq!(writer.counters.halted(), None);
}
