//! `watchkeeper new`, as those meet it who have an empty folder.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod book;
mod project;
mod refused;

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs `watchkeeper` in a folder, to its end.
fn watchkeeper(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.output().unwrap()
}

/// The checkout that these tests are in.
fn checkout() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    path.to_str().unwrap().to_owned()
}
