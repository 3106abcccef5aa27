//! Joins reports into `RESULTS.md` with its charts, and says by its exit code whether everything is as it should be.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use watchkeeper_bench_report::{Bars, Curve, Machine, Report, Row, lines};

const USAGE: &str = "usage: watchkeeper-bench-report --into FOLDER REPORT ...";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    let (mut into, mut all) = (None, Report::default());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--into" => into = Some(PathBuf::from(arguments.next().ok_or(USAGE)?)),
            file => all.extend(Report::load(Path::new(file))?),
        }
    }
    let into = into.filter(|_| !all.rows.is_empty()).ok_or(USAGE)?;
    print!("{}", all.text());
    let charts = draw(&all, &into.join("charts"))?;
    write(&into.join("RESULTS.md"), &document(&all, &charts))?;
    Ok(all.is_good())
}

/// Everything there is to know about a run.
fn document(all: &Report, charts: &[String]) -> String {
    let mut text = format!(
        "# Results\n\nBy `make bench`. Ours and the peer's take turns; a number is the median of the rounds, with half the distance of the \
         quartiles. *Times better* is above 1 where ours is, whichever way that is. Targets are those of the design.\n\n\
         {}.\n\n{}",
        Machine::here(),
        all.text()
    );
    for chart in charts {
        let _ = write!(text, "\n![{chart}](charts/{chart}.svg)\n");
    }
    text.push_str("\n## How it was measured\n");
    for note in &all.notes {
        let _ = write!(text, "\n{note}\n");
    }
    text
}

/// Draws a chart for each group, and one of growth, and gives their names. Those of an earlier run go.
fn draw(all: &Report, folder: &Path) -> Result<Vec<String>, String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("cannot empty {}: {error}", folder.display()));
        }
        _ => fs::create_dir_all(folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?,
    }
    let mut groups: Vec<&str> = Vec::new();
    for row in &all.rows {
        if !groups.contains(&&*row.group) {
            groups.push(&row.group);
        }
    }
    let mut names = Vec::new();
    for group in groups {
        let rows: Vec<&Row> = all.rows.iter().filter(|row| row.group == group).collect();
        if let Some(bars) = Bars::of(&format!("{group}: times better than the peer"), rows) {
            write(&folder.join(format!("{group}.svg")), &bars.svg())?;
            names.push(group.to_owned());
        }
    }
    if !all.curves.is_empty() {
        let curves: Vec<&Curve> = all.curves.iter().collect();
        write(&folder.join("growth.svg"), &lines("Growth: cost by number of things", &curves))?;
        names.push("growth".into());
    }
    Ok(names)
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}
