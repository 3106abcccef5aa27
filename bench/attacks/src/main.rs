//! Attacks servers and tells what an innocent client notices of it: ours as a binary, several of them if wanted, and
//! kube-apiserver with etcd, if `make peers` was called. Everything stays on the loopback address and ends by itself.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

mod attack;
mod attacks;
mod checks;
mod innocent;
mod measure;
mod report;
mod site;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use watchkeeper_bench_target::{Peer, Program, Result, allow_open_files, beside, unless_ended};

use crate::attack::Attack;
use crate::checks::{access, poison};
use crate::report::Report;

/// Attack API servers, and tell what an innocent client notices
///
/// Prints a table. Fails if the last server that is not the peer does not hold what is promised.
#[derive(Parser)]
struct Arguments {
    /// A server to attack: a name and a binary of ours, or `NAME=peer` for kube-apiserver and etcd; may be repeated. Without
    /// any, the binary beside this one
    #[arg(long, value_name = "NAME=PATH")]
    server: Vec<String>,
    /// Only the attacks whose names contain this text, or `checks` for the requests that have to be refused; may be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Write what was found to this file, for --with
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Show what was found before, too; may be repeated
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// Write the table to this file as well, or to bench/ATTACKS.md
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "bench/ATTACKS.md")]
    table: Option<PathBuf>,
    /// Name the attacks and do nothing
    #[arg(long)]
    list: bool,
    #[command(subcommand)]
    role: Option<Role>,
}

/// What this program is to the one that started it.
#[derive(Subcommand)]
enum Role {
    #[command(hide = true)]
    Innocent { kubeconfig: PathBuf },
    #[command(hide = true)]
    Attacker { attack: String, kubeconfig: PathBuf },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.role {
        Some(Role::Innocent { kubeconfig }) => innocent::serve(kubeconfig).map(|()| true),
        Some(Role::Attacker { attack, kubeconfig }) => tell(attack, kubeconfig).map(|()| true),
        None if arguments.list => {
            println!("checks");
            Attack::all().for_each(|attack| println!("{}", attack.name));
            Ok(true)
        }
        None => run(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn tell(attack: &str, kubeconfig: &std::path::Path) -> Result<()> {
    println!("{}", serde_json::to_string(&measure::attack(attack, kubeconfig)?)?);
    Ok(())
}

/// Attacks, prints, and tells whether the server that is judged holds.
fn run(arguments: &Arguments) -> Result<bool> {
    let servers = servers(&arguments.server)?;
    allow_open_files();
    let mut report = Report::default();
    for file in &arguments.with {
        report.extend(serde_json::from_slice(&fs::read(file)?)?);
    }
    let (found, failures) = unless_ended(attack_all(&servers, &arguments.only))?;
    if let Some(file) = &arguments.save {
        fs::write(file, serde_json::to_string(&found)?)?;
    }
    report.extend(found);
    let table = report.markdown();
    println!("{table}");
    if let Some(file) = &arguments.table {
        fs::write(file, &table)?;
    }
    let judged = servers.iter().rfind(|(_, program)| matches!(program, Program::Ours(_)));
    let faults = judged.map(|(name, _)| report.faults(name)).unwrap_or_default();
    for fault in faults.iter().chain(&failures) {
        eprintln!("FAILED {fault}");
    }
    Ok(faults.is_empty() && failures.is_empty())
}

fn servers(named: &[String]) -> Result<Vec<(String, Program)>> {
    if named.is_empty() {
        return Ok(vec![(
            "watchkeeper".into(),
            Program::Ours(beside(None, "watchkeeper", "watchkeeper-cli")?),
        )]);
    }
    let one = |named: &String| {
        let (name, path) = named.split_once('=').ok_or_else(|| format!("{named:?} is not NAME=PATH"))?;
        let program = match path {
            "peer" => Program::Peer(Peer::find()?),
            path => Program::Ours(beside(Some(path.into()), "watchkeeper", "watchkeeper-cli")?),
        };
        Ok((name.to_owned(), program))
    };
    named.iter().map(one).collect()
}

/// What was found, and what could not be found out.
async fn attack_all(servers: &[(String, Program)], only: &[String]) -> (Report, Vec<String>) {
    let wanted = |name: &str| only.is_empty() || only.iter().any(|word| name.contains(word.as_str()));
    let (mut report, mut failures) = (Report::default(), Vec::new());
    for (name, program) in servers {
        if wanted("checks") {
            eprintln!("{name}: checks");
            for found in [access::check(name, program).await, poison::check(name, program).await] {
                match found {
                    Ok(findings) => report.findings.extend(findings),
                    Err(error) => failures.push(format!("{name}: checks: {error}")),
                }
            }
        }
    }
    for attack in Attack::all().filter(|attack| wanted(attack.name)) {
        for (name, program) in servers {
            eprintln!("{name}: {}", attack.name);
            match measure::measure(&attack, name, program).await {
                Ok(row) => report.rows.push(row),
                Err(error) => failures.push(format!("{name}: {}: {error}", attack.name)),
            }
        }
    }
    (report, failures)
}
