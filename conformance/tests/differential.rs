//! The requests in `differential/` get the answers that the real kube-apiserver gave.
//!
//! The answers are in `differential/recorded/`. `WATCHKEEPER_CONFORMANCE_RECORD=1`, together with the kubeconfig of a
//! real server, records them anew. `differential/known.txt` lists the answers that are known to differ, each with its
//! reason; one that agrees after all must be taken off the list.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Namespace;
use kube_client::Api;
use watchkeeper_conformance::{Exchanges, Recording, Server, choice, differences};

struct Sum {
    asked: usize,
    unexpected: Vec<String>,
    report: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_real_server() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("differential");
    let server = Server::start(&scratch).unwrap();
    let (known, anonymous) = server.clients().await.unwrap();
    let mut tasks = Vec::new();
    for path in files() {
        let exchanges = Exchanges::parse(&fs::read_to_string(&path).unwrap());
        if let Some(need) = exchanges.needs.iter().find(|need| !server.has(need)) {
            println!("{}: left out, the server has no {need}", path.display());
            continue;
        }
        let (known, anonymous) = (known.clone(), anonymous.clone());
        tasks.push(tokio::spawn(async move {
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let namespace = format!("{stem}-{:06x}", std::process::id());
            let object =
                serde_json::from_value(serde_json::json!({"metadata": {"name": namespace}})).unwrap();
            Api::<Namespace>::all(known.clone()).create(&Default::default(), &object).await.unwrap();
            (stem, Recording::of(&exchanges, &namespace, &known, &anonymous).await)
        }));
    }
    let tolerated = tolerated();
    let mut sum = Sum { asked: 0, unexpected: Vec::new(), report: String::new() };
    for task in tasks {
        let (stem, recording) = task.await.unwrap();
        let file = folder().join("recorded").join(format!("{stem}.json"));
        if choice("RECORD").is_some() {
            fs::write(&file, serde_json::to_string_pretty(&recording.to_json()).unwrap() + "\n").unwrap();
        }
        let recorded = Recording::from_json(&serde_json::from_slice(&fs::read(&file).unwrap()).unwrap());
        sum.compare(&stem, &recorded, &recording, &tolerated);
    }
    fs::create_dir_all(&scratch).unwrap();
    fs::write(scratch.join("differences.md"), &sum.report).unwrap();
    print!("{}", sum.report);
    println!("{} requests, {} answers not as expected", sum.asked, sum.unexpected.len());
    assert!(sum.unexpected.is_empty(), "{:#?}", sum.unexpected);
    assert!(sum.asked > 0, "nothing was tested");
}

impl Sum {
    fn compare(
        &mut self,
        stem: &str,
        recorded: &Recording,
        got: &Recording,
        tolerated: &BTreeMap<String, String>,
    ) {
        assert_eq!(recorded.answers.len(), got.answers.len(), "{stem}: recorded with other requests");
        for (expected, got) in recorded.answers.iter().zip(&got.answers) {
            assert_eq!(expected.title, got.title, "{stem}: recorded with other requests");
            self.asked += 1;
            let name = format!("{stem}: {}", got.title);
            let found = differences(&expected.answer, &got.answer);
            match (found.is_empty(), tolerated.contains_key(&name)) {
                (true, false) => continue,
                (true, true) => self.unexpected.push(format!("{name} (agrees, take it off the list)")),
                (false, true) => {}
                (false, false) => self.unexpected.push(name.clone()),
            }
            self.report.push_str(&format!("## {name}\n`{}`\n", got.request));
            for line in found {
                self.report.push_str(&format!("- {line}\n"));
            }
            self.report.push('\n');
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("differential")
}

fn files() -> Vec<PathBuf> {
    let only = choice("ONLY");
    let mut files: Vec<PathBuf> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "http"))
        .filter(|path| only.as_ref().is_none_or(|only| path.file_stem().unwrap().to_str() == Some(only)))
        .collect();
    files.sort();
    files
}

/// `file: title` of the answers that are known to differ, with the reason.
fn tolerated() -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder().join("known.txt")).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(" | "))
        .map(|(name, why)| (name.trim().to_owned(), why.to_owned()))
        .collect()
}
