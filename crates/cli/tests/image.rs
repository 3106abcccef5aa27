//! `watchkeeper image`, with programs that are there already.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn image(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    command.arg("image").args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env_remove("SOURCE_DATE_EPOCH");
    command.output().unwrap()
}

/// The least that counts as a static program for a machine.
fn elf(machine: u8) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18] = machine;
    bytes[54] = 56;
    bytes
}

fn told(output: &Output) -> String {
    [&*output.stdout, &*output.stderr].map(String::from_utf8_lossy).concat()
}

/// A folder with programs for two machines.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("shop"), elf(62)).unwrap();
    fs::write(folder.path().join("shop-arm64"), elf(183)).unwrap();
    folder
}

#[test]
fn the_same_program_has_the_same_digest_wherever_it_goes() {
    let folder = folder();
    let digest = |arguments: &[&str]| {
        let output = image(folder.path(), arguments);
        assert!(output.status.success(), "{}", told(&output));
        String::from_utf8(output.stdout).unwrap().lines().last().unwrap().to_owned()
    };
    let dry = digest(&["--binary", "shop", "--dry-run"]);
    assert!(dry.starts_with("sha256:"), "{dry}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "a dry run wrote something");
    let written = [
        "--binary",
        "shop",
        "--output",
        "layout:one",
        "--output",
        "oci-archive:two.tar",
        "--output",
        "docker-archive:three.tar",
    ];
    assert_eq!(digest(&written), dry);
    for file in ["one/index.json", "two.tar", "three.tar"] {
        assert!(folder.path().join(file).is_file(), "{file}");
    }
    let index = fs::read_to_string(folder.path().join("one/index.json")).unwrap();
    assert!(index.contains(&dry), "{index}");
    let both =
        ["--binary", "linux/amd64=shop", "--binary", "linux/arm64=shop-arm64", "--name", "shop", "--dry-run"];
    assert_ne!(digest(&both), dry);
    assert_ne!(digest(&["--binary", "shop", "--label", "team=sales", "--dry-run"]), dry);
}

#[test]
fn what_cannot_be_is_one_line_with_code_2_and_writes_nothing() {
    let folder = folder();
    fs::write(folder.path().join("script"), "#!/bin/sh\n").unwrap();
    fs::create_dir(folder.path().join("there")).unwrap();
    // The programs of tests are linked dynamically.
    let dynamic = env!("CARGO_BIN_EXE_watchkeeper");
    let cases: &[(&[&str], &str)] = &[
        (&["--binary", "shop"], "say where the image is to go"),
        (&["--output", "layout:new"], "there is no crate in this folder"),
        (&["--binary", "nowhere", "--dry-run"], "nowhere"),
        (&["--binary", "script", "--dry-run"], "script: this is no program for Linux"),
        (
            &["--binary", "linux/arm64=shop", "--dry-run"],
            "the program for linux/arm64 is one for linux/amd64",
        ),
        (&["--binary", "linux=shop", "--dry-run"], "is no platform"),
        (&["--binary", dynamic, "--output", "layout:new"], "linked dynamically"),
        (&["--binary", "shop", "--output", "new"], "write layout:DIR"),
        (&["--binary", "shop", "--output", "layout:there"], "exists already"),
        (&["--binary", "shop", "--push", "shop:1"], "there is no registry in it"),
        (
            &["--binary", "shop", "--push", "r.example.com/Shop", "--output", "layout:new"],
            "lowercase letters",
        ),
        (&["--binary", "shop", "--label", "team", "--output", "layout:new"], "write KEY=VALUE"),
        (&["--binary", "shop", "--sbom", "script", "--output", "layout:new"], "no CycloneDX document"),
        (&["--binary", "shop", "--ca-certificates", "script", "--output", "layout:new"], "holds none"),
        (
            &["--binary", "shop", "--name", "../shop", "--output", "layout:new"],
            "cannot be the name of a program",
        ),
        (
            &[
                "--binary",
                "linux/amd64=shop",
                "--binary",
                "linux/arm64=shop-arm64",
                "--output",
                "docker-archive:new",
            ],
            "one platform",
        ),
    ];
    for (arguments, expected) in cases {
        let output = image(folder.path(), arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(expected) && told.trim_end().lines().count() == 1, "{arguments:?}: {told}");
        assert!(!folder.path().join("new").exists(), "{arguments:?}");
    }
}

#[test]
fn a_registry_that_is_not_there_is_named() {
    let folder = folder();
    let output = image(folder.path(), &["--binary", "shop", "--push", "127.0.0.1:1/shop:1"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(told(&output).contains("127.0.0.1:1"), "{}", told(&output));
}

/// Whether Rust can build static programs here.
fn has_static_target() -> bool {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let output =
        Command::new("rustc").args(["--print", "target-libdir", "--target", &target]).output().unwrap();
    Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()
}

/// A crate whose program has the paths of its sources in it, generated ones included.
fn write_crate(folder: &Path) {
    fs::create_dir_all(folder.join("src")).unwrap();
    let manifest = "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
    let generator = "fn main() {\n    let folder = std::env::var(\"OUT_DIR\").unwrap();\n    let text = \"fn made() -> &'static str { file!() }\";\n    \
                     std::fs::write(format!(\"{folder}/made.rs\"), text).unwrap();\n}\n";
    let program = "include!(concat!(env!(\"OUT_DIR\"), \"/made.rs\"));\nfn main() {\n    println!(\"{} {}\", made(), file!());\n}\n";
    for (name, text) in [("Cargo.toml", manifest), ("build.rs", generator), ("src/main.rs", program)] {
        fs::write(folder.join(name), text).unwrap();
    }
}

#[test]
fn the_image_does_not_depend_on_where_a_program_is_built() {
    if !has_static_target() {
        let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
        // Past what a test prints, which is shown only if it fails.
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            format!(
                "NOT RUN: whether images are the same wherever they are built: rustup target add {target}\n"
            )
            .as_bytes(),
        );
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let digests =
        [("one", "target-one"), ("another/and/deeper", "targets/another")].map(|(folder, target)| {
            let folder = place.path().join(folder);
            write_crate(&folder);
            let output = Command::new(env!("CARGO_BIN_EXE_watchkeeper"))
                .args(["image", "--output", "layout:image"])
                .current_dir(&folder)
                .env("CARGO_TARGET_DIR", place.path().join(target))
                .env_remove("RUSTFLAGS")
                .env_remove("CARGO_ENCODED_RUSTFLAGS")
                .stdin(Stdio::null())
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", told(&output));
            String::from_utf8(output.stdout).unwrap().lines().last().unwrap().to_owned()
        });
    assert!(digests[0].starts_with("sha256:") && digests[0] == digests[1], "{digests:?}");
}
