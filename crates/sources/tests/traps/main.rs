//! The tables of traps and tests, in the book and at the heads of the suites, name tests that exist.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The texts of all files of Rust below a directory.
fn rust(directory: &Path, texts: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust(&path, texts);
        } else if path.extension().is_some_and(|end| end == "rs") {
            texts.push(fs::read_to_string(path).unwrap());
        }
    }
}

/// The names of all tests in a file: functions under an attribute that says so.
fn tests(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some((_, rest)) = line.split_once("fn ")
            && std::mem::take(&mut is_test)
        {
            names.extend(rest.split('(').next().map(str::to_owned));
        }
    }
    names
}

/// Of each row of a table with a column of tests, the names in its last cell.
fn named(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().map(|line| line.trim_start_matches("//!").trim());
    let rows = lines.filter(|line| line.starts_with('|') && !line.starts_with("|---"));
    let cells = rows.filter_map(|row| row.trim_matches('|').rsplit('|').next().map(str::trim));
    let cells = cells.filter(|cell| !["test", "the random test"].contains(cell));
    // What stands between backticks: every second part.
    let name = |part: &str| part.rsplit("::").next().unwrap_or_default().to_owned();
    cells.map(|cell| cell.split('`').skip(1).step_by(2).map(name).collect()).collect()
}

#[test]
fn every_trap_has_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    for directory in ["src", "tests", "../informer/src", "../informer/tests"] {
        rust(&root.join(directory), &mut texts);
    }
    let known: BTreeSet<String> = texts.iter().flat_map(|text| tests(text)).collect();
    let chapter = fs::read_to_string(root.join("../../docs/book/sources.md")).unwrap();
    let mut tables = vec![("docs/book/sources.md".to_owned(), chapter)];
    for suite in ["etcd", "files", "mysql", "postgres"] {
        let path = format!("tests/{suite}/main.rs");
        let text = fs::read_to_string(root.join(&path)).unwrap();
        tables.push((path, text));
    }
    let mut seen = 0;
    for (place, text) in tables {
        let rows = named(&text);
        assert!(!rows.is_empty(), "{place} has no table");
        for names in rows {
            assert!(!names.is_empty(), "{place}: a row names no test");
            for name in names {
                // Whole modules are named, too.
                let is_module = ["chaos", "tests"].contains(&&*name);
                assert!(is_module || known.contains(&name), "{place}: there is no test {name}");
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen} tests are named");
}

#[test]
fn what_is_not_there_is_noticed() {
    assert_eq!(named("| trap | test |\n|---|---|\n| `a` | `b`, `x::c` |"), [["b", "c"]]);
    assert_eq!(named("//! | a | none |"), [[""; 0]]);
    let text = "#[test]\nfn a() {}\nfn b() {}\n#[tokio::test(x)]\n#[ignore]\nasync fn c() {}";
    assert_eq!(tests(text).into_iter().collect::<Vec<_>>(), ["a", "c"]);
}
