//! Images, looked at with programs that others wrote: tar, gzip, and where they are crane and the kernel.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "tests, which say what was not run"
)]

mod program;
mod pushes;
mod runs;

use std::fs;
use std::path::Path;
use std::process::Command;

use program::{dynamic_elf, elf, input};
use serde_json::Value;
use watchkeeper_image::{Image, Input, Platform, archive, digest};

/// Runs a program, which has to succeed, and gives what it prints.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The path of a blob in a layout.
fn blob(layout: &Path, descriptor: &Value) -> std::path::PathBuf {
    layout.join("blobs/sha256").join(descriptor["digest"].as_str().unwrap().trim_start_matches("sha256:"))
}

#[test]
fn the_same_program_gives_the_same_digest_and_another_time_another_one() {
    let image = Image::build(&input()).unwrap();
    assert_eq!(image.digest(), Image::build(&input()).unwrap().digest());
    let later = Image::build(&Input { time: 1_700_000_000, ..input() }).unwrap();
    assert_ne!(image.digest(), later.digest());
}

#[test]
fn a_layout_has_what_its_index_says_and_tar_reads_its_layers() {
    let place = tempfile::tempdir().unwrap();
    let layout = place.path().join("layout");
    let image = Image::build(&input()).unwrap();
    archive::write_layout(&image, Some("shop:1"), &layout).unwrap();
    assert_eq!(json(&layout.join("oci-layout"))["imageLayoutVersion"], "1.0.0");
    let index = json(&layout.join("index.json"));
    let root = &index["manifests"][0];
    assert_eq!(root["digest"], image.digest());
    assert_eq!(root["annotations"]["org.opencontainers.image.ref.name"], "shop:1");
    for entry in fs::read_dir(layout.join("blobs/sha256")).unwrap() {
        let path = entry.unwrap().path();
        let expected = format!("sha256:{}", path.file_name().unwrap().to_str().unwrap());
        assert_eq!(digest(&fs::read(&path).unwrap()), expected);
    }
    let manifest = json(&blob(&layout, root));
    let config = json(&blob(&layout, &manifest["config"]));
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], serde_json::json!(["/shop"]));
    assert_eq!(config["created"], "1970-01-01T00:00:00Z");
    let mut listed = String::new();
    for (layer, unpacked) in
        manifest["layers"].as_array().unwrap().iter().zip(config["rootfs"]["diff_ids"].as_array().unwrap())
    {
        let path = blob(&layout, layer);
        let path = path.to_str().unwrap();
        let sum = run("sh", &["-c", &format!("gzip -dc < {path} | sha256sum")]);
        assert_eq!(*unpacked, format!("sha256:{}", sum.split(' ').next().unwrap()));
        listed.push_str(&run("tar", &["--utc", "--full-time", "--numeric-owner", "-tvzf", path]));
    }
    let words: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    let files: Vec<(&str, &str)> = words.iter().map(|words| (words[0], words[5])).collect();
    let expected = [
        ("drwxr-xr-x", "etc/"),
        ("-rw-r--r--", "etc/group"),
        ("-rw-r--r--", "etc/passwd"),
        ("-rwxr-xr-x", "shop"),
    ];
    assert_eq!(files, expected);
    let is_plain =
        |words: &Vec<&str>| words[1] == "0/0" && words[3] == "1970-01-01" && words[4] == "00:00:00";
    assert!(words.iter().all(is_plain), "{listed}");
    // What refers to it is there, too.
    let sbom = json(&blob(&layout, &index["manifests"][1]));
    assert_eq!(sbom["subject"]["digest"], image.digest());
    assert_eq!(json(&blob(&layout, &sbom["layers"][0]))["bomFormat"], "CycloneDX");
}

#[test]
fn several_platforms_are_one_index() {
    let place = tempfile::tempdir().unwrap();
    let mut both = input();
    both.programs.push((Platform::parse("linux/arm64").unwrap(), elf(183)));
    let image = Image::build(&both).unwrap();
    both.programs.reverse();
    assert_eq!(image.digest(), Image::build(&both).unwrap().digest(), "the order of programs matters");
    let layout = place.path().join("layout");
    archive::write_layout(&image, None, &layout).unwrap();
    let index = json(&blob(&layout, &json(&layout.join("index.json"))["manifests"][0]));
    let manifests = index["manifests"].as_array().unwrap();
    let platforms: Vec<&str> =
        manifests.iter().map(|one| one["platform"]["architecture"].as_str().unwrap()).collect();
    assert_eq!(platforms, ["amd64", "arm64"]);
    let docker = place.path().join("docker.tar");
    let error = archive::write_docker_archive(&image, "shop:1", 0, &docker).unwrap_err();
    assert!(error.to_string().contains("one platform"), "{error}");
    assert!(!docker.exists());
}

#[test]
fn archives_are_archives() {
    let place = tempfile::tempdir().unwrap();
    let image = Image::build(&input()).unwrap();
    let (oci, docker) = (place.path().join("oci.tar"), place.path().join("docker.tar"));
    archive::write_oci_archive(&image, Some("shop:1"), 0, &oci).unwrap();
    archive::write_docker_archive(&image, "shop:1", 0, &docker).unwrap();
    assert!(run("tar", &["-tf", oci.to_str().unwrap()]).contains("index.json\n"));
    let manifest = run("tar", &["-xOf", docker.to_str().unwrap(), "manifest.json"]);
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest[0]["RepoTags"][0], "shop:1");
    let layer = manifest[0]["Layers"][1].as_str().unwrap();
    let inner = run("sh", &["-c", &format!("tar -xOf {} {layer} | tar -t", docker.display())]);
    assert_eq!(inner, "shop\n");
    let error = archive::write_oci_archive(&image, None, 0, &oci).unwrap_err().to_string();
    assert!(error.contains("exists already"), "{error}");
}

#[test]
fn certificates_are_where_programs_look_for_them() {
    let pem = b"-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n".to_vec();
    let place = tempfile::tempdir().unwrap();
    let layout = place.path().join("layout");
    let image = Image::build(&Input { certificates: Some(pem), ..input() }).unwrap();
    archive::write_layout(&image, None, &layout).unwrap();
    let manifest = json(&blob(&layout, &json(&layout.join("index.json"))["manifests"][0]));
    let listed = run("tar", &["-tzf", blob(&layout, &manifest["layers"][0]).to_str().unwrap()]);
    assert!(listed.contains("etc/ssl/certs/ca-certificates.crt\n"), "{listed}");
    let config = json(&blob(&layout, &manifest["config"]));
    assert_eq!(config["config"]["Env"][1], "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt");
}

#[test]
fn what_would_not_run_is_refused_with_what_to_do() {
    let amd = || Platform::parse("linux/amd64").unwrap();
    let programs = |bytes: Vec<u8>| Input { programs: vec![(amd(), bytes)], ..input() };
    let cases = [
        (Input { programs: vec![], ..input() }, "there is no program"),
        (programs(b"#!/bin/sh\n".to_vec()), "no program for Linux"),
        (programs(elf(183)), "the program for linux/amd64 is one for linux/arm64"),
        (programs(dynamic_elf()), "linked dynamically: it asks for /lib64/ld-linux"),
        (
            Input { programs: vec![(amd(), elf(62)), (amd(), elf(62))], ..input() },
            "two programs for linux/amd64",
        ),
        (Input { certificates: Some(b"x".to_vec()), ..input() }, "holds none"),
    ];
    for (input, expected) in cases {
        let error = Image::build(&input).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for text in ["", "linux", "linux/", "a/b/c/d", "linux/amd 64"] {
        assert!(Platform::parse(text).is_err(), "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_reader_of_programs_panic(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)
    ) {
        let mut elf = b"\x7fELF\x02\x01".to_vec();
        elf.extend(bytes);
        let _ = watchkeeper_image::Program::read(&elf);
    }
}
