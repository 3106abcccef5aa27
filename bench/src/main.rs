//! Runs the benchmarks and prints one table.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::panic::catch_unwind;
use std::path::PathBuf;
use std::process::ExitCode;

use watchkeeper_bench::rows::{GROUPS, Group, Size};
use watchkeeper_bench_report::{Report, Row};

const USAGE: &str = "usage: watchkeeper-bench [--quick] [--rounds N] [--json FILE] [--groups] [GROUP ...]";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Says whether everything was measured and is as it should be.
fn run() -> Result<bool, String> {
    let mut size = Size { objects: 10_000, changes: 20_000, rounds: 7 };
    let (mut json, mut groups) = (None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--quick" => size = Size { objects: 1_000, changes: 2_000, rounds: 3 },
            "--rounds" => {
                let rounds = arguments.next().and_then(|rounds| rounds.parse().ok());
                size.rounds = rounds.filter(|rounds| *rounds > 0).ok_or("--rounds needs a number above 0")?;
            }
            "--json" => json = Some(PathBuf::from(arguments.next().ok_or("--json needs a file")?)),
            "--groups" => {
                GROUPS.iter().for_each(|group| println!("{}", group.name));
                return Ok(true);
            }
            name => groups.push(GROUPS.iter().find(|group| group.name == name).ok_or_else(|| {
                let known: Vec<_> = GROUPS.iter().map(|group| group.name).collect();
                format!("there is no group {name:?}, only {}", known.join(", "))
            })?),
        }
    }
    if groups.is_empty() {
        groups.extend(&GROUPS);
    }
    let mut report = Report { notes: vec![note(size)], ..Report::default() };
    for group in groups {
        eprintln!("measuring {} ...", group.name);
        report.extend(measured(group, size));
    }
    print!("{}", report.text());
    if let Some(file) = json {
        report.save(&file)?;
    }
    Ok(report.is_good())
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
         the process in {} rounds. {} objects, {} changes of 1,000 of them. Both sides are served by the same in-process server through the \
         same `kube_client::Client`, in chunks of 16 KiB. Ours drops `managedFields`, as is its default; the peer keeps them, as is its. Ours \
         lists by streaming (WatchList), the peer in pages of 500, each as is its default. Ours keeps indexes by namespace and owner, the \
         peer none. A subscriber of ours gets old and new state. The peer of the queue with one worker is its scheduler, with several its \
         applier.",
        size.rounds, size.objects, size.changes
    )
}
