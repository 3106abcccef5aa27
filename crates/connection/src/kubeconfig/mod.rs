//! Kubeconfig files, read as kubectl reads them.

mod cluster;
mod context;
mod fields;
mod text;
mod user;

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use watchkeeper_schema::yaml;

use cluster::Cluster;
use context::Context;
use fields::Fields;
use user::User;

/// The content of one or several kubeconfig files, merged.
///
/// Files are read as kubectl reads them: of several, the first that has a cluster, a user or a context of a name wins with all of
/// it, and so does the first that has a current context. Relative paths are relative to the file that they are in. Nothing
/// but the files themselves is read until a [`Config`](crate::Config) becomes a connection.
///
/// ```no_run
/// use watchkeeper_connection::{Config, Kubeconfig, KubeconfigError};
///
/// let kubeconfig = Kubeconfig::read("shop.kubeconfig")?;
/// for context in kubeconfig.contexts() {
///     println!("{context}: {}", Config::from_kubeconfig(&kubeconfig, Some(context))?.url());
/// }
/// # Ok::<(), KubeconfigError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Kubeconfig {
    current_context: Option<String>,
    contexts: BTreeMap<String, Context>,
    clusters: BTreeMap<String, Cluster>,
    users: BTreeMap<String, User>,
}

/// The reason why a kubeconfig does not lead to a cluster. Nothing of a secret is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KubeconfigError {
    /// A file cannot be read, or is no kubeconfig.
    #[error("kubeconfig {}: {reason}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The mistake in it.
        reason: String,
    },
    /// There is no context of this name.
    #[error("there is no context {name:?} in the kubeconfig: {}", listed(.contexts))]
    NoContext {
        /// The name.
        name: String,
        /// The contexts of the kubeconfig.
        contexts: Vec<String>,
    },
    /// No context was chosen, here or there.
    #[error("the kubeconfig has no current context: {}", listed(.contexts))]
    NoCurrentContext {
        /// The contexts of the kubeconfig.
        contexts: Vec<String>,
    },
    /// The context does not say how to reach a server, or as whom.
    #[error("the kubeconfig cannot be used: {0}")]
    Unusable(String),
}

fn listed(contexts: &[String]) -> String {
    if contexts.is_empty() { "it has none".to_owned() } else { format!("it has {}", contexts.join(", ")) }
}

impl Kubeconfig {
    /// Reads one file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is not a kubeconfig.
    pub fn read(file: impl AsRef<Path>) -> Result<Self, KubeconfigError> {
        let file = file.as_ref();
        let failed = |reason: String| KubeconfigError::File { file: file.to_owned(), reason };
        let bytes = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
        // A folder as it is now, should the process go elsewhere.
        let folder = std::path::absolute(file).map_err(|error| failed(error.to_string()))?;
        let folder = folder.parent().unwrap_or(Path::new("/"));
        text::decode(bytes).and_then(|text| Self::parse(&text, folder)).map_err(failed)
    }

    /// Reads the files that `$KUBECONFIG` names, or else `~/.kube/config`. Files that do not exist are passed over; `None` if none
    /// of them does.
    ///
    /// # Errors
    ///
    /// If one of them cannot be read, or is not a kubeconfig.
    pub fn from_environment() -> Result<Option<Self>, KubeconfigError> {
        let files = Self::usual_files();
        let mut there = files.iter().filter(|file| file.exists()).peekable();
        if there.peek().is_none() {
            return Ok(None);
        }
        there.try_fold(Self::default(), |merged, file| Ok(merged.merge(Self::read(file)?))).map(Some)
    }

    /// The files that `$KUBECONFIG` names, or else `~/.kube/config`; whether they exist or not.
    pub fn usual_files() -> Vec<PathBuf> {
        let named = env::var_os("KUBECONFIG").unwrap_or_default();
        let named: Vec<PathBuf> =
            env::split_paths(&named).filter(|file| !file.as_os_str().is_empty()).collect();
        if named.is_empty() {
            return env::home_dir().map(|home| home.join(".kube").join("config")).into_iter().collect();
        }
        named
    }

    fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let value = yaml::read(text).map_err(|misread| misread.to_string())?.value;
        let value = if value.is_null() { Value::Object(serde_json::Map::new()) } else { value };
        let fields = Fields::of(&value, "the kubeconfig")?;
        for (field, expected) in [("kind", "Config"), ("apiVersion", "v1")] {
            if let Some(found) = fields.text(field)?
                && found != expected
            {
                return Err(format!("{field} is {found:?}, expected {expected:?}"));
            }
        }
        Ok(Self {
            current_context: fields.text("current-context")?,
            contexts: named(&fields, "contexts", "context", |fields| Context::read(&fields))?,
            clusters: named(&fields, "clusters", "cluster", |fields| Cluster::read(&fields, folder))?,
            users: named(&fields, "users", "user", |fields| User::read(&fields, folder))?,
        })
    }

    /// Adds what another has and this has not.
    #[must_use]
    pub fn merge(mut self, next: Self) -> Self {
        let Self { current_context, contexts, clusters, users } = next;
        self.current_context = self.current_context.or(current_context);
        add(&mut self.contexts, contexts);
        add(&mut self.clusters, clusters);
        add(&mut self.users, users);
        self
    }

    /// The name of the current context.
    pub fn current_context(&self) -> Option<&str> {
        self.current_context.as_deref()
    }

    /// The names of all contexts, sorted.
    pub fn contexts(&self) -> impl Iterator<Item = &str> {
        self.contexts.keys().map(String::as_str)
    }

    /// Whether there is no context in it.
    pub fn is_empty(&self) -> bool {
        self.contexts.is_empty()
    }
}

fn add<T>(to: &mut BTreeMap<String, T>, next: BTreeMap<String, T>) {
    for (name, entry) in next {
        to.entry(name).or_insert(entry);
    }
}

/// Reads a list of entries with a name: `clusters: [{name: a, cluster: {...}}]`.
fn named<T>(
    fields: &Fields<'_>,
    list: &str,
    entry: &str,
    read: impl Fn(Fields<'_>) -> Result<T, String>,
) -> Result<BTreeMap<String, T>, String> {
    let mut entries = BTreeMap::new();
    for item in fields.list(list)? {
        let item = Fields::of(item, list)?;
        let name = item.text("name")?.unwrap_or_default();
        let value = item.object(entry, &format!("{entry} {name:?}"))?;
        if entries.insert(name.clone(), read(value)?).is_some() {
            return Err(format!("{list} has {name:?} twice"));
        }
    }
    Ok(entries)
}

impl fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubeconfig")
            .field("current_context", &self.current_context)
            .field("contexts", &self.contexts().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
