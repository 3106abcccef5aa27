//! The source of files holds the contract of a source.

use std::time::Duration;

use watchkeeper_core::Source;
use watchkeeper_core::contract::{World, check};
use watchkeeper_sources::files::Files;

use crate::place::{Place, route};

struct Directory {
    place: Place,
    files: Files,
    /// Whether every object is in a file of its own, or several are in one.
    apart: bool,
}

impl Directory {
    fn change(&self, name: &str, value: Option<u64>) {
        let file = if self.apart { format!("{name}.yaml") } else { "all.yaml".to_owned() };
        let before = std::fs::read_to_string(self.place.path(&file)).unwrap_or_default();
        let others =
            before.split_inclusive("---\n").filter(|part| !part.contains(&format!("name: {name}\n")));
        let text: String =
            others.map(str::to_owned).chain(value.map(|value| route(name, value) + "---\n")).collect();
        if text.is_empty() && self.apart {
            self.place.remove(&file);
        } else {
            self.place.replace(&file, &text);
        }
    }
}

impl Directory {
    /// Writes a document that cannot be read, in the place of one that could.
    fn corrupt(&self, name: &str) {
        let file = if self.apart { format!("{name}.yaml") } else { "all.yaml".to_owned() };
        let text = std::fs::read_to_string(self.place.path(&file)).unwrap();
        let broken =
            text.split_inclusive("---\n").map(|part| match part.contains(&format!("name: {name}\n")) {
                true => part.replace("value: ", "value: ["),
                false => part.to_owned(),
            });
        self.place.replace(&file, &broken.collect::<String>());
    }
}

impl World for Directory {
    fn source(&self) -> impl Source {
        self.files.clone()
    }

    async fn put(&self, name: &str, value: u64) {
        self.change(name, Some(value));
    }

    async fn delete(&self, name: &str) {
        self.change(name, None);
    }

    async fn expire(&self) -> bool {
        false
    }

    async fn corrupt(&self, name: &str) -> bool {
        Self::corrupt(self, name);
        true
    }

    fn has_statuses(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn the_source_of_files_holds_the_contract_whether_it_is_told_of_changes_or_polls() {
    for (apart, poll) in [(true, false), (false, false), (true, true)] {
        let place = Place::new();
        let files = Files::directory(place.root()).kind("example.com/v1", "Route");
        let files = files.status_directory(place.path(".status"));
        let files = if poll { files.poll(Duration::from_millis(20)) } else { files };
        let kept = check(&Directory { place, files, apart }).await.unwrap();
        assert_eq!(kept.len(), 6, "{kept:?}");
    }
}
