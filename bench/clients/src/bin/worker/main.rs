//! The work of the benchmarks on our own crates, beside the programs in `bench/peers/programs`: the same flags, the same lines.
//!
//! It prints one line of JSON once it is ready, and one more for each line that it reads. What the lines are is said at each
//! program. It ends when its input does.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod flags;
mod in_process;
mod informers;
mod lines;
mod queue;
mod reached;
mod reconcile;
mod widget;

use std::process::ExitCode;

use watchkeeper_counting::Counting;

use crate::flags::Flags;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

/// Every allocation is counted, which costs a little: the same is not asked of the peers.
#[global_allocator]
static MEMORY: Counting = Counting::new();

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().unwrap_or_default();
    let flags = Flags::parse(arguments)?;
    // As `#[tokio::main]` makes it.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match &*program {
        "informers" => informers::run(&flags, &runtime),
        "queue" => queue::run(&flags, &runtime),
        "reconcile" => reconcile::run(&flags, &runtime),
        "in-process" => in_process::run(&flags, &runtime),
        _ => {
            Err("usage: watchkeeper-bench-worker informers|queue|reconcile|in-process [--FLAG VALUE ...]"
                .into())
        }
    }
}
