use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use watchkeeper_description::Description;

use crate::cargo;
use crate::failure::Failure;
use crate::terminal;

/// What a program said about itself.
pub(crate) struct Described(pub(crate) Description);

impl Described {
    /// Reads a description: from a file, from a program, or from the crate in this folder.
    pub(crate) fn read(file: Option<&Path>, binary: Option<&Path>) -> Result<Self, Failure> {
        let (name, text) = match (file, binary) {
            (Some(file), _) if file.as_os_str() == "-" => {
                let mut text = Vec::new();
                io::stdin()
                    .read_to_end(&mut text)
                    .map_err(|error| Failure::input(format!("stdin: {error}")))?;
                ("stdin".to_owned(), text)
            }
            (Some(file), _) => {
                let name = file.display().to_string();
                let text = fs::read(file).map_err(|error| Failure::input(format!("{name}: {error}")))?;
                (name, text)
            }
            (None, Some(binary)) => {
                // A name without a slash is a file here, not a program somewhere on the path.
                let program = std::path::absolute(binary).map_err(Failure::running)?;
                ask(&mut Command::new(program), &binary.display().to_string())?
            }
            (None, None) => ask(cargo::command().args(["run", "--quiet", "--"]), "cargo run")?,
        };
        let description = Description::from_json(&text);
        description.map(Self).map_err(|error| Failure::input(format!("{name}: {error}")))
    }
}

/// Runs a program with `describe` and takes what it prints. What it complains about is shown.
fn ask(command: &mut Command, shown: &str) -> Result<(String, Vec<u8>), Failure> {
    let name = format!("{shown} describe");
    command.arg("describe").stdin(Stdio::null()).stderr(Stdio::inherit());
    // Whatever it may reach by mistake: a description needs no cluster.
    command.env("KUBECONFIG", "/dev/null");
    let output = command.output().map_err(|error| Failure::input(format!("{name}: {error}")))?;
    match output.status.success() {
        true => Ok((name, output.stdout)),
        false => {
            let status = terminal::one_line(&output.status.to_string());
            Err(Failure::input(format!(
                "{name}: {status}: the program has to describe itself; does its main begin with Manager::from_args()?"
            )))
        }
    }
}
