use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::error::{Error, Result};
use crate::manager::Manager;
use crate::manager::connection::Connection;

/// The options that every program of a manager has. Public, so that a program with options of its own can take them in with
/// `#[command(flatten)]`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The kubeconfig to use [default: $KUBECONFIG, ~/.kube/config, or the service account of the pod]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Work only while holding a Lease, so that one of several replicas works
    #[arg(long)]
    leader_elect: bool,
    /// The name of the Lease [default: the name of the program]
    #[arg(long, value_name = "NAME", requires = "leader_elect")]
    lease_name: Option<String>,
    /// The namespace of the Lease [default: that of the pod, or of the context]
    #[arg(long, value_name = "NAMESPACE", requires = "leader_elect")]
    lease_namespace: Option<String>,
    /// Serve /healthz, /readyz and /metrics here, for instance 0.0.0.0:8080
    #[arg(long, value_name = "ADDRESS")]
    metrics_addr: Option<SocketAddr>,
    /// How many seconds running reconciles may take to end
    #[arg(long, value_name = "SECONDS", default_value = "30")]
    grace: u64,
}

#[derive(Parser)]
#[command(disable_version_flag = true)]
struct Command {
    #[command(flatten)]
    args: Args,
}

impl Manager {
    /// A manager as the command line of the program says; named after the program. Prints help and mistakes as programs do,
    /// and ends the process then.
    ///
    /// `--kubeconfig`, `--context`, `--leader-elect`, `--lease-name`, `--lease-namespace`, `--metrics-addr`, `--grace`.
    pub fn from_args() -> Result<Self> {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        let program = arguments.first().map(std::path::Path::new).and_then(std::path::Path::file_stem);
        let name = program.and_then(std::ffi::OsStr::to_str).unwrap_or("operator").to_owned();
        match Command::try_parse_from(arguments) {
            Ok(command) => Ok(Self::with_args(name, command.args)),
            Err(error) => error.exit(),
        }
    }

    /// The same, with a name and options that were read already.
    pub fn with_args(name: impl Into<String>, args: Args) -> Self {
        let Args { kubeconfig, context, .. } = args;
        let mut manager = Self::with(name.into(), Connection::Infer { kubeconfig, context });
        manager.grace = Duration::from_secs(args.grace);
        manager.address = args.metrics_addr;
        if args.leader_elect {
            manager = manager.leader_election(watchkeeper_election::Options::default());
            if let Some(lease) = &mut manager.election {
                lease.namespace = args.lease_namespace;
                lease.name = args.lease_name;
            }
        }
        manager
    }
}

/// For programs that read their options from elsewhere.
impl std::str::FromStr for Args {
    type Err = Error;

    fn from_str(line: &str) -> Result<Self> {
        let words = std::iter::once("operator").chain(line.split_whitespace());
        Ok(Command::try_parse_from(words).map_err(|error| Error::message(error.to_string()))?.args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_reach_the_manager() {
        let args: Args =
            "--leader-elect --lease-name web --metrics-addr 127.0.0.1:0 --grace 5".parse().unwrap();
        let manager = Manager::with_args("demo", args);
        assert_eq!(manager.grace, Duration::from_secs(5));
        assert_eq!(manager.address, Some("127.0.0.1:0".parse().unwrap()));
        let lease = manager.election.unwrap().place("demo", "shop");
        assert_eq!(lease.to_string(), "shop/web");
    }

    #[test]
    fn a_lease_without_election_is_a_mistake() {
        let error = "--lease-name web".parse::<Args>().unwrap_err().to_string();
        assert!(error.contains("--leader-elect"), "{error}");
    }
}
