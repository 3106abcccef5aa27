use std::io;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::failure::Failure;

/// Sends what happens to stderr, as far as the filter lets it through: a level (`info`), or levels of modules
/// (`warn,watchkeeper_apiserver=debug`).
pub(crate) fn begin(filter: &str) -> Result<(), Failure> {
    let targets = targets(filter)?;
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false);
    tracing_subscriber::registry().with(targets).with(lines).try_init().map_err(Failure::running)
}

/// The same for programs whose lines are for their users: when, how bad, and what.
pub(crate) fn begin_plain(filter: &str) -> Result<(), Failure> {
    let targets = targets(filter)?;
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false).with_target(false);
    tracing_subscriber::registry().with(targets).with(lines).try_init().map_err(Failure::running)
}

fn targets(filter: &str) -> Result<Targets, Failure> {
    let wrong = || Failure::input(format!("--log {filter:?} is not a filter: try info, or warn,NAME=debug"));
    // A word alone would be taken for the name of a module, and a level with a typing error for silence.
    if filter.split(',').any(|part| !part.contains('=') && part.trim().parse::<LevelFilter>().is_err()) {
        return Err(wrong());
    }
    filter.parse().map_err(|_| wrong())
}
