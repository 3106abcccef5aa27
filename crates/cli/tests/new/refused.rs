use std::fs;

use crate::{checkout, watchkeeper};

#[test]
fn what_cannot_be_is_one_line_with_code_2_and_writes_nothing() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("there")).unwrap();
    let here = checkout();
    let cases: &[(&[&str], &str)] = &[
        (&["Shop"], "lowercase letters"),
        (&["web_shop"], "lowercase letters"),
        (&["match"], "try match-operator"),
        (&["there"], "exists already"),
        (&["no/such/folder/shop"], "no/such/folder"),
        (&[".."], "does not end in a name"),
        (&["shop", "--kind", "shop"], "beginning with a capital"),
        (&["shop", "--kind", "Context"], "the framework has a type of that name"),
        (&["shop", "--group", "example"], "a DNS name with a dot"),
        (&["shop", "--group", "apps.k8s.io"], "belongs to Kubernetes"),
        (&["shop", "--plural", "Shops"], "cannot be a plural"),
        (&["shop", "--with", "sidecar"], "invalid value 'sidecar'"),
        (&["shop", "--path", "."], "no checkout of Watchkeeper is there"),
    ];
    for (arguments, expected) in cases {
        let mut all = vec!["new"];
        all.extend(*arguments);
        if !arguments.contains(&"--path") {
            all.extend(["--path", &here]);
        }
        let output = watchkeeper(place.path(), &all);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(expected) && told.trim_end().lines().count() == 1, "{arguments:?}: {told}");
        assert!(output.stdout.is_empty());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "{arguments:?} left something");
    }
}

#[test]
fn a_dry_run_lists_the_files_and_writes_none() {
    let place = tempfile::tempdir().unwrap();
    let output = watchkeeper(place.path(), &["new", "shop", "--dry-run", "--path", &checkout()]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    let files = told.lines().filter(|line| line.starts_with("  shop/")).count();
    assert_eq!(files, 12, "{told}");
    // The CI of a project that depends on a checkout does not find it by itself.
    assert!(
        told.contains("\nnote: Cargo.toml and .github/workflows/ci.yaml take the framework from ../"),
        "{told}"
    );
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}
