//! Whether the cluster allows what the program declares.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use http::Request;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Client;
use watchkeeper_connection::Connection;
use watchkeeper_description::{Namespaces, Right, Rights, Verbs, When, roles};

use crate::error::{Error, Result};
use crate::health::Checks;
use crate::manager::tasks::Task;
use crate::manager::{Manager, describe};

/// How many questions are asked at the same time.
const AT_ONCE: usize = 8;
/// How long to wait before what was missing is asked for again.
const RETRY_DELAY: Duration = Duration::from_secs(30);

/// What is to be asked.
pub(crate) struct Access {
    rights: Arc<Rights>,
    needed: BTreeSet<When>,
    own_namespace: String,
}

#[derive(Deserialize)]
struct Review {
    status: Allowed,
}

#[derive(Deserialize)]
struct Allowed {
    #[serde(default)]
    allowed: bool,
}

impl Manager {
    /// What this program may need, as it was started.
    pub(super) fn needed(&self) -> BTreeSet<When> {
        let installs = (!self.about.keeps_definitions).then_some(When::InstallingDefinitions);
        let elects = self.election.as_ref().map(|_| When::ElectingLeader);
        // Where others keep the webhooks, the rights for that are not among those of the program.
        let configures = Some(When::ConfiguringWebhooks);
        [Some(When::Always), installs, configures, elects].into_iter().flatten().collect()
    }

    /// Asks the cluster, and says what is missing.
    pub(super) async fn check_access(self) -> Result<()> {
        let (rights, needed) = (Arc::new(self.rights()), self.needed());
        let connection = self.target.connect().await.map_err(super::StartError::from)?;
        let access = Access::new(rights, needed, connection.default_namespace());
        match access.missing(&connection).await {
            Ok(missing) if missing.iter().next().is_none() => {
                describe::say("the cluster allows everything that the program asks for")
            }
            Ok(missing) => Err(Error::message(tell(&missing))),
            Err(error) => Err(Error::message(format!("cannot ask the cluster what is allowed: {error}"))),
        }
    }
}

impl Access {
    pub(super) fn new(rights: Arc<Rights>, needed: BTreeSet<When>, own_namespace: &str) -> Self {
        Self { rights, needed, own_namespace: own_namespace.to_owned() }
    }

    /// Asks until nothing is missing, and tells readiness and the log meanwhile. A cluster that does not answer says nothing.
    pub(super) fn task(self, ready: &Checks) -> Task {
        let found: Arc<Mutex<Option<String>>> = Arc::default();
        let told = Arc::clone(&found);
        ready.set("access", Arc::new(move || found.lock().clone().map_or(Ok(()), Err)));
        Task::once("access".to_owned(), move |client: Client, stop: CancellationToken| async move {
            loop {
                let asked = tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    asked = self.missing(client.connection()) => asked,
                };
                match asked {
                    Ok(missing) if missing.iter().next().is_none() => {
                        *told.lock() = None;
                        return Ok(());
                    }
                    Ok(missing) => {
                        let text = tell(&missing);
                        if told.lock().replace(text.clone()).is_none_or(|before| before != text) {
                            tracing::warn!("{text}");
                        }
                    }
                    Err(error) => tracing::debug!(%error, "cannot ask the cluster what is allowed"),
                }
                tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    () = tokio::time::sleep(RETRY_DELAY) => {}
                }
            }
        })
    }

    /// The rights that are needed and not allowed.
    async fn missing(&self, connection: &Connection) -> Result<Rights, String> {
        let questions = self.questions();
        let asked = questions.into_iter().map(|(right, place)| allowed(connection.clone(), right, place));
        let mut answers = futures_util::stream::iter(asked).buffered(AT_ONCE);
        let mut missing = Rights::default();
        while let Some(answer) = answers.next().await {
            if let Some(right) = answer? {
                missing.add(right);
            }
        }
        Ok(missing)
    }

    /// Every right, verb by verb, name by name and place by place. What is created has no name to be asked for.
    fn questions(&self) -> Vec<(Right, String)> {
        let mut questions = Vec::new();
        for right in self.rights.iter().filter(|right| self.needed.contains(&right.when)) {
            // Asked for by a plug-in of the server that few have.
            if right.subresource == "finalizers" {
                continue;
            }
            let places = match &right.namespaces {
                Namespaces::Own => vec![self.own_namespace.clone()],
                Namespaces::These(names) => names.clone(),
                _ => vec![String::new()],
            };
            for verbs in right.verbs.iter() {
                let named = !right.names.is_empty() && verbs != Verbs::CREATE;
                let names = match named {
                    true => right.names.iter().map(|name| vec![name.clone()]).collect(),
                    false => vec![right.names.clone()],
                };
                for names in names {
                    let question = Right { verbs, names, ..right.clone() };
                    questions.extend(places.iter().map(|place| (question.clone(), place.clone())));
                }
            }
        }
        questions
    }
}

/// The name that a question is about: [`Access::questions`] has one for each. What is created has none yet.
fn asked_name(right: &Right) -> &str {
    right.names.first().filter(|_| right.verbs != Verbs::CREATE).map_or("", String::as_str)
}

/// The right, if it is not allowed.
async fn allowed(connection: Connection, right: Right, place: String) -> Result<Option<Right>, String> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": right.verbs.to_string(),
            "group": right.resource.group,
            "resource": right.resource.plural,
            "subresource": right.subresource,
            "namespace": place,
            "name": asked_name(&right),
        }},
    });
    let request = Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(review.to_string().into_bytes())
        .map_err(|error| error.to_string())?;
    let answer = connection.request(request).await.map_err(|error| error.to_string())?;
    let review: Review = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
    Ok((!review.status.allowed).then_some(right))
}

/// What is missing, with the rules to add.
fn tell(missing: &Rights) -> String {
    format!(
        "the cluster does not allow all that this program does; add these rules:\n{}",
        roles(missing, |_| true).yaml()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use watchkeeper_description::Resource;

    #[test]
    fn every_name_of_a_right_is_asked_for_and_what_is_created_has_none() {
        let resource = Resource {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            kind: "CustomResourceDefinition".into(),
            plural: "customresourcedefinitions".into(),
            namespaced: false,
        };
        let mut right = Right::of(resource, Verbs::GET | Verbs::CREATE, "installs its definitions");
        right.names = vec!["shops.example.com".into(), "carts.example.com".into()];
        let access = Access::new(Arc::new([right].into_iter().collect()), [When::Always].into(), "default");
        let asked: Vec<String> = access
            .questions()
            .iter()
            .map(|(right, _)| format!("{} {}", right.verbs, asked_name(right)))
            .collect();
        assert_eq!(asked, ["get shops.example.com", "get carts.example.com", "create "]);
    }
}
