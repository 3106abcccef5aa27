use std::ffi::OsString;
#[cfg(all(any(feature = "server", feature = "webhooks"), unix))]
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Parser};

use crate::error::{Error, Result};
use crate::manager::target::Target;
use crate::manager::{Instead, Manager};

/// The options that the program of a manager has: which cluster, election, probes, log.
///
/// [`Manager::from_args`] reads them. A program with options of its own takes them in with `#[command(flatten)]` and hands them
/// to [`Manager::with_args`].
#[derive(Clone, Debug)]
pub struct Args(Flags);

// Not documented as a type: clap would take that for the description of the whole program.
#[derive(Clone, Debug, clap::Args)]
struct Flags {
    /// The kubeconfig to use [default: $KUBECONFIG, ~/.kube/config, or the service account of the pod]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Work only while holding a Lease, so that one of several replicas works
    #[cfg(feature = "election")]
    #[arg(long)]
    leader_elect: bool,
    /// The name of the Lease [default: the name of the program]
    #[cfg(feature = "election")]
    #[arg(long, value_name = "NAME", requires = "leader_elect")]
    lease_name: Option<String>,
    /// The namespace of the Lease [default: that of the pod, or of the context]
    #[cfg(feature = "election")]
    #[arg(long, value_name = "NAMESPACE", requires = "leader_elect")]
    lease_namespace: Option<String>,
    /// Serve /healthz, /readyz and /metrics here, for instance 0.0.0.0:8080
    #[cfg(all(feature = "server", unix))]
    #[arg(long, value_name = "ADDRESS")]
    metrics_addr: Option<SocketAddr>,
    /// Serve webhooks here [default: 0.0.0.0:9443 in a pod, a free port of 127.0.0.1 elsewhere]
    #[cfg(all(feature = "webhooks", unix))]
    #[arg(long, value_name = "ADDRESS")]
    webhook_addr: Option<SocketAddr>,
    /// The URL under which the API server reaches them, such as that of a tunnel: https://laptop.example.com:9443
    #[cfg(all(feature = "webhooks", unix))]
    #[arg(long, value_name = "URL", value_parser = https)]
    webhook_url: Option<String>,
    /// The Service under which it reaches them [default: the name of the program and -webhook, in a pod]
    #[cfg(all(feature = "webhooks", unix))]
    #[arg(long, value_name = "NAME", value_parser = namespace, conflicts_with = "webhook_url")]
    webhook_service: Option<String>,
    /// A folder with tls.crt and tls.key, and perhaps ca.crt, as cert-manager makes them [default: certificates of its own]
    #[cfg(all(feature = "webhooks", unix))]
    #[arg(long, value_name = "FOLDER")]
    webhook_cert_dir: Option<PathBuf>,
    /// Keep webhook configurations and conversions as they should be; off where the Operator Lifecycle Manager or somebody else does
    #[cfg(all(feature = "webhooks", unix))]
    #[arg(long, value_name = "BOOL", default_value = "true", action = clap::ArgAction::Set)]
    webhook_configurations: bool,
    /// Install the definitions of the program's own kinds and its webhook configurations; off where a chart or somebody else does
    #[arg(long, value_name = "BOOL", default_value = "true", action = clap::ArgAction::Set)]
    install_definitions: bool,
    /// Watch these namespaces only, and ask for rights in these only; a list with commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = namespace)]
    namespaces: Vec<String>,
    /// How many seconds running reconciles may take to end when the program stops
    #[arg(long, value_name = "SECONDS", default_value = "30")]
    grace: u64,
    /// What to log: a level (error, warn, info, debug, trace), or levels for modules, as in info,hyper=off [default: $RUST_LOG, or info]
    #[cfg(feature = "log")]
    #[arg(long, value_name = "FILTER", value_parser = crate::log::checked)]
    log: Option<String>,
    /// The form of the log [default: text on a terminal, json elsewhere]
    #[cfg(feature = "log")]
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    log_format: Option<String>,
}

#[derive(Parser)]
#[command(
    disable_version_flag = true,
    about = "Keeps the objects of a Kubernetes cluster as they are declared, until it is stopped with Ctrl-C or SIGTERM."
)]
struct Command {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// What can be done instead of running.
#[derive(Clone, Copy, Debug, clap::Subcommand)]
enum Verb {
    /// Print what the program is and what it asks of a cluster, as JSON; needs no cluster
    Describe,
    /// Ask the cluster whether it allows what the program needs; exits with 1 and the missing rules if not
    CheckAccess,
}

/// A name that a namespace can have.
fn namespace(text: &str) -> Result<String, String> {
    let is_part = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    let is_label = !text.is_empty()
        && text.len() <= 63
        && text.chars().all(is_part)
        && !text.starts_with('-')
        && !text.ends_with('-');
    match is_label {
        true => Ok(text.to_owned()),
        false => Err("a namespace is a DNS label: lower-case letters, digits and hyphens".to_owned()),
    }
}

/// A URL that an API server takes for a webhook.
#[cfg(all(feature = "webhooks", unix))]
fn https(text: &str) -> Result<String, String> {
    match text.strip_prefix("https://").filter(|host| !host.is_empty() && !host.contains(['?', '#', '@'])) {
        Some(_) => Ok(text.trim_end_matches('/').to_owned()),
        None => Err("API servers ask webhooks by https://HOST:PORT, without a query".to_owned()),
    }
}

impl clap::Args for Args {
    fn augment_args(command: clap::Command) -> clap::Command {
        Flags::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Flags::augment_args_for_update(command)
    }
}

impl clap::FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Flags::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Manager {
    /// A manager as the command line of the program says; named after the program.
    ///
    /// `--kubeconfig`, `--context`, `--leader-elect`, `--lease-name`, `--lease-namespace`, `--metrics-addr`, `--install-definitions`,
    /// `--namespaces`, `--grace`, `--log`, `--log-format`, and `--help`; `describe` and `check-access` instead of running, which
    /// [`run`](Self::run) does. A program that connects to anything before it calls this cannot be described without that.
    ///
    /// As `clap::Parser::parse` does, this prints help and mistakes and ends the process then.
    /// [`try_from_args`](Self::try_from_args) returns them.
    pub fn from_args() -> Self {
        Self::parsed(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// A manager as a command line says, the name of the program first. A mistake in it, and the help if that is asked for, is an
    /// error whose text can be printed.
    pub fn try_from_args<A: Into<OsString> + Clone>(arguments: impl IntoIterator<Item = A>) -> Result<Self> {
        Self::parsed(arguments).map_err(|error| Error::message(error.to_string()))
    }

    fn parsed<A: Into<OsString> + Clone>(
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Self, clap::Error> {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let program = arguments.first().map(std::path::Path::new).and_then(std::path::Path::file_stem);
        let name = program.and_then(std::ffi::OsStr::to_str).unwrap_or("operator").to_owned();
        let Command { flags, verb } = Command::try_parse_from(arguments)?;
        let mut manager = Self::with_args(name, Args(flags));
        manager.about.instead = verb.map(|verb| match verb {
            Verb::Describe => Instead::Describe,
            Verb::CheckAccess => Instead::CheckAccess,
        });
        Ok(manager)
    }

    /// A manager of this name, with options that were read already.
    ///
    /// ```no_run
    /// use clap::Parser;
    /// use watchkeeper_runtime::{Args, Manager};
    ///
    /// /// Greets everybody.
    /// #[derive(Parser)]
    /// struct Greeter {
    ///     /// What to say
    ///     #[arg(long, default_value = "Hello")]
    ///     greeting: String,
    ///     #[command(flatten)]
    ///     args: Args,
    /// }
    ///
    /// let greeter = Greeter::parse();
    /// let manager = Manager::with_args("greeter", greeter.args);
    /// ```
    pub fn with_args(name: impl Into<String>, Args(flags): Args) -> Self {
        let Flags { kubeconfig, context, .. } = flags;
        let mut manager = Self::with(name.into(), Target::Infer { kubeconfig, context });
        manager.grace = Duration::from_secs(flags.grace);
        manager.namespaces = flags.namespaces;
        manager.about.has_options = true;
        manager.about.keeps_definitions = !flags.install_definitions;
        #[cfg(all(feature = "server", unix))]
        {
            manager.address = flags.metrics_addr;
        }
        #[cfg(all(feature = "webhooks", unix))]
        {
            let options = &mut manager.webhooks.options;
            options.address = flags.webhook_addr;
            options.reached = match (flags.webhook_url, flags.webhook_service) {
                _ if !flags.webhook_configurations => watchkeeper_webhook::Reached::Elsewhere,
                (Some(url), _) => watchkeeper_webhook::Reached::Url(url),
                (None, Some(name)) => watchkeeper_webhook::Reached::Service(name),
                (None, None) => watchkeeper_webhook::Reached::Automatically,
            };
            if let Some(folder) = flags.webhook_cert_dir {
                options.certificates = watchkeeper_webhook::Certificates::Files(folder);
            }
        }
        #[cfg(feature = "election")]
        if flags.leader_elect {
            manager = manager.leader_election(watchkeeper_election::ElectionOptions::default());
            if let Some(lease) = &mut manager.election {
                lease.namespace = flags.lease_namespace;
                lease.name = flags.lease_name;
            }
        }
        manager
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(line: &str) -> Result<Manager> {
        Manager::try_from_args(std::iter::once("/bin/demo").chain(line.split_whitespace()))
    }

    #[test]
    fn the_options_reach_the_manager() {
        let line = "--leader-elect --lease-name web --metrics-addr 127.0.0.1:0 --grace 5 --log debug";
        let manager = manager(line).unwrap();
        assert_eq!(manager.name, "demo");
        assert_eq!(manager.grace, Duration::from_secs(5));
        assert_eq!(manager.address, Some("127.0.0.1:0".parse().unwrap()));
        let lease = manager.election.unwrap().place("demo", "shop");
        assert_eq!(lease.to_string(), "shop/web");
    }

    #[test]
    fn mistakes_are_named() {
        let error = manager("--lease-name web").unwrap_err().to_string();
        assert!(error.contains("--leader-elect"), "{error}");
        let error = manager("--log info,hyper=loud").unwrap_err().to_string();
        assert!(error.contains("info,hyper=loud"), "{error}");
    }

    #[test]
    fn the_help_is_for_those_who_run_the_program() {
        let help = manager("--help").unwrap_err().to_string();
        assert!(help.starts_with("Keeps the objects of a Kubernetes cluster"), "{help}");
        for option in ["--kubeconfig <FILE>", "--leader-elect", "--log <FILTER>", "--help"] {
            assert!(help.contains(option), "{option} is not in {help}");
        }
    }

    #[test]
    fn a_program_with_options_of_its_own_keeps_its_description() {
        /// Greets everybody.
        #[derive(Parser)]
        struct Greeter {
            #[command(flatten)]
            args: Args,
        }
        let help = Greeter::try_parse_from(["greeter", "--help"]).err().unwrap().to_string();
        assert!(help.starts_with("Greets everybody"), "{help}");
        let greeter = Greeter::try_parse_from(["greeter", "--grace", "7"]).unwrap();
        assert_eq!(Manager::with_args("greeter", greeter.args).grace, Duration::from_secs(7));
    }
}
