use watchkeeper_core::Source;
use watchkeeper_core::contract::{World, check};

use crate::hosts::Hosts;

/// A hosts file in the hands of the suite. `put` and `delete` do to it what your users do.
struct File(tempfile::TempDir);

impl File {
    fn change(&self, name: &str, value: Option<u64>) {
        let path = self.0.path().join("hosts");
        let before = std::fs::read_to_string(&path).unwrap();
        let others = before.lines().filter(|line| !line.ends_with(&format!(" {name}")));
        let new = value.map(|value| format!("10.0.0.{value} {name}"));
        let lines: Vec<String> = others.map(str::to_owned).chain(new).collect();
        std::fs::write(path, lines.join("\n")).unwrap();
    }
}

impl World for File {
    fn source(&self) -> impl Source {
        Hosts::new(self.0.path().join("hosts"))
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
}

#[tokio::test]
async fn a_hosts_file_holds_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("hosts"), "").unwrap();
    check(&File(directory)).await.unwrap();
}
