//! `watchkeeper generate`: what an operator is shipped with, from what its program says about itself.

mod described;
mod earlier;
mod folder;
mod project;
mod types;

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use watchkeeper_package::{
    self as package, Difference, Error, Finding, Operator, RENDERERS, Renderer, Severity,
};

use crate::cargo::Package;
use crate::failure::Failure;
use crate::terminal;
use described::Described;
use folder::Folder;

/// Write what an operator is shipped with: definitions, roles, manifests, a chart, alerts, documentation
///
/// The program is asked to describe itself (as `cargo run -- describe` in this folder does), and everything is made from that. Files that are generated are never edited: --check finds those that were, and those that the code has outrun. chart/values.yaml and chart/Chart.yaml are written once and yours from then on, but for appVersion and what Artifact Hub shows of kinds.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_help_heading = "Instead")]
pub(crate) struct Generate {
    #[command(subcommand)]
    instead: Option<Instead>,
    /// What to write; may be several
    #[arg(value_enum, value_name = "WHAT", default_value = "all")]
    what: Vec<What>,
    /// Where to
    #[arg(long, value_name = "DIR", default_value = "deploy")]
    output: PathBuf,
    /// Write nothing, and fail if something would be written: for CI
    #[arg(long)]
    check: bool,
    /// Take the description from a file, - is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "binary")]
    description: Option<PathBuf>,
    /// Ask this program instead of the crate in this folder
    #[arg(long, value_name = "PROGRAM")]
    binary: Option<PathBuf>,
    /// The image without a tag [default: `image` of [package.metadata.watchkeeper], or the name of the operator]
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// The version to ship [default: that of the package]
    #[arg(long = "release", value_name = "VERSION")]
    version: Option<String>,
    /// The namespace of manifests [default: `namespace` of [package.metadata.watchkeeper], or NAME-system]
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Objects to begin with, for documentation and catalogs; may be repeated [default: the files of samples/ of the package]
    #[arg(long, value_name = "FILE|DIR")]
    samples: Vec<PathBuf>,
    /// The namespaces that the overlay `namespaced` watches; a list with commas [default: `watch-namespaces` of [package.metadata.watchkeeper], or that of manifests]
    #[arg(long, value_name = "NAMESPACES", value_delimiter = ',')]
    watch_namespaces: Vec<String>,
    /// Fail if the definitions break objects of earlier ones, in this file or folder
    #[arg(long, value_name = "FILE|DIR")]
    against: Option<PathBuf>,
    /// Fail on warnings about definitions, too
    #[arg(long)]
    strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  watchkeeper generate                          everything, into deploy/
  watchkeeper generate crds rbac                the definitions and the roles
  watchkeeper generate --check                  is deploy/ what the code says?
  watchkeeper generate crds --against released/crds
  watchkeeper generate chart --image registry.example.com/team/shop --release 1.2.0
  my-operator describe | watchkeeper generate --description - --output /tmp/deploy
  watchkeeper generate types certificates.yaml --output src/certificate.rs

What can be written:
  all          everything
  crds         the CustomResourceDefinitions, one file each, after a look for mistakes in them
  rbac         the service account with exactly the rights that the program declares
  install      everything in one file, for kubectl apply
  kustomize    a base, and overlays
  chart        a Helm chart
  olm          a bundle and a catalog for the Operator Lifecycle Manager, where that can install the program
  docs         the reference of the API, as Markdown
  schemas      JSON Schemas, for editors and kubeconform
  monitoring   alerts, monitors and dashboards of the metrics that the program has
  artifacthub  what Artifact Hub reads about a repository of charts
  types        Rust types of somebody else's definition; `generate types --help` tells more

Exit codes:
  0  written, or with --check: nothing differs
  1  something failed; a mistake in a definition, a change that breaks, or with --check a file that differs
  2  what was given cannot be: bad arguments, a program that does not describe itself; nothing is written";

/// What is done instead.
#[derive(clap::Subcommand)]
enum Instead {
    Types(types::Types),
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    All,
    Crds,
    Rbac,
    Install,
    Kustomize,
    Chart,
    Olm,
    Docs,
    Schemas,
    Monitoring,
    Artifacthub,
}

impl Generate {
    /// Writes or checks.
    pub(crate) fn run(self) -> Result<(), Failure> {
        if let Some(Instead::Types(types)) = self.instead {
            return types.run();
        }
        let is_told = self.description.is_some() || self.binary.is_some();
        // What Cargo knows of the crate here is taken if it is the crate of this operator.
        let package = if is_told { Package::here().ok() } else { Some(Package::here()?) };
        let described =
            Described::read(self.description.as_deref(), self.binary.as_deref(), package.as_ref())?;
        let is_its = |package: &&Package| {
            let run = described.0.run.program.as_ref().unwrap_or(&described.0.name);
            package.program().is_ok_and(|program| program == *run)
        };
        let mut settings = package.as_ref().filter(is_its).map(project::settings).unwrap_or_default();
        for (given, setting) in [
            (&self.image, &mut settings.image),
            (&self.version, &mut settings.version),
            (&self.namespace, &mut settings.namespace),
        ] {
            if given.is_some() {
                setting.clone_from(given);
            }
        }
        if !self.samples.is_empty() {
            settings.samples = project::given_samples(&self.samples)?;
        }
        if !self.watch_namespaces.is_empty() {
            settings.watch_namespaces.clone_from(&self.watch_namespaces);
        }
        let operator = Operator::new(&described.0, &settings).map_err(Failure::input)?;
        self.judge(&operator)?;
        let renderers = self.renderers();
        let mut files = Vec::new();
        for renderer in &renderers {
            match (renderer.render)(&operator) {
                Ok(rendered) => files.extend(rendered),
                // Whoever asks for everything gets everything else.
                Err(none @ Error::Bundle { .. }) if !self.what.contains(&What::Olm) => {
                    let _ = writeln!(io::stderr(), "note: {}", terminal::one_line(&none.to_string()));
                }
                Err(error) => return Err(Failure::input(error)),
            }
        }
        let folder = Folder::new(&self.output);
        let there = folder.read()?;
        let owned = renderers.iter().flat_map(|renderer| renderer.owns.iter().copied());
        let plan = package::plan(&files, &there, owned);
        match self.check {
            true => self.report(&plan),
            false => {
                folder.apply(&plan)?;
                let shown = self.output.display();
                say(&format!(
                    "{shown}: {} written, {} as before",
                    plan.len(),
                    files.len().saturating_sub(plan.len())
                ));
                Ok(())
            }
        }
    }

    fn renderers(&self) -> Vec<&'static Renderer> {
        let is_asked_for = |renderer: &&Renderer| {
            let names = self.what.iter().filter_map(ValueEnum::to_possible_value);
            names.map(|name| name.get_name().to_owned()).any(|name| name == "all" || name == renderer.name)
        };
        RENDERERS.iter().filter(is_asked_for).collect()
    }

    /// Looks for mistakes in the definitions, and for what breaks earlier ones.
    fn judge(&self, operator: &Operator<'_>) -> Result<(), Failure> {
        let mut findings: Vec<Finding> = operator.definitions().iter().flat_map(package::lint).collect();
        if let Some(path) = &self.against {
            findings.extend(earlier::compare(path, operator.definitions())?);
        }
        let mut told = String::new();
        for finding in &findings {
            told.push_str(&terminal::one_line(&finding.to_string()));
            told.push('\n');
        }
        let _ = io::stderr().write_all(told.as_bytes());
        let is_fatal = |finding: &&Finding| self.strict || finding.severity == Severity::Error;
        match findings.iter().filter(is_fatal).count() {
            0 => Ok(()),
            1 => Err(Failure::running("nothing written: the definitions have one mistake, told above")),
            count => Err(Failure::running(format!(
                "nothing written: the definitions have {count} mistakes, told above"
            ))),
        }
    }

    /// Says which files differ.
    fn report(&self, plan: &[Difference<'_>]) -> Result<(), Failure> {
        let shown = self.output.display();
        if plan.is_empty() {
            say(&format!("{shown} is what the code says"));
            return Ok(());
        }
        for difference in plan {
            let what = match difference {
                Difference::Missing(_) => "is missing",
                Difference::Changed(_) => "differs",
                Difference::Outdated(_) | Difference::Unwritable(..) => "is older than the program",
                Difference::Stale(_) => "is left from earlier",
            };
            say(&format!("{shown}/{} {what}", difference.path()));
        }
        let files = if plan.len() == 1 { "a file differs" } else { "files differ" };
        Err(Failure::running(format!(
            "{shown}: {files}: run `watchkeeper generate` and commit what it writes"
        )))
    }
}

/// A line on stdout. If nobody listens, nobody misses it.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}
