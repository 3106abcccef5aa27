//! Measures the API server as its clients see it: the release binary as a process of its own, over TLS, with fsync, in turn with
//! kube-apiserver and etcd, if `make peers` was called, or with another program of ours: `--before FILE`.
#![allow(clippy::print_stderr)]

mod bare;
mod crowd;
mod hook;
mod rows;
mod side;
mod size;
mod wanted;

use std::process::ExitCode;

use watchkeeper_bench_report::{Asked, Report, Target, run};
use watchkeeper_bench_target::{Peer, Result, allow_open_files, beside, unless_ended};

use crate::rows::{Bench, GROUPS};
use crate::side::Other;
use crate::size::Size;

fn main() -> ExitCode {
    run(&GROUPS, measure)
}

fn measure(asked: &Asked) -> Result<Report> {
    let size = if asked.quick { Size::QUICK } else { Size::FULL };
    let binary = beside(asked.binary.clone(), "watchkeeper", "watchkeeper-cli")?;
    // The servers inherit it.
    allow_open_files();
    let others = match &asked.before {
        Some(before) => Ok(Other::Before(before.clone())),
        None => Peer::find().map(Other::Real).map_err(|error| error.to_string()),
    };
    let report = unless_ended(async {
        let mut report = Report { notes: vec![note(size)], ..Report::default() };
        for group in &asked.groups {
            report.extend(Bench::run(binary.clone(), others.clone(), size, group).await);
        }
        report
    })?;
    Ok(if asked.before.is_some() { beside_before(report) } else { report })
}

/// Says that the peer is a program of ours, and that nothing is to be slower than it by more than a twentieth.
fn beside_before(mut report: Report) -> Report {
    for row in report.rows.iter_mut().filter(|row| !row.peer.is_empty()) {
        row.peer_name = Some("before".into());
        row.target = Some(Target::TimesBetter(0.95));
    }
    report
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
         creates by 16 clients. The time is from the first request to the last line at the last watcher, so that it holds the creates too. All changes are \
         made at once, unless the server ends watches: kube-apiserver does with those who are far behind. Then fewer are made at a time, and the next when all were told. \
         The limit is what a thread of the client delivers to the same watchers that has the bytes of the events at hand and only sends them, over TLS too, in pieces of 64 KiB; it is \
         put beside what the peer delivers, so that the ratio is the one that no server could exceed here. The client's own CPU time is \
         in the table to tell how much of the machine it took.\n\n\
         Creates with a webhook are asked about at one that allows everything, on a thread of the client.\n\n\
         Growth is measured on servers that hold nothing else. Memory is without that of an empty server. One watcher stands for a hundred objects.",
        size.rounds, size.requests
    )
}
