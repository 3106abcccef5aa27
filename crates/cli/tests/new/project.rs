use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{checkout, watchkeeper};

/// How long a command may take. It compiles an operator, on a machine that has other things to do.
const TIMEOUT: Duration = Duration::from_secs(900);

/// A command of a README and all that it starts, ended with the test.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).status();
        let _ = self.0.wait();
    }
}

/// A new project, and the shell that its README is for.
pub(crate) struct Project {
    _place: tempfile::TempDir,
    pub(crate) folder: PathBuf,
    target: PathBuf,
}

impl Project {
    fn new(arguments: &[&str]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let here = checkout();
        let mut all = vec!["new", "shop", "--path", &here];
        all.extend(arguments);
        let output = watchkeeper(place.path(), &all);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self::at(place, "shop")
    }

    /// An empty folder, for a project that is typed.
    pub(crate) fn empty(name: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join(name)).unwrap();
        Self::at(place, name)
    }

    fn at(place: tempfile::TempDir, name: &str) -> Self {
        // One for all projects: what they depend on is compiled once.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new");
        Self { folder: place.path().join(name), _place: place, target }
    }

    /// A line for the shell, in the folder of the project.
    fn shell(&self, line: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_watchkeeper")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(&self.folder).env("PATH", path);
        shell.env("CARGO_TARGET_DIR", &self.target).env("CARGO_INCREMENTAL", "0");
        shell.env("CARGO_PROFILE_DEV_DEBUG", "false").env("CARGO_NET_OFFLINE", "true");
        shell.env_remove("KUBECONFIG").env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_PKG_NAME");
        shell.stdin(Stdio::null()).process_group(0);
        shell
    }

    pub(crate) fn run(&self, line: &str) -> String {
        let output = self.shell(line).output().unwrap();
        let told = [&*output.stdout, &*output.stderr].map(String::from_utf8_lossy).concat();
        assert!(output.status.success(), "{line}:\n{told}");
        told
    }

    /// What its CI has make do.
    fn ci(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join(".github/workflows/ci.yaml")).unwrap();
        let steps = text.lines().filter_map(|line| line.trim().strip_prefix("- run: "));
        steps.filter(|step| step.starts_with("make ")).map(str::to_owned).collect()
    }

    /// Runs a command again and again, until it succeeds.
    pub(crate) fn run_until_it_succeeds(&self, line: &str) -> String {
        let start = Instant::now();
        loop {
            let output = self.shell(line).output().unwrap();
            if output.status.success() {
                return String::from_utf8(output.stdout).unwrap();
            }
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(start.elapsed() < TIMEOUT, "{line}:\n{told}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Starts a command that is left running. What it writes is not lost: the last of it is in the output of the test.
    pub(crate) fn start(&self, line: &str) -> Running {
        Running(self.shell(line).spawn().unwrap())
    }

    /// Starts a command that is left running, and waits until it says something.
    pub(crate) fn start_until(&self, line: &str, said: &str) -> Running {
        let mut running = Running(self.shell(line).stdout(Stdio::piped()).spawn().unwrap());
        let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains(said)), "{line} did not say {said}");
        std::thread::spawn(move || lines.for_each(drop));
        running
    }
}

#[test]
fn the_readme_of_a_new_project_works_as_written() {
    // As the book has it.
    let book = fs::read_to_string(Path::new(&checkout()).join("docs/book/production.md")).unwrap();
    let typed: Vec<&str> = book.split("```").nth(1).unwrap().trim().lines().collect();
    let ["watchkeeper new shop --kind Shop --group shop.example.com", "cd shop", "cargo test"] = typed[..]
    else {
        panic!("the book has other commands: {typed:?}")
    };
    let project = Project::new(&typed[0].split(' ').skip(3).collect::<Vec<_>>());
    let readme = fs::read_to_string(project.folder.join("README.md")).unwrap();
    let commands: Vec<&str> = readme.split("```").nth(1).unwrap().trim().lines().collect();
    assert_eq!(commands, ["cargo test", "make run", "make sample"]);
    // Both have `cargo test`: from an empty folder to an object that was worked on, no more than five commands are typed.
    assert_eq!((typed[2], typed.len() + commands.len() - 1), (commands[0], 5));
    project.run(commands[0]);
    let _operator = project.start_until(commands[1], "Ctrl-C");
    // Whoever types it waits for the operator to have brought its definition.
    let shown = project.run_until_it_succeeds(commands[2]);
    assert!(shown.contains("example") && shown.contains("hello") && shown.contains("True"), "{shown}");
    project.run("cargo fmt --check");
    // Its CI is green before there is anything to compare, and after that.
    assert_eq!(project.ci(), ["make test lint", "make check"]);
    let told = project.run("make check");
    assert!(told.contains("NOT CHECKED: there is no deploy/ yet"), "{told}");
    // To production: everything is made of what the program says, without a warning about its definition.
    project.run(
        "watchkeeper generate --strict && watchkeeper generate --check && test -f deploy/chart/Chart.yaml",
    );
    let told = project.run("make check");
    assert!(told.contains("deploy is what the code says"), "{told}");
    project.run("echo >> deploy/rbac.yaml && ! make check");
}

#[test]
#[ignore = "compiles a second operator; `make soak` runs it"]
fn a_project_with_all_parts_compiles_and_passes_its_tests() {
    let project =
        Project::new(&["--kind", "WebShop", "--cluster-scoped", "--with", "finalizer,source,webhook"]);
    project.run("cargo fmt --check");
    for step in project.ci() {
        project.run(&step);
    }
}

#[test]
#[ignore = "compiles an operator four times; `make soak` runs it"]
fn a_project_with_any_one_part_compiles_and_passes_its_tests() {
    for arguments in
        [&["--cluster-scoped"][..], &["--with", "finalizer"], &["--with", "source"], &["--with", "webhook"]]
    {
        let project = Project::new(arguments);
        project.run("cargo fmt --check && cargo test");
    }
}
