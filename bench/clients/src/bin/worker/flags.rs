//! Flags, each with a value.

use std::collections::BTreeMap;
use std::str::FromStr;

use kube_core::discovery::ApiResource;
use watchkeeper_sources::kubernetes::{Connection, Kubernetes};

use crate::Result;

/// What a program was told.
pub(crate) struct Flags(BTreeMap<String, String>);

impl Flags {
    /// Pairs of `--name value`.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut flags = BTreeMap::new();
        while let Some(argument) = arguments.next() {
            let name = argument.strip_prefix("--").ok_or_else(|| format!("what is {argument:?}?"))?;
            flags.insert(name.to_owned(), arguments.next().ok_or_else(|| format!("--{name} needs a value"))?);
        }
        Ok(Self(flags))
    }

    /// The value of a flag, or what it is without it.
    pub(crate) fn get<T: FromStr>(&self, name: &str, default: T) -> Result<T> {
        match self.0.get(name) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| format!("--{name} {text} is not understood").into()),
        }
    }

    /// The value of a flag as text.
    pub(crate) fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.0.get(name).map_or(default, String::as_str)
    }

    /// The connection that the flags ask for.
    pub(crate) async fn connection(&self) -> Result<Connection> {
        Ok(Connection::from_kubeconfig(self.text("kubeconfig", ""), None).await?)
    }

    /// The kind that is to be watched, where it is to be watched.
    pub(crate) async fn source(&self) -> Result<Kubernetes> {
        let (kind, plural) = (self.text("kind", "Widget"), self.text("plural", "widgets"));
        let group = if kind == "Pod" { "" } else { "bench.example.com" };
        let resource = ApiResource {
            group: group.into(),
            version: "v1".into(),
            api_version: if group.is_empty() { "v1".into() } else { format!("{group}/v1") },
            kind: kind.into(),
            plural: plural.into(),
        };
        let source = Kubernetes::resource(self.connection().await?, &resource);
        Ok(match self.text("namespace", "") {
            "" => source,
            namespace => source.namespace(namespace),
        })
    }
}
