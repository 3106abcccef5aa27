use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use watchkeeper_description::Description;

use crate::cargo::{self, Package};
use crate::failure::Failure;
use crate::terminal;

/// What a program said about itself.
pub(crate) struct Described(pub(crate) Description);

impl Described {
    /// Reads a description: from a file, from a program, or from the program of the crate in this folder, which is built first.
    pub(crate) fn read(
        file: Option<&Path>,
        binary: Option<&Path>,
        package: Option<&Package>,
    ) -> Result<Self, Failure> {
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
            // Built apart: that may take as long as it takes, an answer may not.
            (None, None) => {
                let program = match package {
                    Some(package) => package.program()?,
                    None => Package::here()?.program()?,
                };
                ask(&mut Command::new(cargo::build(&program)?), &program)?
            }
        };
        let description = Description::from_json(&text);
        description.map(Self).map_err(|error| Failure::input(format!("{name}: {error}")))
    }
}

/// How long a program may take to describe itself, which needs nothing but itself.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Waits for the end of a program; `None` if it did not come to one and was killed.
fn wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let begin = Instant::now();
    while begin.elapsed() < TIMEOUT {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill()?;
    child.wait().map(|_| None)
}

/// Runs a program with `describe` and takes what it prints. What it complains about is shown.
fn ask(command: &mut Command, shown: &str) -> Result<(String, Vec<u8>), Failure> {
    let name = format!("{shown} describe");
    command.arg("describe").stdin(Stdio::null()).stderr(Stdio::inherit());
    // Whatever it may reach by mistake: a description needs no cluster.
    command.env("KUBECONFIG", "/dev/null");
    let failed = |error: io::Error| Failure::input(format!("{name}: {error}"));
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut stdout = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        stdout.as_mut().map_or(Ok(0), |stdout| stdout.read_to_end(&mut text)).map(|_| text)
    });
    let Some(status) = wait(&mut child).map_err(failed)? else {
        let seconds = TIMEOUT.as_secs();
        return Err(Failure::input(format!(
            "{name}: no answer within {seconds} s: the program has to describe itself; does its main begin with Manager::from_args()?"
        )));
    };
    let text = reader.join().unwrap_or_else(|_| Ok(Vec::new())).map_err(failed)?;
    match status.success() {
        true => Ok((name, text)),
        false => {
            let status = terminal::one_line(&status.to_string());
            Err(Failure::input(format!(
                "{name}: {status}: the program has to describe itself; does its main begin with Manager::from_args()?"
            )))
        }
    }
}
