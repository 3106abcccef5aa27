use std::collections::BTreeMap;
use std::sync::Arc;

use watchkeeper_client::Client;

/// One cluster: its name, unless it is the manager's own, and the client for it.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) client: Client,
}

/// The clusters that a manager knows: its own, and others by name.
#[derive(Clone)]
pub(crate) struct Clusters {
    own: Client,
    others: Arc<BTreeMap<Arc<str>, Client>>,
}

impl Clusters {
    pub(crate) fn new(own: Client, others: BTreeMap<Arc<str>, Client>) -> Self {
        Self { own, others: Arc::new(others) }
    }

    pub(crate) fn own(&self) -> &Client {
        &self.own
    }

    /// A client by name; `None` is the manager's own cluster.
    pub(crate) fn get(&self, name: Option<&str>) -> Option<&Client> {
        match name {
            None => Some(&self.own),
            Some(name) => self.others.get(name),
        }
    }

    /// The same clusters with other handles to them.
    pub(crate) fn map(&self, change: impl Fn(&Client) -> Client) -> Self {
        let others = self.others.iter().map(|(name, client)| (Arc::clone(name), change(client))).collect();
        Self { own: change(&self.own), others: Arc::new(others) }
    }

    /// Those that a controller watches: the named ones, or the manager's own.
    pub(crate) fn selected(&self, names: Option<&[Arc<str>]>) -> Result<Vec<Cluster>, String> {
        let Some(names) = names else {
            return Ok(vec![Cluster { name: None, client: self.own.clone() }]);
        };
        names
            .iter()
            .map(|name| {
                let client = self.others.get(name).cloned().ok_or_else(|| name.to_string())?;
                Ok(Cluster { name: Some(Arc::clone(name)), client })
            })
            .collect()
    }
}
