//! Measures the API server as its clients see it: the release binary as a process of its own, over TLS, with fsync.
//! kube-apiserver with etcd is measured by the same code in the same run, if `make peers` was called.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod rows;
mod side;
mod size;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use watchkeeper_bench_target::{Error, Peer, Result};

use crate::rows::{Bench, GROUPS};
use crate::size::Size;
use crate::table::{Row, render};

const USAGE: &str = "usage: watchkeeper-bench-server [--quick] [--binary FILE] [--write FILE] [GROUP ...]";
/// Longer than this is not a measurement but a hang.
const LIMIT: Duration = Duration::from_secs(300);

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

/// Says whether every requirement is met.
fn run() -> Result<bool> {
    let (mut size, mut binary, mut write, mut groups) = (Size::FULL, None, None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--quick" => size = Size::QUICK,
            "--binary" => binary = Some(PathBuf::from(arguments.next().ok_or("--binary needs a file")?)),
            "--write" => write = Some(arguments.next().ok_or("--write needs a file")?),
            group if GROUPS.contains(&group) => groups.push(argument),
            other => {
                return Err(format!(
                    "what is {other:?}? Groups are {}
{USAGE}",
                    GROUPS.join(", ")
                )
                .into());
            }
        }
    }
    // Cargo puts all binaries side by side.
    let binary =
        binary.map_or_else(|| Ok::<_, Error>(std::env::current_exe()?.with_file_name("watchkeeper")), Ok)?;
    if !binary.exists() {
        let command = "cargo build --release -p watchkeeper-cli";
        return Err(format!("there is no {}: {command}", binary.display()).into());
    }
    let peer = Peer::find().ok();
    // One thread: it is cheaper than several, and the server needs the cores.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rows = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        // Whatever comes first, all that was started is dropped, and so ended.
        tokio::select! {
            rows = Bench::run(binary, peer.as_ref(), size, &groups) => rows,
            _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
            _ = terminate.recv() => Err("terminated".into()),
            () = tokio::time::sleep(LIMIT) => Err(format!("not done after {LIMIT:?}").into()),
        }
    })?;
    let table = render(&rows);
    print!("{table}");
    let missed = rows.iter().filter(|row| !row.holds()).count();
    let required = rows.iter().filter(|row| row.required.is_some()).count();
    println!("\n{} rows, {required} of them with a requirement, {missed} missed", rows.len());
    if let Some(file) = write {
        let text = report(&table, &rows, size, peer.is_some());
        std::fs::write(&file, text).map_err(|error| format!("cannot write {file}: {error}"))?;
    }
    Ok(missed == 0)
}

/// The table with what is needed to judge it.
fn report(table: &str, rows: &[Row], size: Size, peer: bool) -> String {
    let output = |command: &str, arguments: &[&str]| {
        let output = std::process::Command::new(command).args(arguments).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let peer = if peer {
        "The peer is kube-apiserver with etcd, measured by the same client in the same run, in turn with ours.\n\n"
    } else {
        ""
    };
    format!(
        "# The API server in numbers\n\nBy `make bench-server`: the release binary as a process of its own, with a data \
         directory and fsync, and one client process on the same cores. Each row is the best, the median and the worst of \
         up to {} rounds; the best is judged, for other work on the machine makes a round slower and never faster. The \
         column after the requirement is what of it was used: 1.00 is all.\n\n{table}\n\
         {} rows, {} missed.\n\n{peer}\
         The client is hyper with one thread. It speaks HTTP/2 over TLS and sends the bearer token of the kubeconfig, as \
         most clients do, does not ask for compression, and does not parse what it gets. Watchers of the fan-out have a \
         TLS connection each, speak HTTP/1.1 and count lines. Their changes are creates by 16 clients, and the time is from the first request to the last line at the last watcher.\n\n\
         {}, {} cores, {}, commit {}, {}.\n",
        size.rounds.max(rows::STARTS),
        rows.len(),
        rows.iter().filter(|row| !row.holds()).count(),
        processor.map_or("unknown processor", |(_, name)| name),
        std::thread::available_parallelism().map_or(0, usize::from),
        output("rustc", &["--version"]),
        output("git", &["rev-parse", "--short", "HEAD"]),
        output("date", &["-u", "+%F"]),
    )
}
