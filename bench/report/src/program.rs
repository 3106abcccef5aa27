//! What all programs of the benchmarks have in common: their command line, and how they end.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::Report;

/// What a program was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Little of everything, to see that it works.
    pub quick: bool,
    /// Our server, if it is not beside the program.
    pub binary: Option<PathBuf>,
    /// Another one of our server, which it is compared with in place of a peer. For groups that know how.
    pub before: Option<PathBuf>,
    /// What to measure, in the order it was named, or if nothing was, everything.
    pub groups: Vec<&'static str>,
    json: Option<PathBuf>,
    list: bool,
}

impl Asked {
    fn read(known: &[&'static str], arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut asked = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut file = || arguments.next().map(PathBuf::from).ok_or(format!("{argument} needs a file"));
            match &*argument {
                "--quick" => asked.quick = true,
                "--groups" => asked.list = true,
                "--binary" => asked.binary = Some(file()?),
                "--before" => asked.before = Some(file()?),
                "--json" => asked.json = Some(file()?),
                name => asked.groups.push(known.iter().find(|group| **group == name).ok_or_else(|| {
                    let usage =
                        "[--quick] [--binary FILE] [--before FILE] [--json FILE] [--groups] [GROUP ...]";
                    format!("what is {name:?}? Groups are {}\nusage: {usage}", known.join(", "))
                })?),
            }
        }
        if asked.groups.is_empty() {
            asked.groups.extend(known);
        }
        Ok(asked)
    }
}

/// Does what the command line asks for, of the groups that there are, and says by its code how that went: 1 if something was
/// not measured or is not as it should be, 2 if nothing was measured at all.
#[allow(clippy::print_stdout, clippy::print_stderr, reason = "the output of programs")]
pub fn run<E: ToString>(
    known: &[&'static str],
    measure: impl FnOnce(&Asked) -> Result<Report, E>,
) -> ExitCode {
    let outcome = Asked::read(known, std::env::args().skip(1)).and_then(|asked| {
        if asked.list {
            known.iter().for_each(|group| println!("{group}"));
            return Ok(true);
        }
        let report = measure(&asked).map_err(|error| error.to_string())?;
        print!("{}", report.text());
        asked.json.map_or(Ok(()), |file| report.save(&file))?;
        Ok(report.is_good())
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Asked, String> {
        Asked::read(&["lists", "queue"], arguments.iter().map(|argument| (*argument).to_owned()))
    }

    #[test]
    fn without_groups_everything_is_measured() {
        assert_eq!(
            read(&["--quick"]).map(|asked| (asked.quick, asked.groups)),
            Ok((true, vec!["lists", "queue"]))
        );
        assert_eq!(read(&["queue"]).map(|asked| asked.groups), Ok(vec!["queue"]));
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_is() {
        let refused = read(&["list"]).err().unwrap_or_default();
        assert!(refused.contains(r#""list""#) && refused.contains("lists, queue"), "{refused}");
        assert_eq!(read(&["--json"]).err().as_deref(), Some("--json needs a file"));
    }
}
