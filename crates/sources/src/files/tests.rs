//! What cannot be brought about from outside.

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use watchkeeper_core::{Event, Feed, Freshness, Source as _, Start};

use super::hints::{Inbox, Refused, Watcher};
use super::{Files, Watching};

/// Watches some directories, and then no more.
struct Few(usize);

impl Watcher for Few {
    fn watch(&mut self, _: &Path) -> Result<(), Refused> {
        self.0 = self.0.checked_sub(1).ok_or(Refused::Impossible("no more watches".into()))?;
        Ok(())
    }

    fn unwatch(&mut self, _: &Path) {}
}

async fn until(feed: &mut Feed, done: impl Fn(&Event) -> bool) {
    loop {
        let event = feed.next().await.unwrap().unwrap();
        if done(&event) {
            return;
        }
    }
}

fn is_put(name: &str) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::Put { document, .. } if document.header.key.name() == name)
}

#[tokio::test]
async fn without_watches_it_polls_and_says_so() {
    let place = tempfile::tempdir().unwrap();
    for directory in ["a", "b", "c"] {
        std::fs::create_dir(place.path().join(directory)).unwrap();
    }
    let files = Files::directory(place.path()).by_path();
    let files = files.with(|settings| settings.connect = |_| Ok(Box::new(Few(3))));
    let mut feed = files.open(Start::Snapshot(Freshness::Any));
    until(&mut feed, |event| matches!(event, Event::Complete(_))).await;
    assert_eq!(files.status().watching, Watching::Polling { reason: "no more watches".into() });
    std::fs::write(place.path().join("c/x.yaml"), "a: 1").unwrap();
    until(&mut feed, is_put("c/x.yaml")).await;

    let files = files.with(|settings| settings.connect = |_| Err("too many open files".into()));
    let mut feed = files.open(Start::Snapshot(Freshness::Any));
    until(&mut feed, |event| matches!(event, Event::Complete(_))).await;
    assert_eq!(files.status().watching, Watching::Polling { reason: "too many open files".into() });
}

static INBOX: Mutex<Option<Arc<Inbox>>> = Mutex::new(None);

#[tokio::test]
async fn hints_that_were_lost_make_it_look_at_everything() {
    let place = tempfile::tempdir().unwrap();
    let files = Files::directory(place.path()).by_path().with(|settings| {
        settings.connect = |inbox| {
            *INBOX.lock().unwrap() = Some(inbox);
            Ok(Box::new(Few(usize::MAX)))
        };
    });
    let mut feed = files.open(Start::Snapshot(Freshness::Any));
    until(&mut feed, |event| matches!(event, Event::Complete(_))).await;
    assert_eq!(files.status().watching, Watching::Events);
    std::fs::write(place.path().join("x.yaml"), "a: 1").unwrap();
    INBOX.lock().unwrap().as_ref().unwrap().lost();
    until(&mut feed, is_put("x.yaml")).await;
    assert_eq!(files.status().drift, 0);
}

#[tokio::test]
async fn a_change_that_nobody_tells_of_is_found_and_counted() {
    let place = tempfile::tempdir().unwrap();
    let files = Files::directory(place.path()).by_path().rescan(std::time::Duration::from_millis(50));
    let files = files.with(|settings| settings.connect = |_| Ok(Box::new(Few(usize::MAX))));
    let mut feed = files.open(Start::Snapshot(Freshness::Any));
    until(&mut feed, |event| matches!(event, Event::Complete(_))).await;
    std::fs::write(place.path().join("x.yaml"), "a: 1").unwrap();
    until(&mut feed, is_put("x.yaml")).await;
    assert_eq!(files.status().drift, 1);
}

#[tokio::test]
async fn a_feed_that_is_dropped_leaves_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let files = Files::directory(place.path()).by_path();
    let mut feed = files.open(Start::Snapshot(Freshness::Any));
    until(&mut feed, |event| matches!(event, Event::Complete(_))).await;
    assert_eq!(Arc::strong_count(&files.settings), 2);
    drop(feed);
    assert_eq!(Arc::strong_count(&files.settings), 1);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_file_and_nobody_waits_for_its_writer() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe.yaml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(matches!(super::content::read(&pipe, 100), super::content::Content::NoFile));
    assert!(matches!(super::content::read(directory.path(), 100), super::content::Content::NoFile));
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_says_it_is_empty_is_read_to_its_end() {
    let read = super::content::read(std::path::Path::new("/proc/self/status"), 1 << 20);
    let super::content::Content::Bytes(read) = read else { panic!("{read:?}") };
    assert!(read.bytes.starts_with(b"Name:"));
    let read = super::content::read(std::path::Path::new("/proc/self/status"), 10);
    assert!(matches!(read, super::content::Content::TooLarge(11)), "{read:?}");
}

#[test]
fn a_file_that_was_read_ahead_half_written_is_read_again_however_late_its_turn_comes() {
    use super::tracker::Tracker;
    use std::fs;

    let route = |name: &str| format!("kind: R\napiVersion: v1\nmetadata: {{name: {name}}}\n");
    let place = tempfile::tempdir().unwrap();
    for number in 10..60 {
        fs::write(place.path().join(format!("{number}.yaml")), route(&format!("n{number}"))).unwrap();
    }
    let path = place.path().join("55.yaml");
    let whole = format!("{}---\n{}", route("first"), route("second"));
    fs::write(&path, &whole).unwrap();
    let files = Files::directory(place.path()).kind("v1", "R");
    let snapshot = |between: &dyn Fn(&mut Tracker)| {
        let mut tracker = Tracker::new(Arc::clone(&files.settings), Arc::default());
        tracker.begin().unwrap();
        between(&mut tracker);
        let mut names = Vec::new();
        loop {
            let (events, last) = tracker.batch().unwrap();
            names.extend(events.iter().filter_map(|event| match event {
                Event::Item(document) => Some(document.header.key.name().to_owned()),
                _ => None,
            }));
            if last {
                return names;
            }
        }
    };
    assert_eq!(snapshot(&|_| {}).len(), 51);
    let names = snapshot(&|tracker| {
        fs::write(&path, route("first")).unwrap();
        let half_written = std::time::SystemTime::now();
        tracker.ahead.read(&files.settings, &tracker.pending);
        assert!(std::thread::available_parallelism().unwrap().get() == 1 || !tracker.ahead.is_empty());
        fs::write(&path, &whole).unwrap();
        // By now the half that was read ahead would be old enough to be believed.
        while half_written.elapsed().unwrap() < 2 * super::agenda::SETTLE {
            std::thread::yield_now();
        }
    });
    assert!(names.iter().any(|name| name == "second"), "{names:?}");
}
