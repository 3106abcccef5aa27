//! What was typed, or one line about what is wrong with it.

use std::io::{self, Write};
use std::process;

use clap::error::ErrorKind;
use clap::{Error, Parser};

use crate::failure::Failure;

/// Reads the command line. Help and version are printed, and end the program.
pub(crate) fn parse<T: Parser>() -> Result<T, Failure> {
    T::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // If nobody listens, nobody misses it.
            let _ = write!(io::stdout(), "{error}");
            process::exit(0)
        }
        // Called without anything: the help is the complaint.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = write!(io::stderr(), "{error}");
            process::exit(2)
        }
        _ => Failure::input(one_line(&error)),
    })
}

/// What is wrong, with the hint that clap may have, without its usage: `--help` has that.
fn one_line(error: &Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let told: Vec<&str> =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more")).collect();
    let told = told.join(" ");
    format!("{}; --help tells more", told.strip_prefix("error: ").unwrap_or(&told))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::Arguments;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_is_wrong_with_a_command_line_is_one_line() {
        use clap::Parser;
        for (words, expected) in [
            (
                "watchkeeper wach pods",
                "unrecognized subcommand 'wach' tip: a similar subcommand exists: 'watch'; --help tells more",
            ),
            (
                "watchkeeper watch",
                "the following required arguments were not provided: <KIND>...; --help tells more",
            ),
            (
                "watchkeeper watch pods -n",
                "a value is required for '--namespace <NAME>' but none was supplied; --help tells more",
            ),
        ] {
            let error =
                Arguments::try_parse_from(words.split(' ')).err().map(|error| super::one_line(&error));
            assert_eq!(error.as_deref(), Some(expected));
        }
    }
}
