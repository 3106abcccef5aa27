use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The commands of a machine: nothing is in the path but these.
pub(crate) struct Machine {
    commands: tempfile::TempDir,
    target: tempfile::TempDir,
}

/// What a script came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) is_success: bool,
    pub(crate) output: String,
    pub(crate) error: String,
}

impl Machine {
    /// A machine with these commands of the real one.
    pub(crate) fn with(commands: &[&str]) -> Self {
        let machine = Self { commands: tempfile::tempdir().unwrap(), target: tempfile::tempdir().unwrap() };
        for command in commands {
            let places = ["/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin"]
                .map(|place| Path::new(place).join(command));
            let place = places.iter().find(|place| place.exists());
            let place = place.unwrap_or_else(|| panic!("{command} is installed"));
            symlink(place, machine.commands.path().join(command)).unwrap();
        }
        machine
    }

    /// Adds a command that is this text for bash, in the place of one of the real machine if there is one.
    pub(crate) fn command(self, name: &str, body: &str) -> Self {
        let program = self.commands.path().join(name);
        // What is written to a link is written to the program of the real machine.
        if program.is_symlink() {
            fs::remove_file(&program).unwrap();
        }
        fs::write(&program, format!("#!{}/bash\n{body}\n", self.commands.path().display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// Adds commands that do nothing and succeed.
    pub(crate) fn commands(self, names: &[&str]) -> Self {
        names.iter().fold(self, |machine, name| machine.command(name, "exit 0"))
    }

    /// Takes a command away.
    pub(crate) fn without(self, name: &str) -> Self {
        fs::remove_file(self.commands.path().join(name)).unwrap();
        self
    }

    /// The folder that cargo writes into.
    pub(crate) fn target(&self) -> PathBuf {
        self.target.path().to_owned()
    }

    /// Runs a script of `scripts/`.
    pub(crate) fn run(&self, script: &str) -> Said {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(script);
        let output = Command::new(self.commands.path().join("bash"))
            .arg(script)
            .env("PATH", self.commands.path())
            .env("CARGO_TARGET_DIR", self.target.path())
            .env_remove("KUBECTL")
            .output()
            .unwrap();
        Said {
            is_success: output.status.success(),
            output: String::from_utf8(output.stdout).unwrap(),
            error: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
