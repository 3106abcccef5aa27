//! Runs the benchmarks and prints one table.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use watchkeeper_bench::rows::{GROUPS, Size};
use watchkeeper_bench::table::render;

const USAGE: &str = "usage: watchkeeper-bench [--quick] [--rounds N] [--write FILE] [GROUP ...]";

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

/// Says whether everything that is promised holds.
fn run() -> Result<bool, String> {
    let mut size = Size { objects: 10_000, changes: 20_000, rounds: 7 };
    let (mut write, mut groups) = (None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--quick" => size = Size { objects: 1_000, changes: 2_000, rounds: 3 },
            "--rounds" => {
                let rounds = arguments.next().and_then(|rounds| rounds.parse().ok());
                size.rounds = rounds.filter(|rounds| *rounds > 0).ok_or("--rounds needs a number above 0")?;
            }
            "--write" => write = Some(arguments.next().ok_or("--write needs a file")?),
            name => groups.push(GROUPS.iter().find(|group| group.name == name).ok_or_else(|| {
                let known: Vec<_> = GROUPS.iter().map(|group| group.name).collect();
                format!("there is no group {name:?}, only {}", known.join(", "))
            })?),
        }
    }
    if groups.is_empty() {
        groups.extend(&GROUPS);
    }
    let mut rows = Vec::new();
    for group in groups {
        eprintln!("measuring {} ...", group.name);
        rows.extend((group.run)(size));
    }
    let table = render(&rows);
    print!("{table}");
    let failed = rows.iter().filter(|row| !row.holds()).count();
    println!("\n{} rows, {failed} of them do not hold what is promised", rows.len());
    if let Some(file) = write {
        let text = report(&table, size);
        std::fs::write(&file, text).map_err(|error| format!("cannot write {file}: {error}"))?;
    }
    Ok(failed == 0)
}

/// The table with what is needed to judge it.
fn report(table: &str, size: Size) -> String {
    let output = |command: &str, arguments: &[&str]| {
        let output = std::process::Command::new(command).args(arguments).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    format!(
        "# Results\n\nOurs and kube-runtime 5 on the same bytes in one run, by `make bench`. The last column is ours divided by \
         the peer's: below 1 is better. Memory is what was asked of the allocator, exact; times are CPU time (user and \
         system) of the process, medians of {} rounds in which ours and the peer's alternate, with half the distance of the \
         quartiles. {} objects, {} changes of 1,000 of them.\n\n{table}\n\
         Both sides are served by the same in-process server through the same `kube_client::Client`, in chunks of 16 KiB. Ours \
         drops `managedFields`, as is its default; the peer keeps them, as is its. Ours lists by streaming (WatchList), the \
         peer in pages of 500, each as is its default. Ours keeps indexes by namespace and owner, the peer none. A \
         subscriber of ours gets old and new state.\n\n\
         {}, {} cores, {}, commit {}, {}.\n",
        size.rounds,
        size.objects,
        size.changes,
        processor.map_or("unknown processor", |(_, name)| name),
        std::thread::available_parallelism().map_or(0, usize::from),
        output("rustc", &["--version"]),
        output("git", &["rev-parse", "--short", "HEAD"]),
        output("date", &["-u", "+%F"]),
    )
}
