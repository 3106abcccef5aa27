//! A program that does without a feature does without its crates.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The features, each with the crate that is compiled for it only.
const FEATURES: [(&str, &str); 8] = [
    ("args", "clap"),
    ("compressed", "zstd"),
    ("derive", "watchkeeper-macros"),
    ("election", "watchkeeper-election"),
    ("events", "watchkeeper-events"),
    ("log", "tracing-subscriber"),
    ("server", "watchkeeper-front"),
    ("webhooks", "watchkeeper-webhook"),
];

/// Those of the sources.
const SOURCES: [(&str, &str); 4] = [
    ("etcd", "watchkeeper-etcd"),
    ("files", "notify"),
    ("postgres", "postgres-protocol"),
    ("sqlite", "rusqlite"),
];

/// Runs a command of cargo for the facade with these features only. Returns what it printed.
fn cargo<'a>(arguments: &[&str], features: impl IntoIterator<Item = &'a str>) -> String {
    // The version of the Kubernetes types has to be chosen by somebody.
    let features: Vec<&str> = features.into_iter().chain(["latest"]).collect();
    cargo_for("watchkeeper", arguments, &features)
}

fn cargo_for(package: &str, arguments: &[&str], features: &[&str]) -> String {
    // Beside what is being built, which would hold it up.
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from);
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(arguments)
        .args(["--package", package, "--no-default-features", "--features", &features.join(",")])
        .env("CARGO_TARGET_DIR", target.join("features"))
        .current_dir(workspace())
        .output()
        .expect("cargo");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments:?} with {features:?}:\n{said}");
    String::from_utf8(output.stdout).unwrap()
}

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Has cargo list the crates that something is made of.
const TREE: [&str; 7] = ["tree", "--edges", "normal", "--prefix", "none", "--format", "{p}"];

/// The crates that a program with these features is made of.
fn crates<'a>(features: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names(&cargo(&TREE, features))
}

fn names(tree: &str) -> BTreeSet<String> {
    tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// All features but one, and but those that bring its crate along.
fn without(feature: &str) -> impl Iterator<Item = &'static str> {
    let names = FEATURES.map(|(name, _)| name).into_iter();
    names.filter(move |name| *name != feature && !(feature == "server" && *name == "webhooks"))
}

#[test]
fn a_feature_that_is_off_brings_no_crates() {
    let bare = crates([]);
    for (feature, name) in FEATURES {
        assert!(!bare.contains(name), "{name} without any feature");
        assert!(!crates(without(feature)).contains(name), "{name} without {feature}");
        assert!(crates([feature]).contains(name), "{name} with {feature}");
    }
}

#[test]
fn a_source_that_is_off_brings_no_crates() {
    let crates = |features: &[&str]| names(&cargo_for("watchkeeper-sources", &TREE, features));
    let (bare, default) = (crates(&[]), crates(&["default"]));
    for (feature, name) in SOURCES {
        let others = SOURCES.map(|(other, _)| other).into_iter().filter(|other| *other != feature);
        let others: Vec<&str> =
            others.chain(["channel", "http", "kubernetes", "mysql", "union", "webhook"]).collect();
        assert!(!bare.contains(name), "{name} without any source");
        assert!(!default.contains(name), "{name} by default");
        assert!(!crates(&others).contains(name), "{name} without {feature}");
        assert!(crates(&[feature]).contains(name), "{name} with {feature}");
    }
}

#[test]
#[ignore = "the framework is checked many times; `make soak` runs it"]
fn each_feature_can_be_left_out() {
    let check = ["check", "--quiet", "--lib"];
    cargo(&check, []);
    for (feature, _) in FEATURES {
        cargo(&check, without(feature));
        cargo(&check, [feature]);
    }
}
