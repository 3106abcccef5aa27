//! What a server says about the kinds it has.

use serde::Deserialize;
use watchkeeper_wire::Uri;

use crate::client::Client;
use crate::error::Error;
use crate::exchange::{Ask, decode};
use crate::kind::dynamic::DynamicKind;

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
}

impl Client {
    /// Discovers a kind by its `apiVersion` and `kind`: asks the server for the plural and the scope.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if the server has no such kind (yet).
    ///
    /// ```no_run
    /// # use watchkeeper_client::{Client, DynamicObject, Error};
    /// # async fn example(client: &Client) -> Result<(), Error> {
    /// let certificates = client.discover("cert-manager.io/v1", "Certificate").await?;
    /// let all = client.dynamic(&certificates).live().list::<DynamicObject>().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn discover(&self, api_version: &str, kind: &str) -> Result<DynamicKind, Error> {
        let object = format!("the kind {kind} of {api_version}");
        let (path, group, version) = match api_version.split_once('/') {
            Some((group, version)) => (format!("/apis/{group}/{version}"), group, version),
            None => (format!("/api/{api_version}"), "", api_version),
        };
        let answer = self.ask(Ask::get(Uri::new(path), object.clone())).await?;
        let found: Resources = decode(&answer.body, &object)?;
        let whole = |resource: &&Resource| resource.kind == kind && !resource.name.contains('/');
        match found.resources.iter().find(whole) {
            Some(Resource { name, namespaced: true, .. }) => {
                Ok(DynamicKind::namespaced(group, version, kind, name))
            }
            Some(Resource { name, .. }) => Ok(DynamicKind::cluster_wide(group, version, kind, name)),
            None => Err(Error::NotFound { object }),
        }
    }
}
