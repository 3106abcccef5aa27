//! Runs the benchmarks and prints one table.
#![allow(clippy::print_stderr)]

use std::convert::Infallible;
use std::panic::catch_unwind;
use std::process::ExitCode;

use watchkeeper_bench::rows::{GROUPS, Group, Size};
use watchkeeper_bench_report::{Asked, Report, Row, run};

fn main() -> ExitCode {
    run(&GROUPS.each_ref().map(|group| group.name), measure)
}

fn measure(asked: &Asked) -> Result<Report, Infallible> {
    let size = match asked.quick {
        true => Size { objects: 1_000, changes: 2_000, rounds: 3 },
        false => Size { objects: 10_000, changes: 20_000, rounds: 7 },
    };
    let mut report = Report { notes: vec![note(size)], ..Report::default() };
    for group in GROUPS.iter().filter(|group| asked.groups.contains(&group.name)) {
        eprintln!("measuring {} ...", group.name);
        report.extend(measured(group, size));
    }
    Ok(report)
}

/// What a group found, or that it did not get to its end.
fn measured(group: &Group, size: Size) -> Report {
    let run = group.run;
    catch_unwind(|| run(size)).unwrap_or_else(|panic| {
        let why = panic.downcast_ref::<String>().cloned();
        let why = why.or_else(|| panic.downcast_ref::<&str>().map(|why| (*why).into()));
        vec![Row::failed(group.name, "all of the group", why.unwrap_or_else(|| "it panicked".into()))].into()
    })
}

/// What is needed to judge the numbers.
fn note(size: Size) -> String {
    format!(
        "**In process, beside kube-runtime 5.** Memory is what was asked of the allocator, exact; times are CPU time (user and system) of \
         the process in {} rounds. {} objects, {} changes of 1,000 of them. Both sides are served by the same in-process server, each \
         through its own client and without a socket, in chunks of 16 KiB. Ours drops `managedFields`, as is its default; the peer keeps them, as is its. Ours \
         lists by streaming (WatchList), the peer in pages of 500, each as is its default. Ours keeps indexes by namespace and owner, the \
         peer none. A subscriber of ours gets old and new state. The peer of the queue with one worker is its scheduler, with several its \
         applier.",
        size.rounds, size.objects, size.changes
    )
}
