//! A run: the programs, the servers, and what was found so far.

use std::path::PathBuf;

use watchkeeper_bench_report::{Report, Row};
use watchkeeper_bench_target::{Peer, Result};

use crate::child::Programs;
use crate::rows::NOTES;
use crate::server::{Server, Which};
use crate::size::Size;

/// What the program on client-go and controller-runtime is called.
const PROGRAM: &str = "go-clients";

/// Everything that rows need.
pub(crate) struct Bench {
    pub(crate) size: Size,
    pub(crate) programs: Programs,
    pub(crate) report: Report,
    binary: PathBuf,
    /// Each started when it is needed first, or why it could not be.
    ours: Option<std::result::Result<Server, String>>,
    real: Option<std::result::Result<Server, String>>,
}

impl Bench {
    /// Measures some groups.
    pub(crate) async fn run(binary: PathBuf, worker: PathBuf, size: Size, groups: &[&'static str]) -> Report {
        let programs = Programs { ours: worker, peer: program() };
        let mut bench = Self { size, programs, report: Report::default(), binary, ours: None, real: None };
        for group in groups {
            match *group {
                "informers" => bench.informers().await,
                "queue-peers" => bench.queue().await,
                _ => bench.reconcile().await,
            }
        }
        bench.report.notes.extend(NOTES.iter().map(|note| (*note).to_owned()));
        bench.report
    }

    /// A server with everything in it.
    pub(crate) async fn server(&mut self, which: Which) -> std::result::Result<&mut Server, String> {
        let place = match which {
            Which::Ours => &mut self.ours,
            Which::Real => &mut self.real,
        };
        if place.is_none() {
            let server = match which {
                Which::Ours => Server::ours(&self.binary, self.size).await,
                Which::Real => Server::real(self.size).await,
            };
            *place = Some(server.map_err(|error| error.to_string()));
        }
        match place {
            Some(Ok(server)) => Ok(server),
            Some(Err(why)) => Err(why.clone()),
            None => Err("there is no server".into()),
        }
    }

    /// The server that was started, and the programs to measure with it.
    pub(crate) async fn parts(&mut self, which: Which) -> Result<(&mut Server, &Programs)> {
        self.server(which).await?;
        let place = match which {
            Which::Ours => &mut self.ours,
            Which::Real => &mut self.real,
        };
        match place {
            Some(Ok(server)) => Ok((server, &self.programs)),
            _ => Err("there is no server".into()),
        }
    }

    /// Adds rows, or if they could not be measured, says so once for each.
    pub(crate) fn add(&mut self, group: &str, planned: Vec<String>, rows: Result<Vec<Row>>) {
        match rows {
            Ok(rows) => self.report.rows.extend(rows),
            Err(why) => {
                let failed = planned.into_iter().map(|what| Row::failed(group, what, why.to_string()));
                self.report.rows.extend(failed);
            }
        }
    }
}

/// The peers' program, or why it is not there.
fn program() -> std::result::Result<PathBuf, String> {
    let missing = || "the peer's programs are not built: make peers".to_owned();
    let program = Peer::find().map_err(|error| error.to_string())?.programs().join(PROGRAM);
    program.is_file().then_some(program).ok_or_else(missing)
}
