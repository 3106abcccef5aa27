//! Measures our informers, queue and controllers beside those of client-go and controller-runtime.
//!
//! Ours run in `watchkeeper-bench-worker`, the peers' in `go-clients`, which `make peers` builds: processes of their own with the
//! same flags and the same lines in and out, so that one is measured as the other is.
#![allow(clippy::print_stderr)]

mod bench;
mod changes;
mod child;
mod objects;
mod proxy;
mod rows;
mod server;
mod size;

use std::process::ExitCode;

use watchkeeper_bench_report::{Asked, Report, run};
use watchkeeper_bench_target::{Result, beside, unless_ended};

use crate::bench::Bench;
use crate::rows::GROUPS;
use crate::size::Size;

fn main() -> ExitCode {
    run(&GROUPS, measure)
}

fn measure(asked: &Asked) -> Result<Report> {
    let size = if asked.quick { Size::QUICK } else { Size::FULL };
    let binary = beside(asked.binary.clone(), "watchkeeper", "watchkeeper-cli")?;
    let worker = beside(None, "watchkeeper-bench-worker", "watchkeeper-bench-clients")?;
    unless_ended(Bench::run(binary, worker, size, &asked.groups))
}
