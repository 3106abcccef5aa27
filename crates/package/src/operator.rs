use serde_json::{Value, json};
use watchkeeper_description::{Description, Roles, Volume, When, roles};

use crate::definition::Definition;
use crate::error::Error;

/// The settings of a project: facts that its program does not know.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// The image without a tag: `registry.example.com/team/shop`. Default: the name of the operator.
    pub image: Option<String>,
    /// The version to ship. Default: that of the description, or `0.1.0`.
    pub version: Option<String>,
    /// The namespace that manifests are made for. Default: the name of the operator and `-system`.
    pub namespace: Option<String>,
    /// The purpose of the operator, in a sentence. Default: that of the description, which comes first if its program is one of several in an executable.
    pub about: Option<String>,
    /// The URL of the home page.
    pub homepage: Option<String>,
    /// The URL of the source code.
    pub repository: Option<String>,
    /// The licence, as an SPDX expression.
    pub license: Option<String>,
    /// The authors: `Name <mail>`.
    pub authors: Vec<String>,
    /// The keywords for catalogues.
    pub keywords: Vec<String>,
    /// The sample objects, for documentation and catalogues.
    pub samples: Vec<Value>,
    /// The namespaces that the overlay `namespaced` watches. Default: that of the operator.
    pub watch_namespaces: Vec<String>,
}

/// An operator to be shipped: its description, and the settings of its project.
#[derive(Clone, Debug)]
pub struct Operator<'a> {
    pub(crate) description: &'a Description,
    pub(crate) settings: &'a Settings,
    pub(crate) definitions: Vec<Definition<'a>>,
}

/// Replicas: one that leads and one that is warm.
const REPLICAS: u64 = 2;
/// The user and group that it runs as: above 10,000, so that it is nobody on a node.
pub(crate) const USER: u64 = 65532;

impl<'a> Operator<'a> {
    /// Takes a description.
    ///
    /// # Errors
    ///
    /// If its name is no DNS label, or a definition is none.
    pub fn new(description: &'a Description, settings: &'a Settings) -> Result<Self, Error> {
        let name = &description.name;
        if !is_label(name, 50) {
            return Err(Error::Name(name.clone()));
        }
        let mut namespaces = settings.namespace.iter().chain(&settings.watch_namespaces);
        if let Some(wrong) = namespaces.find(|namespace| !is_label(namespace, 63)) {
            return Err(Error::Namespace(wrong.clone()));
        }
        let definitions = description.definitions.iter().enumerate();
        let definitions =
            definitions.map(|(at, value)| Definition::read(at, value)).collect::<Result<_, _>>()?;
        Ok(Self { description, settings, definitions })
    }

    /// The definitions that it brings along.
    pub fn definitions(&self) -> &[Definition<'a>] {
        &self.definitions
    }

    pub(crate) fn name(&self) -> &str {
        &self.description.name
    }

    pub(crate) fn namespace(&self) -> String {
        self.settings.namespace.clone().unwrap_or_else(|| format!("{}-system", self.name()))
    }

    pub(crate) fn version(&self) -> &str {
        self.settings.version.as_deref().or(self.description.version.as_deref()).unwrap_or("0.1.0")
    }

    /// What it is for. A crate with several programs speaks of all of them, so that the program of such a crate is asked first.
    pub(crate) fn about(&self) -> String {
        let (crate_says, program_says) = (self.settings.about.as_ref(), self.description.about.as_ref());
        let about = match self.description.run.program {
            Some(_) => program_says.or(crate_says),
            None => crate_says.or(program_says),
        };
        about.cloned().unwrap_or_else(|| format!("The {} {}", self.component(), self.name()))
    }

    /// The objects to begin with that are of its own kinds, in versions that are served.
    pub(crate) fn samples(&self) -> Vec<&'a Value> {
        let is_own = |sample: &&Value| {
            self.definitions.iter().any(|definition| {
                let mut served = definition.versions().filter(|version| version.is("served"));
                sample["kind"] == definition.kind
                    && served.any(|one| sample["apiVersion"] == format!("{}/{}", definition.group, one.name))
            })
        };
        self.settings.samples.iter().filter(is_own).collect()
    }

    /// The image without a tag.
    pub(crate) fn repository(&self) -> &str {
        self.settings.image.as_deref().or(self.description.run.program.as_deref()).unwrap_or(self.name())
    }

    pub(crate) fn image(&self) -> String {
        format!("{}:{}", self.repository(), self.version())
    }

    /// Labels of everything that is the operator's.
    pub(crate) fn labels(&self) -> Value {
        json!({
            "app.kubernetes.io/name": self.name(),
            "app.kubernetes.io/component": self.component(),
            "app.kubernetes.io/managed-by": "watchkeeper",
        })
    }

    /// Labels that its pods are selected by. They cannot be changed once it is installed.
    pub(crate) fn selector(&self) -> Value {
        json!({"app.kubernetes.io/name": self.name(), "app.kubernetes.io/component": self.component()})
    }

    /// The rules that a cluster gives it: it elects a leader, and whoever installs it brings the definitions.
    pub(crate) fn roles(&self) -> Roles {
        roles(&self.description.rights, |when| when != When::InstallingDefinitions)
    }

    /// The rules where somebody else also keeps its webhook configurations and certificates.
    pub(crate) fn roles_without_webhooks(&self) -> Roles {
        let others = [When::InstallingDefinitions, When::ConfiguringWebhooks];
        roles(&self.description.rights, |when| !others.contains(&when))
    }

    /// The rules where only some namespaces are watched: what is everywhere is in each of these. What has no namespace stays everywhere.
    pub(crate) fn roles_in(&self, namespaces: &[String]) -> Roles {
        let mut rights = self.description.rights.clone();
        rights.limit_all(namespaces);
        roles(&rights, |when| when != When::InstallingDefinitions)
    }

    /// The Service that API servers ask webhooks through.
    pub(crate) fn webhook_service(&self) -> String {
        format!("{}-webhook", self.name())
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.description.metrics_port.as_ref().map(|port| port.port)
    }

    /// What it is among the parts of an application.
    pub(crate) fn component(&self) -> &str {
        &self.description.run.component
    }

    /// What it keeps, if it keeps something.
    pub(crate) fn volume(&self) -> Option<&Volume> {
        self.description.run.volume.as_ref()
    }

    /// What it keeps for its next run, if it keeps something.
    pub(crate) fn scratch(&self) -> Option<&Volume> {
        self.description.run.scratch.as_ref()
    }

    /// One that leads and one that is warm; one of what keeps something.
    pub(crate) fn replicas(&self) -> u64 {
        if self.volume().is_some() { 1 } else { REPLICAS }
    }

    /// Whether it asks for anything in the cluster that it runs in.
    pub(crate) fn has_rights(&self) -> bool {
        self.description.rights.iter().next().is_some()
    }

    /// The arguments that come first, under a name and in a namespace.
    pub(crate) fn first_arguments(&self, name: &str, namespace: &str) -> Vec<String> {
        let arguments = self.description.run.arguments.iter();
        arguments.map(|argument| argument.replace("{name}", name).replace("{namespace}", namespace)).collect()
    }

    /// The arguments of the program in a cluster.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = self.first_arguments(self.name(), &self.namespace());
        arguments.extend(self.definitions_argument());
        arguments.extend(self.election_argument());
        arguments.extend(self.metrics_argument());
        arguments
    }

    /// The arguments with which somebody else keeps its webhooks, with the certificate in this folder. Empty if that cannot be.
    pub(crate) fn webhook_arguments(&self, folder: &str) -> Vec<String> {
        let arguments = self.description.webhook_arguments.iter();
        arguments.map(|argument| argument.replace("{folder}", folder)).collect()
    }

    /// Leaves definitions to whoever installs it.
    pub(crate) fn definitions_argument(&self) -> Vec<String> {
        let option = self.description.install_option.as_deref();
        option.map(|option| format!("{option}=false")).into_iter().collect()
    }

    pub(crate) fn election_argument(&self) -> Vec<String> {
        let option = self.description.election.as_ref().and_then(|election| election.option.clone());
        option.into_iter().collect()
    }

    pub(crate) fn metrics_argument(&self) -> Vec<String> {
        let port = self.description.metrics_port.as_ref();
        let argument = port.and_then(|port| Some(format!("{}=0.0.0.0:{}", port.option.as_ref()?, port.port)));
        argument.into_iter().collect()
    }

    /// How long a pod may take to stop: what the program takes, and some time to hand over.
    pub(crate) fn grace(&self) -> u64 {
        self.description.grace_seconds.saturating_add(10)
    }
}

/// Whether a name is a DNS label of at most so many characters.
fn is_label(name: &str, length: usize) -> bool {
    let is_part = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    !name.is_empty()
        && name.len() <= length
        && name.chars().all(is_part)
        && !name.starts_with('-')
        && !name.ends_with('-')
}
