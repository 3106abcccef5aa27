use std::sync::Arc;

use serde_json::Value;
use watchkeeper_core::{Document, Key, Version};
use watchkeeper_informer::AnyValue;
use watchkeeper_wire::Uri;

use crate::client::Client;
use crate::error::Error;
use crate::exchange::{Answer, Ask, Failure, decode};
use crate::kind::{Kind, typed};
use crate::read::list::List;
use crate::state::KindState;
use crate::state::overlay::{Held, Note};
use crate::state::view::{ReadState, Seen};

/// How many objects a page of a list has.
const PAGE: &str = "500";

/// Reads from the API, past every cache. No kind needs to be declared for them.
pub struct Live<'a> {
    pub(crate) client: &'a Client,
}

impl<'a> Live<'a> {
    /// The object under a key; `None` if there is none.
    pub async fn get<K: Kind>(&self, key: &Key) -> Result<Option<Arc<K>>, Error> {
        Ok(self.client.fetch(&self.client.kind_state::<K>(), key).await?.map(typed))
    }

    /// Lists the objects of a kind, in pages. Add filters, then await the list.
    pub fn list<K: Kind>(&self) -> List<'a, K> {
        List::new(self.client, true)
    }
}

/// What of a kind is to be listed by the server.
#[derive(Default)]
pub(crate) struct Selection<'a> {
    pub(crate) namespace: Option<&'a str>,
    pub(crate) labels: Option<&'a str>,
    pub(crate) fields: Option<&'a str>,
}

impl Client {
    /// Sends a question: nothing is changed by it, so that nothing can be lost.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<Answer, Error> {
        let object = ask.object.clone();
        ask.send(self.connection(), self.shared.user_agent.as_ref()).await.map_err(|failure| match failure {
            Failure::Refused(error) => error,
            Failure::Unknown(message) => Error::Unavailable { object, message },
        })
    }

    pub(crate) async fn fetch(&self, kind: &KindState, key: &Key) -> Result<Option<AnyValue>, Error> {
        kind.info.check()?;
        let object = kind.info.describe(key);
        match self.ask(Ask::get(Uri::new(kind.info.path.object(key)), object.clone())).await {
            Ok(answer) => kind.info.decode(&answer.body, &object).map(Some),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All pages of a list: the items, and the version of the whole.
    pub(crate) async fn pages(
        &self,
        kind: &KindState,
        selection: &Selection<'_>,
    ) -> Result<(Vec<Value>, Version), Error> {
        kind.info.check()?;
        let (mut items, mut token) = (Vec::new(), None::<String>);
        loop {
            let mut uri = Uri::new(kind.info.path.collection(selection.namespace));
            uri.pair("limit", PAGE);
            let parameters = [
                ("labelSelector", selection.labels),
                ("fieldSelector", selection.fields),
                ("continue", token.as_deref()),
            ];
            for (name, value) in parameters {
                if let Some(value) = value {
                    uri.pair(name, value);
                }
            }
            let object = format!("list of {}", kind.info.kind);
            let answer = match self.ask(Ask::get(uri, object.clone())).await {
                // The pages have expired under our hands: from the start, which is always served.
                Err(Error::Refused { code: 410, .. }) if token.is_some() => {
                    (items, token) = (Vec::new(), None);
                    continue;
                }
                answer => answer?,
            };
            let mut page: Value = decode(&answer.body, &object)?;
            if let Value::Array(more) = page["items"].take() {
                items.extend(more);
            }
            let text = |name: &str| page["metadata"][name].as_str().unwrap_or_default();
            match text("continue") {
                "" => return Ok((items, Version::from(text("resourceVersion")))),
                next => token = Some(next.to_owned()),
            }
        }
    }

    /// Asks the API about one key and takes note of the answer with its version, so that the next read need not ask.
    pub(crate) async fn resolve(&self, kind: &KindState, key: &Key) -> Result<Option<Seen>, Error> {
        // A list of one says at which version there is none; a 404 would not.
        let fields = format!("metadata.name={}", key.name());
        let selection =
            Selection { namespace: key.namespace(), fields: Some(&fields), ..Selection::default() };
        let (items, version) = self.pages(kind, &selection).await?;
        let declared = kind.declared()?;
        let held = match items.into_iter().next() {
            None => None,
            Some(item) => {
                let document =
                    Document::read(item.to_string().as_bytes(), &declared.projection).map_err(|error| {
                        Error::Decode { object: kind.info.describe(key), detail: error.to_string() }
                    })?;
                let value = kind.info.decode(&document.body, &kind.info.describe(key))?;
                Some(Held { header: document.header, value })
            }
        };
        let version = held.as_ref().map_or(version, |held| held.header.version.clone());
        let object = held.filter(|held| kind.is_selected(declared, &held.value));
        if version.number().is_some() {
            kind.note(key.clone(), Note::At { version, object: object.clone() });
        } else if let (Some(held), Some(stored), Some(note)) =
            (&object, declared.store.get(key), kind.notes_for(key).0)
            && (stored.version(), stored.uid()) == (&version, held.header.uid.as_ref())
        {
            // Versions that cannot be compared can still be equal: then the cache has caught up.
            kind.forget(key, &note);
        }
        // What was written meanwhile is newer than what was just read.
        Ok(match kind.read(key)? {
            ReadState::Found(seen) => Some(seen),
            ReadState::Absent => None,
            ReadState::Live => object.map(Seen::Noted),
        })
    }
}
