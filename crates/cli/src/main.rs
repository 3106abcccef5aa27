//! The `watchkeeper` command.
//!
//! Every subcommand is a module with its arguments and a `run`. What went wrong is one line on stderr; the exit code is
//! 2 if the arguments or files that were given are at fault, 1 if something failed while running.
//!
//! Called as `kube-apiserver`, `etcd` or `kubectl`, as the links are named that `watchkeeper envtest` makes, it takes the
//! place of that program.

mod admission_plugins;
mod cargo;
mod caution;
mod cluster;
mod completion;
mod controllers;
mod describe;
mod duration;
mod envtest;
mod etcd;
mod failure;
mod gateway;
mod generate;
mod host;
mod image;
mod kube_apiserver;
mod kubeconfig;
mod logging;
mod migrate;
mod monitor;
mod new;
mod run;
mod serve;
mod stopping;
mod storage;
mod terminal;
mod up;
mod usage;
mod version;
mod watch;
mod webhook;

use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;

/// Watches custom resources and drives the world to the state they declare.
#[derive(Parser)]
#[command(name = "watchkeeper", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
`watchkeeper help COMMAND` has examples.

Exit codes:
  0  all went well
  1  something failed
  2  what was given cannot be: bad arguments, files or names";

#[derive(Subcommand)]
enum Command {
    New(new::New),
    Generate(Box<generate::Generate>),
    Image(Box<image::Image>),
    Up(up::Up),
    Serve(Box<serve::Serve>),
    Watch(Box<watch::Watch>),
    Run(Box<run::Run>),
    Gateway(Box<gateway::Gateway>),
    Describe(describe::Describe),
    Kubeconfig(kubeconfig::Kubeconfig),
    Webhook(Box<webhook::Webhook>),
    Migrate(migrate::Migrate),
    Storage(storage::Storage),
    Envtest(envtest::Envtest),
    Completion(completion::Completion),
    Version(version::Version),
}

fn main() -> ExitCode {
    let start = Instant::now();
    let mut arguments = env::args_os();
    let called = arguments.next().unwrap_or_default();
    let name = Path::new(&called).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let arguments = || arguments.map(|argument| argument.to_string_lossy().into_owned()).collect::<Vec<_>>();
    let (name, done) = match name {
        "kube-apiserver" => (name, kube_apiserver::run(&arguments(), start)),
        "etcd" => (name, etcd::run(&arguments())),
        "kubectl" => (name, Err(envtest::no_kubectl())),
        _ => ("watchkeeper", run(start)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(io::stderr(), "{name}: {}", terminal::lines(&failure.to_string()));
            failure.exit_code()
        }
    }
}

fn run(start: Instant) -> Result<(), Failure> {
    match usage::parse::<Arguments>()?.command {
        Command::New(new) => new.run(),
        Command::Generate(generate) => generate.run(),
        Command::Image(image) => image.run(),
        Command::Up(up) => up.run(start),
        Command::Serve(serve) => serve.run(start),
        Command::Watch(watch) => watch.run(),
        Command::Run(run) => run.run(),
        Command::Gateway(gateway) => gateway.run(),
        Command::Describe(describe) => describe.run(),
        Command::Kubeconfig(kubeconfig) => kubeconfig.run(),
        Command::Webhook(webhook) => webhook.run(),
        Command::Migrate(migrate) => migrate.run(),
        Command::Storage(storage) => storage.run(),
        Command::Envtest(envtest) => envtest.run(),
        Command::Completion(completion) => completion.run(&mut Arguments::command()),
        Command::Version(version) => version.run(),
    }
}
