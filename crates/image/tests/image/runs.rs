//! A program in its image: unpacked, started as the user of the image, with a root that nobody can write to.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use watchkeeper_image::{Image, Input, Platform, archive};

use crate::program::input;
use crate::{blob, json, run};

const PROGRAM: &str = r#"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    FILE *file = fopen("/written", "w");
    printf("%d %d %s %s\n", getuid(), getgid(), file ? "wrote" : "read-only", access("/bin/sh", F_OK) ? "no shell" : "shell");
    return 0;
}
"#;

#[test]
fn a_program_runs_in_its_image_as_nobody_and_without_a_writable_root() {
    let place = tempfile::tempdir().unwrap();
    let (source, program) = (place.path().join("shop.c"), place.path().join("shop"));
    fs::write(&source, PROGRAM).unwrap();
    let built = Command::new("cc").args(["-static", "-o"]).args([&program, &source]).output();
    if !built.is_ok_and(|output| output.status.success()) {
        eprintln!("NOT RUN: no static program can be built here");
        return;
    }
    if cfg!(not(target_arch = "x86_64")) {
        eprintln!("NOT RUN: the program would be for another machine than the image");
        return;
    }
    let programs = vec![(Platform::parse("linux/amd64").unwrap(), fs::read(&program).unwrap())];
    let image = Image::build(&Input { programs, ..input() }).unwrap();
    let layout = place.path().join("layout");
    archive::write_layout(&image, None, &layout).unwrap();
    let root = unpacked(&layout, place.path());
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" && exec chroot --userspec=65532:65532 \"$1\" /shop";
    let output =
        Command::new("unshare").args(["--mount", "sh", "-c", script, "sh"]).arg(&root).output().unwrap();
    if !output.status.success() {
        eprintln!("NOT RUN: not allowed to mount: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "65532 65532 read-only no shell\n");
}

/// The root of a container of the image in a layout.
fn unpacked(layout: &Path, place: &Path) -> std::path::PathBuf {
    let root = place.join("root");
    fs::create_dir(&root).unwrap();
    let manifest = json(&blob(layout, &json(&layout.join("index.json"))["manifests"][0]));
    for layer in manifest["layers"].as_array().unwrap() {
        let layer: &Value = layer;
        run("tar", &["-xzf", blob(layout, layer).to_str().unwrap(), "-C", root.to_str().unwrap()]);
    }
    root
}
