//! Measures the API server as its clients see it: the release binary as a process of its own, over TLS, with fsync, in turn with
//! kube-apiserver and etcd, if `make peers` was called.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod crowd;
mod rows;
mod side;
mod size;
mod wanted;

use std::path::PathBuf;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use watchkeeper_bench_report::Report;
use watchkeeper_bench_target::{Error, Peer, Result, allow_open_files};

use crate::rows::{Bench, GROUPS};
use crate::size::Size;

const USAGE: &str =
    "usage: watchkeeper-bench-server [--quick] [--binary FILE] [--json FILE] [--groups] [GROUP ...]";

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

/// Says whether everything was measured and is as it should be.
fn run() -> Result<bool> {
    let (mut size, mut binary, mut json, mut groups) = (Size::FULL, None, None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let known = GROUPS.into_iter().find(|group| *group == argument);
        match (&*argument, known) {
            ("--quick", _) => size = Size::QUICK,
            ("--binary", _) => binary = Some(PathBuf::from(arguments.next().ok_or("--binary needs a file")?)),
            ("--json", _) => json = Some(PathBuf::from(arguments.next().ok_or("--json needs a file")?)),
            ("--groups", _) => {
                GROUPS.into_iter().for_each(|group| println!("{group}"));
                return Ok(true);
            }
            (_, Some(group)) => groups.push(group),
            (other, None) => {
                return Err(format!("what is {other:?}? Groups are {}\n{USAGE}", GROUPS.join(", ")).into());
            }
        }
    }
    if groups.is_empty() {
        groups.extend(GROUPS);
    }
    // Cargo puts all binaries side by side.
    let binary =
        binary.map_or_else(|| Ok::<_, Error>(std::env::current_exe()?.with_file_name("watchkeeper")), Ok)?;
    if !binary.exists() {
        let command = "cargo build --release -p watchkeeper-cli";
        return Err(format!("there is no {}: {command}", binary.display()).into());
    }
    // The servers inherit it.
    allow_open_files();
    let peers = Peer::find().map_err(|error| error.to_string());
    // One thread: it is cheaper than several, and the server needs the cores.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let all = async {
            let mut report = Report { notes: vec![note(size)], ..Report::default() };
            for group in groups {
                report.extend(Bench::run(binary.clone(), peers.clone(), size, group).await);
            }
            report
        };
        // Whatever comes first, all that was started is dropped, and so ended.
        tokio::select! {
            report = all => Ok(report),
            _ = tokio::signal::ctrl_c() => Err(Error::from("interrupted")),
            _ = terminate.recv() => Err("terminated".into()),
        }
    })?;
    print!("{}", report.text());
    if let Some(file) = json {
        report.save(&file)?;
    }
    Ok(report.is_good())
}

/// What is needed to judge the numbers.
fn note(size: Size) -> String {
    format!(
        "**The API server, beside kube-apiserver with etcd.** The release binary as a process of its own, and the two programs of the peer as \
         theirs, each with a data directory and fsync for every commit (ours and etcd let commits that wait share one), with the client on the \
         same cores; {} rounds. The client is hyper with one thread, the same for both. It speaks HTTP/2 over TLS, sends the credentials of the kubeconfig (ours: a bearer \
         token, the peer: a client certificate, as each of them hands out), does not ask for compression, and does not parse what it gets. \
         kube-apiserver runs with RBAC and without the ServiceAccount plugin, as envtest starts it. Objects are custom resources of 600 B. Rates are of \
         {} requests by one client and four times as many by several for ours, and at most 200 for the peer, which is slower. The start of the peer ends when kubectl, asked \
         every tenth of a second, finds it ready. CPU times of servers are user and system time of their processes, to a hundredth of a second.\n\n\
         Watchers of the fan-out have a TLS connection each, speak HTTP/1.1 and count lines, on one thread of the client; another thread makes the changes, which are \
         creates by 16 clients. The time is from the first request to the last line at the last watcher, so that it holds the creates too. To a thousand, ten changes are made at a \
         time, and the next when all were told, for kube-apiserver ends the watches of those who are far behind. The client's own CPU time is \
         in the table to tell how much of the machine it took.\n\n\
         Growth is measured on servers that hold nothing else. Memory is without that of an empty server. One watcher stands for a hundred objects.",
        size.rounds, size.requests
    )
}
