//! Measures our informers, queue and controllers beside those of client-go and controller-runtime.
//!
//! Ours run in `watchkeeper-bench-worker`, the peers' in `go-clients`, which `make peers` builds: processes of their own with the
//! same flags and the same lines in and out, so that one is measured as the other is.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod changes;
mod child;
mod objects;
mod proxy;
mod rows;
mod server;
mod size;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use watchkeeper_bench_report::Report;
use watchkeeper_bench_target::{Error, Result};

use crate::bench::Bench;
use crate::rows::GROUPS;
use crate::size::Size;

const USAGE: &str =
    "usage: watchkeeper-bench-clients [--quick] [--binary FILE] [--json FILE] [--groups] [GROUP ...]";
/// Longer than this is not a measurement but a hang.
const LIMIT: Duration = Duration::from_secs(40 * 60);

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Says whether every target is met.
fn run() -> Result<bool> {
    let (mut size, mut binary, mut json, mut groups) = (Size::FULL, None, None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--quick" => size = Size::QUICK,
            "--binary" => binary = Some(PathBuf::from(arguments.next().ok_or("--binary needs a file")?)),
            "--json" => json = Some(PathBuf::from(arguments.next().ok_or("--json needs a file")?)),
            "--groups" => {
                GROUPS.into_iter().for_each(|group| println!("{group}"));
                return Ok(true);
            }
            group if GROUPS.contains(&group) => groups.push(argument),
            other => {
                return Err(format!("what is {other:?}? Groups are {}\n{USAGE}", GROUPS.join(", ")).into());
            }
        }
    }
    // Cargo puts all binaries side by side.
    let beside = |name| Ok::<_, Error>(std::env::current_exe()?.with_file_name(name));
    let binary = binary.map_or_else(|| beside("watchkeeper"), Ok)?;
    let worker = beside("watchkeeper-bench-worker")?;
    for (program, package) in [(&binary, "watchkeeper-cli"), (&worker, "watchkeeper-bench-clients")] {
        if !program.exists() {
            let command = format!("cargo build --release -p {package}");
            return Err(format!("there is no {}: {command}", program.display()).into());
        }
    }
    // One thread: it is cheaper than several, and those who are measured need the cores.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report: Report = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        // Whatever comes first, all that was started is dropped, and so ended.
        tokio::select! {
            report = Bench::run(binary, worker, size, &groups) => Ok::<_, Error>(report),
            _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
            _ = terminate.recv() => Err("terminated".into()),
            () = tokio::time::sleep(LIMIT) => Err(format!("not done after {LIMIT:?}").into()),
        }
    })?;
    print!("{}", report.text());
    if let Some(file) = json {
        report.save(&file)?;
    }
    Ok(report.is_good())
}
