//! The crate in this folder, asked of Cargo.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::failure::Failure;

/// Cargo, as whoever started this program has it.
pub(crate) fn command() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    cargo.stdin(Stdio::null());
    cargo
}

/// A package, as `cargo metadata` tells it.
pub(crate) struct Package {
    value: Value,
    folder: PathBuf,
}

impl Package {
    /// The package whose manifest is in this folder.
    pub(crate) fn here() -> Result<Self, Failure> {
        let none = || {
            Failure::input(
                "there is no crate in this folder: go into that of an operator, or give its program with --binary",
            )
        };
        let manifest = fs::canonicalize("Cargo.toml").map_err(|_| none())?;
        let metadata = metadata_here()?;
        let mut packages = metadata["packages"].as_array().into_iter().flatten();
        let is_it = |package: &&Value| package["manifest_path"].as_str().map(Path::new) == Some(&manifest);
        let value = packages.find(is_it).cloned().ok_or_else(none)?;
        Ok(Self { value, folder: manifest.parent().map(Path::to_owned).unwrap_or_default() })
    }

    pub(crate) fn name(&self) -> &str {
        self.value["name"].as_str().unwrap_or_default()
    }

    pub(crate) fn version(&self) -> Option<String> {
        self.text("/version")
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name of its program.
    pub(crate) fn program(&self) -> Result<String, Failure> {
        let targets = self.value["targets"].as_array().into_iter().flatten();
        let is_program = |target: &&Value| {
            target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "bin"))
        };
        let names: Vec<&str> =
            targets.filter(is_program).filter_map(|target| target["name"].as_str()).collect();
        match (self.text("/default_run"), names.as_slice()) {
            (Some(name), _) => Ok(name),
            (None, [name]) => Ok((*name).to_owned()),
            (None, []) => Err(Failure::input(format!("the package {} has no program", self.name()))),
            (None, _) => Err(Failure::input(format!(
                "the package {} has several programs: set default-run in Cargo.toml",
                self.name()
            ))),
        }
    }

    /// A text of its manifest.
    pub(crate) fn text(&self, pointer: &str) -> Option<String> {
        self.value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// A list of texts of its manifest.
    pub(crate) fn list(&self, pointer: &str) -> Vec<String> {
        let items = self.value.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(|item| Some(item.as_str()?.to_owned())).collect()
    }
}

/// What Cargo knows of the packages in this folder.
fn metadata_here() -> Result<Value, Failure> {
    metadata(&["--no-deps"])
}

/// What Cargo knows of the packages in this folder and of all that they depend on, for these targets or for all.
pub(crate) fn dependencies(targets: &[&str]) -> Result<Value, Failure> {
    let flags: Vec<&str> = targets.iter().flat_map(|target| ["--filter-platform", *target]).collect();
    metadata(&flags)
}

fn metadata(flags: &[&str]) -> Result<Value, Failure> {
    let mut cargo = command();
    cargo.args(["metadata", "--format-version", "1"]).args(flags).stderr(Stdio::inherit());
    let output = cargo.output().map_err(|error| Failure::input(format!("cargo metadata: {error}")))?;
    if !output.status.success() {
        return Err(Failure::input(format!("cargo metadata: {}", output.status)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| Failure::input(format!("cargo metadata: {error}")))
}

/// Builds the program of the package here for a target whose libc is linked into it. Returns its path.
pub(crate) fn build_static(program: &str, target: &str) -> Result<PathBuf, Failure> {
    if !has_target(target) {
        return Err(Failure::input(format!(
            "Rust cannot build for {target} here: rustup target add {target}; or build elsewhere, and give the program with --binary"
        )));
    }
    let mut cargo = command();
    cargo.args([
        "build",
        "--release",
        "--target",
        target,
        "--bin",
        program,
        "--message-format",
        "json-render-diagnostics",
    ]);
    remap_paths(&mut cargo, target)?;
    // C within dependencies is compiled for the machine only, and needs no headers of that libc.
    let (compiler, flags) =
        (format!("CC_{}", target.replace('-', "_")), format!("CFLAGS_{}", target.replace('-', "_")));
    let is_native = target.starts_with(std::env::consts::ARCH);
    if std::env::var_os(&compiler).is_none() && is_native && !is_on_path("musl-gcc") {
        cargo.env(compiler, "cc").env(flags, "-U_FORTIFY_SOURCE -fno-stack-protector");
    }
    let failed = |why: String| Failure::running(format!("cargo build --target {target}: {why}"));
    built(cargo, program, failed)
}

/// Builds the program of the package here as `cargo run` does. Returns its path.
pub(crate) fn build(program: &str) -> Result<PathBuf, Failure> {
    let mut cargo = command();
    cargo.args(["build", "--quiet", "--bin", program, "--message-format", "json-render-diagnostics"]);
    built(cargo, program, |why| Failure::input(format!("cargo build --bin {program}: {why}")))
}

/// Runs a build with messages as JSON. Returns the path of the program that it made.
fn built(mut cargo: Command, program: &str, failed: impl Fn(String) -> Failure) -> Result<PathBuf, Failure> {
    let output = cargo
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::input(format!("cargo build: {error}")))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_program = |message: &Value| message["target"]["name"] == program;
    let mut built = messages
        .filter(is_program)
        .filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
    built.next_back().ok_or_else(|| failed(format!("it built no program {program}")))
}

/// Has programs name their sources by the same paths wherever they are built: with those of this machine, they would differ from those that
/// somebody else builds.
fn remap_paths(cargo: &mut Command, target: &str) -> Result<(), Failure> {
    let metadata = metadata_here()?;
    let mut flags = Vec::new();
    // Of several that fit, the last one counts.
    for (folder, name) in [
        (cargo_home(), "/cargo"),
        (metadata["workspace_root"].as_str().map(PathBuf::from), "/src"),
        (metadata["target_directory"].as_str().map(PathBuf::from), "/target"),
    ] {
        if let Some(folder) = folder.as_deref().and_then(Path::to_str) {
            flags.push(format!("--remap-path-prefix={folder}={name}"));
        }
    }
    // What the environment says counts more than any configuration, and would be the only flags.
    let encoded = std::env::var("CARGO_ENCODED_RUSTFLAGS").ok();
    let plain = std::env::var("RUSTFLAGS").ok();
    let given =
        encoded.or_else(|| plain.map(|plain| plain.split_whitespace().collect::<Vec<_>>().join("\u{1f}")));
    match given.filter(|given| !given.is_empty()) {
        Some(given) => {
            cargo.env("CARGO_ENCODED_RUSTFLAGS", format!("{given}\u{1f}{}", flags.join("\u{1f}")));
        }
        None => {
            let quoted: Vec<String> = flags.iter().map(|flag| format!("{flag:?}")).collect();
            cargo.args(["--config", &format!("target.{target}.rustflags=[{}]", quoted.join(", "))]);
        }
    }
    Ok(())
}

fn cargo_home() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
}

/// Whether the standard library is there for a target.
fn has_target(target: &str) -> bool {
    let rustc = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .stdin(Stdio::null())
        .output();
    let folder = rustc
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    folder.is_some_and(|folder| Path::new(folder.trim()).is_dir())
}

fn is_on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}
