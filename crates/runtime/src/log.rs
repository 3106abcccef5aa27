//! The log of a program: one line to turn it on.
//!
//! ```no_run
//! # async fn example() -> watchkeeper_runtime::Result<()> {
//! use watchkeeper_runtime::{Manager, log};
//! log::init();
//! Manager::from_args().run().await
//! # }
//! ```
//!
//! Programs that have a `tracing` subscriber of their own do not need it.

use std::io::{IsTerminal, stderr};
use std::str::FromStr;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

/// Options of the log.
///
/// ```
/// use watchkeeper_runtime::log::{Format, Options};
/// let options = Options::default().filter("info,watchkeeper_runtime=debug").format(Format::Json);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    filter: Option<String>,
    format: Option<Format>,
}

/// The form of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// For people; in colours where they can be seen.
    Text,
    /// For programs: an object of JSON on each line.
    Json,
}

impl Options {
    /// Sets what is logged: a level (`error`, `warn`, `info`, `debug`, `trace`, `off`), or several with the modules that they are for, such
    /// as `info,watchkeeper_runtime=debug`. Default: `$RUST_LOG`, or `info`.
    #[must_use]
    pub fn filter(mut self, filter: impl Into<String>) -> Self {
        self.filter = Some(filter.into());
        self
    }

    /// The form of the lines. Default: text on a terminal, JSON elsewhere.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// What a command line says: `--log FILTER` and `--log-format FORMAT`, as [`Args`](crate::Args) has them.
    fn of(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut options = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (argument, None),
            };
            // Mistakes are reported by whoever parses the whole command line.
            match name.as_str() {
                "--" => break,
                "--log" => options.filter = value.or_else(|| arguments.next()),
                "--log-format" => {
                    options.format = value.or_else(|| arguments.next()).and_then(|value| value.parse().ok());
                }
                _ => {}
            }
        }
        options
    }

    /// Logs to standard error from now on. Does nothing if the program has a subscriber already.
    pub fn init(self) {
        let chosen = self.filter.or_else(|| std::env::var("RUST_LOG").ok()).filter(|text| !text.is_empty());
        let (levels, mistake) = match chosen.as_deref().map(levels) {
            Some(Ok(levels)) => (levels, None),
            Some(Err(mistake)) => (default_levels(), Some(mistake)),
            None => (default_levels(), None),
        };
        let terminal = stderr().is_terminal();
        let format = self.format.unwrap_or(if terminal { Format::Text } else { Format::Json });
        let layer = tracing_subscriber::fmt::layer().with_writer(stderr);
        let set = match format {
            Format::Text => {
                let colours = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
                tracing_subscriber::registry().with(layer.with_ansi(colours)).with(levels).try_init()
            }
            Format::Json => {
                let json = layer.json().flatten_event(true).with_current_span(false);
                tracing_subscriber::registry().with(json).with(levels).try_init()
            }
        };
        if let (Ok(()), Some(mistake)) = (set, mistake) {
            tracing::warn!("{mistake}; logging at info");
        }
    }
}

/// Logs to standard error from now on: in colours on a terminal, as JSON elsewhere, at level `info`. `$RUST_LOG` and the options
/// `--log` and `--log-format` of the program's command line say otherwise. Does nothing if the program has a subscriber already.
pub fn init() {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    Options::of(arguments).init();
}

fn default_levels() -> Targets {
    Targets::new().with_default(LevelFilter::INFO)
}

fn levels(text: &str) -> Result<Targets, String> {
    text.parse().map_err(|error| {
        format!("{text:?} does not say what to log ({error}): use a level, or levels for modules, as in info,hyper=off")
    })
}

/// Whether this can be given to [`Options::filter`].
#[cfg(feature = "args")]
pub(crate) fn checked(text: &str) -> Result<String, String> {
    levels(text).map(|_| text.to_owned())
}

/// `text` or `json`.
impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(format!("{other:?} is not a form of a log: text or json")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Options {
        Options::of(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn the_command_line_says_what_is_logged_and_how() {
        assert_eq!(of("--context a"), Options::default());
        assert_eq!(of("--log debug --context a"), Options::default().filter("debug"));
        let both = Options::default().filter("info,hyper=off").format(Format::Json);
        assert_eq!(of("--log-format json --log=info,hyper=off"), both);
        assert_eq!(of("-- --log debug"), Options::default());
    }

    #[test]
    fn what_is_no_filter_is_named() {
        assert!(levels("info,watchkeeper_runtime=debug").is_ok());
        let error = levels("info,hyper=loud").unwrap_err();
        assert!(error.contains("info,hyper=loud"), "{error}");
    }
}
