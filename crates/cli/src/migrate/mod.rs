//! `watchkeeper migrate`: has every object of a custom resource stored in the version that its definition stores now.
//!
//! A write that changes nothing is enough for that: the server stores what it writes in the storage version. When all objects were
//! written, no other version is stored any more, and `status.storedVersions` of the definition says so. Only then can an old version
//! be taken out of the definition.

mod definition;
mod objects;
mod state;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;

use clap::Args;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::Value;
use watchkeeper_connection::Connection;
use watchkeeper_wire::Status;

use crate::cluster::{ClusterArguments, reasons};
use crate::failure::Failure;
use definition::Definition;
use objects::{Counts, Migration};
use state::StateFile;

/// Store all objects of a custom resource in its storage version
///
/// Writes every object as it is, so that the server stores it in the version that the definition stores now, converted by its webhook
/// if it has one. Then the definition is told that no other version is stored any more, and old ones can be taken out of it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Migrate {
    /// The custom resource by any of its names, or in full: webapps.apps.example.com
    #[arg(value_name = "KIND")]
    kind: String,
    /// Have the server try every write, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Note in this file how far it came, and go on from there if it is run again
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// How many objects are written at a time
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    parallel: u16,
    /// Only say what went wrong
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

const EXAMPLES: &str = "\
Examples:
  watchkeeper migrate webapps --dry-run            would every object be accepted?
  watchkeeper migrate webapps                      write them, and drop old versions from status.storedVersions
  watchkeeper migrate webapps --state webapps.json and go on there after an interruption

Run again what was interrupted: what was written before costs a request, and is not written again.

Exit codes:
  0  every object is stored in the storage version, and the definition says so
  1  something failed; objects that could not be written are named, and storedVersions stay
  2  there is no such custom resource, or several";

impl Migrate {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::running)?;
        runtime.block_on(self.migrate())
    }

    async fn migrate(&self) -> Result<(), Failure> {
        let connection = self.cluster.find().await?.connection;
        let definition = Definition::find(&connection, &self.kind).await?;
        let name = definition.name();
        let (storage, stored) = (definition.storage(), definition.stored());
        if stored == [storage] && !self.dry_run {
            self.say(&format!("{name}: all objects are stored in {storage} already"));
            return Ok(());
        }
        self.say(&format!("{name}: stored in {}; objects are written in {storage}", stored.join(", ")));
        let state = StateFile::open(self.state.as_deref(), &definition)?;
        let is_terminal = io::stderr().is_terminal() && !self.quiet;
        let progress = |counts: &Counts| {
            if is_terminal {
                let _ = write!(io::stderr(), "\r{}\u{1b}[K", counts.progress());
            }
        };
        let migration = Migration {
            connection: &connection,
            definition: &definition,
            dry_run: self.dry_run,
            parallel: self.parallel.into(),
        };
        let counts = migration.run(state, progress).await;
        if is_terminal {
            let _ = writeln!(io::stderr());
        }
        let counts = counts?;
        self.say(&counts.to_string());
        if let Some(failed) = counts.failure(name) {
            return Err(failed);
        }
        if self.dry_run {
            self.say("nothing was written: this was a dry run");
            return Ok(());
        }
        let dropped = definition.forget_others(&connection).await?;
        StateFile::remove(self.state.as_deref());
        self.say(&format!("status.storedVersions: {storage}; dropped {}", dropped.join(", ")));
        Ok(())
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(io::stdout(), "{}", crate::terminal::lines(text));
        }
    }
}

/// The code and the body of an answer, whatever it says.
async fn call(
    connection: &Connection,
    method: &str,
    path: &str,
    content_type: &str,
    body: String,
) -> Result<(u16, Value), Failure> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .header("accept", "application/json")
        .body(body)
        .map_err(Failure::running)?;
    answer(connection, request).await
}

async fn answer(connection: &Connection, request: Request<String>) -> Result<(u16, Value), Failure> {
    let failed = |error: &dyn std::error::Error| Failure::running(reasons(error));
    let response = connection.send(request).await.map_err(|error| failed(&error))?;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.map_err(|error| Failure::running(error.to_string()))?;
    Ok((code, serde_json::from_slice(&body.to_bytes()).unwrap_or_default()))
}

/// What a server says of a request that it refused.
fn refusal(code: u16, body: &Value) -> String {
    let status = Status::read(body.to_string().as_bytes());
    match status.message.as_str() {
        "" => format!("the server answered {code}"),
        message => message.to_owned(),
    }
}
