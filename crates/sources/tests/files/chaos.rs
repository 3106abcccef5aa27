//! Three writers, with the habits of editors and programs, against a model of what they wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use serde_json::Value;
use watchkeeper_core::ChangeKind;
use watchkeeper_informer::Informer;
use watchkeeper_sources::files::Files;

use crate::place::{Place, route};
use crate::tap::LONG;

/// A small generator of random numbers, so that a run can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What a writer has written: file, then object and value.
#[derive(Default)]
struct Written {
    files: BTreeMap<String, BTreeMap<String, u64>>,
    /// Files that are broken at the moment.
    broken: BTreeSet<String>,
    /// Objects that were deleted at some time.
    deleted: BTreeSet<String>,
}

fn text(objects: &BTreeMap<String, u64>) -> String {
    objects.iter().map(|(name, value)| route(name, *value)).collect::<Vec<_>>().join("---\n")
}

fn write(place: &Place, writer: u64, steps: u64, seed: u64) -> Written {
    let mut dice = Dice(seed + writer);
    let mut written = Written::default();
    for step in 0..steps {
        let file = format!("w{writer}-{}.yaml", dice.below(12));
        let exists = written.files.contains_key(&file);
        let name = format!("{}-{}", file.trim_end_matches(".yaml"), dice.below(3));
        match dice.below(12) {
            0 if exists => {
                place.remove(&file);
                written.deleted.extend(written.files.remove(&file).unwrap().into_keys());
                written.broken.remove(&file);
                continue;
            }
            // To another name and back, which is nobody's business.
            1 if exists => {
                let aside = format!("moved-{file}");
                fs::rename(place.path(&file), place.path(&aside)).unwrap();
                fs::rename(place.path(&aside), place.path(&file)).unwrap();
                continue;
            }
            2 if exists => {
                place.write(&file, "apiVersion: [\n");
                written.broken.insert(file);
                continue;
            }
            3 if exists && written.files[&file].contains_key(&name) => {
                written.files.get_mut(&file).unwrap().remove(&name);
                written.deleted.insert(name);
            }
            _ => drop(written.files.entry(file.clone()).or_default().insert(name, step)),
        }
        let text = text(&written.files[&file]);
        written.broken.remove(&file);
        match dice.below(3) {
            0 if exists => place.edit_alone(&file, &text),
            1 => place.replace(&file, &text),
            _ => place.write(&file, &text),
        }
    }
    for file in std::mem::take(&mut written.broken) {
        place.write(&file, &text(&written.files[&file]));
    }
    written
}

impl Place {
    /// As [`edit`](Self::edit), where others edit, too.
    fn edit_alone(&self, name: &str, text: &str) {
        let (path, backup) = (self.path(name), self.path(format!("{name}~")));
        fs::rename(&path, &backup).unwrap();
        fs::write(&path, text).unwrap();
        fs::remove_file(backup).unwrap();
    }
}

async fn run(steps: u64, seed: u64) {
    let place = Place::new();
    for number in 0..20 {
        place.write(&format!("still-{number}.yaml"), &route(&format!("still-{number}"), 1));
    }
    let files = Files::directory(place.root()).kind("example.com/v1", "Route").rescan(Duration::from_secs(3));
    let informer = Informer::<Value>::builder().start(files.clone());
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    let written = tokio::task::spawn_blocking(move || {
        let written: Vec<Written> = std::thread::scope(|scope| {
            let place = &place;
            let writers: Vec<_> =
                (0..3).map(|writer| scope.spawn(move || write(place, writer, steps / 3, seed))).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        (written, place)
    });
    let mut deleted = BTreeSet::new();
    let mut take = |change: watchkeeper_core::Change<watchkeeper_informer::Object<Value>>| {
        if change.kind() == ChangeKind::Deleted {
            deleted.insert(change.key.to_string());
        }
    };
    tokio::pin!(written);
    let (written, _place) = loop {
        tokio::select! {
            written = &mut written => break written.unwrap(),
            change = changes.next() => take(change.unwrap()),
        }
    };
    let truth: BTreeMap<String, u64> = (0..20)
        .map(|number| (format!("still-{number}"), 1))
        .chain(
            written
                .iter()
                .flat_map(|written| written.files.values().flatten())
                .map(|(name, value)| (name.clone(), *value)),
        )
        .collect();
    let shown = || -> BTreeMap<String, u64> {
        let value = |object: &Value| object["spec"]["value"].as_u64().unwrap();
        informer
            .store()
            .list()
            .iter()
            .map(|object| (object.key().to_string(), value(&object.get().unwrap())))
            .collect()
    };
    while shown() != truth {
        match tokio::time::timeout(LONG, changes.next()).await {
            Ok(change) => take(change.unwrap()),
            Err(_) => panic!("seed {seed}: the store has {:#?}, the files have {truth:#?}", shown()),
        }
    }
    while let Some(change) = changes.try_next() {
        take(change);
    }
    let allowed: BTreeSet<String> = written.into_iter().flat_map(|written| written.deleted).collect();
    let wrong: Vec<_> = deleted.difference(&allowed).collect();
    assert!(wrong.is_empty(), "seed {seed}: {wrong:?} were told to be gone and never were");
    assert_eq!(files.status().drift, 0, "seed {seed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_three_writers_do_the_store_ends_equal_to_the_files() {
    for seed in 0..3 {
        run(2_000, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a while; make soak runs it"]
async fn whatever_three_writers_do_ten_thousand_times_the_store_ends_equal_to_the_files() {
    for seed in 100..120 {
        run(10_000, seed).await;
    }
}
