//! `watchkeeper gateway`: routes that are custom resources.

mod ask;
mod handover;
mod key;
mod mock;
mod serve;
mod usage;

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use http::Uri;
use watchkeeper_gateway::{Settings, check, kinds, policy::Password};

use crate::cluster::ClusterArguments;
use crate::duration;
use crate::failure::Failure;
use ask::Explain;
use key::NewKey;
use mock::MockProvider;
pub(crate) use serve::part;
use usage::Usage;

/// Serve as an API gateway whose routes are custom resources
///
/// Objects come from files, a cluster, tables, etcd or lists behind URLs, in any mix. A change is served as soon as it is known, and no connection is
/// closed for it.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Gateway {
    #[command(subcommand)]
    command: Option<Command>,
    /// Where objects come from: kubernetes, or a URL; may be repeated. Of one object in two places, the first counts
    #[arg(long, value_name = "SOURCE", required = true)]
    from: Vec<String>,
    /// Have a listener listen elsewhere than its object says: NAMESPACE/NAME=ADDRESS:PORT, or NAME=... in the namespace default
    #[arg(long, value_name = "NAME=ADDRESS")]
    listen: Vec<String>,
    /// Where Gateways of Gateway API listen that name no address: an address, or a network of which each Gateway gets an address of its own
    #[arg(long, value_name = "ADDRESSES", default_value = "127.0.0.1")]
    gateway_addresses: String,
    /// Where the admin endpoint is, or off
    #[arg(long, value_name = "ADDRESS", default_value = DEFAULT_ADMIN)]
    admin: String,
    /// Also serve /metrics, /livez and /readyz here, to everybody who can reach it
    #[arg(long, value_name = "ADDRESS")]
    metrics_addr: Option<SocketAddr>,
    /// Keep the last good state in this directory, and serve it when sources do not answer at the start
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Write a line of JSON for each request to this file; - is stdout
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
    /// Log one of so many requests; those that failed with a code from 500 are always logged
    #[arg(long, value_name = "N", default_value_t = 1, requires = "access_log")]
    access_log_sample: u64,
    /// Record calls of models in this directory, a line of JSON each
    #[arg(long, value_name = "DIR")]
    records: Option<PathBuf>,
    /// Record calls of models in a table of a PostgreSQL database: postgres://USER@HOST/DATABASE?table=NAME&passwordFile=FILE. The table is made if it is not there.
    /// Without --records, a start asks it what budgets were charged with
    #[arg(long, value_name = "URL")]
    records_database: Option<String>,
    /// Share budgets of models with the other replicas of this gateway, by LLMBudget objects in the cluster, or by a table of a PostgreSQL database if its URL is
    /// given; without it each replica has budgets of its own
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, default_missing_value = "kubernetes")]
    share_budgets: Option<String>,
    /// Export a span for each request to this collector, by OTLP over HTTP: http://127.0.0.1:4318. Backends get its traceparent
    #[arg(long, value_name = "URL")]
    otlp: Option<Uri>,
    /// Trace one of so many requests that come without a traceparent; of others, whoever began the trace decides
    #[arg(long, value_name = "N", default_value_t = 1, requires = "otlp")]
    otlp_sample: u64,
    /// After a signal, how long requests may take to end
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    grace: Duration,
    /// What to log to stderr: a level, or levels by module
    #[arg(long, value_name = "FILTER", default_value = "info,watchkeeper_informer=error")]
    log: String,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Where the admin endpoint is unless it is said.
pub(crate) const DEFAULT_ADMIN: &str = "127.0.0.1:9901";

const EXAMPLES: &str = "\
Examples:
  watchkeeper gateway --from file:examples/gateway             then: curl http://127.0.0.1:8080/hello
  watchkeeper gateway --from kubernetes --from file:./routes   what the cluster says counts more
  watchkeeper gateway --from 'postgres://me@host/db?table=routes&mode=notify' --state ./state
  watchkeeper gateway check examples/gateway                   are the files right?
  watchkeeper gateway explain GET http://127.0.0.1:8080/hello  which route serves it, and why?
  watchkeeper gateway --from file:examples/ai-gateway          models of many providers behind one API
  watchkeeper gateway usage --records DIR --by key,model       who used how much?
  watchkeeper gateway --from file:./objects --share-budgets=postgres://me@host/db --records-database postgres://me@host/db
  watchkeeper gateway crds | kubectl apply -f -                the kinds, for a cluster

Signals:
  SIGTERM, SIGINT  stops: requests may take as long as --grace says
  SIGUSR2          starts this program anew with the same arguments, hands its sockets to it when it is ready, and stops: nobody is refused

Exit codes:
  0  ended by a signal; check: no mistakes
  1  something failed; check: mistakes were found
  2  what was given cannot be: bad arguments, no kubeconfig";

#[derive(Subcommand)]
enum Command {
    Check(Check),
    Explain(Box<Explain>),
    Crds(Crds),
    /// Hash a password from stdin, for a GatewayPolicy
    Password,
    Key(NewKey),
    Mock(MockProvider),
    Usage(Usage),
}

/// Print the CustomResourceDefinitions of the gateway
#[derive(Args)]
struct Crds {
    /// Print those of Gateway API instead, with the fields that the gateway understands: for a cluster that has none
    #[arg(long)]
    gateway_api: bool,
}

/// Check the objects in files, and do nothing else
#[derive(Args)]
struct Check {
    /// A file, or a directory with files
    #[arg(value_name = "PATH")]
    path: PathBuf,
}

impl Gateway {
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        match self.command.take() {
            None => serve::run(self),
            Some(Command::Check(check)) => check.run(),
            Some(Command::Explain(explain)) => explain.run(),
            Some(Command::Crds(Crds { gateway_api: true })) => crds(kinds::standard::definitions()),
            Some(Command::Crds(Crds { gateway_api: false })) => crds(kinds::definitions()),
            Some(Command::Password) => password(),
            Some(Command::Key(key)) => key.run(),
            Some(Command::Mock(mock)) => mock.run(),
            Some(Command::Usage(usage)) => usage.run(),
        }
    }

    fn admin(&self) -> Result<Option<SocketAddr>, Failure> {
        if self.admin == "off" {
            return Ok(None);
        }
        let address: SocketAddr = self.admin.parse().map_err(|_| {
            Failure::input(format!(
                "--admin {:?} is neither off nor an address such as {DEFAULT_ADMIN}",
                self.admin
            ))
        })?;
        match address.ip().is_loopback() {
            true => Ok(Some(address)),
            false => Err(Failure::input(format!(
                "--admin {address} is not a loopback address: whoever can reach it can read the configuration"
            ))),
        }
    }
}

impl Check {
    fn run(self) -> Result<(), Failure> {
        let checked = check(&self.path, Settings::default())
            .map_err(|error| Failure::input(format!("{}: {error}", self.path.display())))?;
        let mut output = io::stdout().lock();
        let mut say = |line: String| writeln!(output, "{line}").map_err(Failure::running);
        for error in &checked.errors {
            say(format!("{error}"))?;
        }
        for warning in &checked.warnings {
            say(format!("{warning} (warning)"))?;
        }
        let path = self.path.display();
        match checked.errors.len() {
            0 => say(format!("{path}: no mistakes; objects: {}", checked.objects)),
            count => Err(Failure::running(format!("{path}: mistakes: {count}"))),
        }
    }
}

fn crds(definitions: Vec<impl serde::Serialize>) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    for definition in definitions {
        let value = serde_json::to_value(definition).map_err(Failure::running)?;
        write!(output, "---\n{}", watchkeeper_schema::yaml::encode(&value)).map_err(Failure::running)?;
    }
    Ok(())
}

fn password() -> Result<(), Failure> {
    let mut password = Vec::new();
    io::stdin().take(4096).read_to_end(&mut password).map_err(Failure::running)?;
    let password = password.strip_suffix(b"\n").unwrap_or(&password);
    if password.is_empty() {
        return Err(Failure::input("stdin has no password"));
    }
    let hashed = Password::hashed(password).map_err(Failure::running)?;
    writeln!(io::stdout(), "{hashed}").map_err(Failure::running)
}
