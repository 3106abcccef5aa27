use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use watchkeeper_core::{Key, Uid};
use watchkeeper_informer::{AnyValue, Object};

use crate::client::Client;
use crate::error::Error;
use crate::kind::{Kind, KindInfo, typed};
use crate::read::live::Selection;
use crate::selector::Selector;
use crate::state::overlay::{Note, Verdict};
use crate::state::view::{Seen, shown};
use crate::state::{Declared, KindState};

/// So many objects are asked for one by one; for more, the whole list is.
const MAX_DOUBTS: usize = 16;

/// A list with its filters. Awaiting it returns the objects, ordered by key.
///
/// From the cache, the cost is that of the result for [`in_namespace`](Self::in_namespace) and
/// [`owned_by`](Self::owned_by); labels and [`matching`](Self::matching) look at every object of what remains. For other
/// questions that are asked often, there is [`Client::index`].
pub struct List<'a, K: Kind> {
    client: &'a Client,
    asked: Asked,
    fits: Option<Fits<'a, K>>,
}

type Fits<'a, K> = Box<dyn Fn(&K) -> bool + Send + Sync + 'a>;

/// What is to be listed, as far as no type is needed to say it.
struct Asked {
    live: bool,
    namespace: Option<String>,
    labels: Option<String>,
    owner: Option<Uid>,
}

impl<'a, K: Kind> List<'a, K> {
    pub(crate) fn new(client: &'a Client, live: bool) -> Self {
        Self { client, asked: Asked { live, namespace: None, labels: None, owner: None }, fits: None }
    }

    /// Limits the list to a namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.asked.namespace = Some(namespace.into());
        self
    }

    /// Limits the list to objects with these labels: `app=web,tier!=cache`.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.asked.labels = Some(selector.into());
        self
    }

    /// Limits the list to objects with this owner.
    #[must_use]
    pub fn owned_by(mut self, owner: &Uid) -> Self {
        self.asked.owner = Some(owner.clone());
        self
    }

    /// Limits the list to objects for which the function is true.
    #[must_use]
    pub fn matching(mut self, fits: impl Fn(&K) -> bool + Send + Sync + 'a) -> Self {
        self.fits = Some(Box::new(fits));
        self
    }

    async fn send(self) -> Result<Vec<Arc<K>>, Error> {
        let found =
            self.asked.list(self.client, &self.client.kind_state::<K>()).await?.into_iter().map(typed);
        let Some(fits) = self.fits else { return Ok(found.collect()) };
        Ok(found.filter(|object: &Arc<K>| fits(object)).collect())
    }
}

impl<'a, K: Kind> IntoFuture for List<'a, K> {
    type Output = Result<Vec<Arc<K>>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// The objects of a kind that an owner owns, as the cache has them.
pub(crate) async fn owned(client: &Client, kind: &KindState, owner: &Uid) -> Result<Vec<AnyValue>, Error> {
    let asked = Asked { live: false, namespace: None, labels: None, owner: Some(owner.clone()) };
    asked.cached(client, kind).await
}

impl Asked {
    async fn list(&self, client: &Client, kind: &KindState) -> Result<Vec<AnyValue>, Error> {
        if self.live {
            let labels = self.labels.as_deref();
            let selection = Selection { namespace: self.namespace.as_deref(), labels, fields: None };
            return self.select(&kind.info, client.pages(kind, &selection).await?.0);
        }
        self.cached(client, kind).await
    }

    async fn cached(&self, client: &Client, kind: &KindState) -> Result<Vec<AnyValue>, Error> {
        let declared = kind.ready()?;
        if let Some(namespace) = self.namespace.as_deref().filter(|namespace| !declared.watches(namespace)) {
            let (kind, namespace) = (kind.info.kind.clone(), namespace.to_owned());
            return Err(Error::OutsideCache { kind, namespace });
        }
        let selector = self.labels.as_deref().map(Selector::parse).transpose()?;
        let stored = || match (&self.owner, &self.namespace) {
            (Some(owner), _) => declared.store.owned_by(owner),
            (None, Some(namespace)) => declared.store.in_namespace(namespace),
            (None, None) => declared.store.list(),
        };
        let Some(objects) = gather(client, kind, declared, stored).await? else {
            return self.past_the_cache(client, kind, declared).await;
        };
        let mut found = Vec::with_capacity(objects.len());
        for seen in objects {
            if self.concerns(&seen) && has_labels(kind, declared, &seen, selector.as_ref()) {
                found.push(seen.value(&kind.info)?);
            }
        }
        Ok(found)
    }

    /// Whether what identifies an object lets it be in the list.
    fn concerns(&self, seen: &Seen) -> bool {
        let owners = match seen {
            Seen::Stored(object) => object.owners(),
            Seen::Noted(held) => &held.header.owners,
        };
        self.namespace.as_deref().is_none_or(|namespace| seen.key().namespace() == Some(namespace))
            && self.owner.as_ref().is_none_or(|owner| owners.contains(owner))
    }

    /// What the cache would show, from the API.
    async fn past_the_cache(
        &self,
        client: &Client,
        kind: &KindState,
        declared: &Declared,
    ) -> Result<Vec<AnyValue>, Error> {
        let (labels, fields) = &declared.selectors;
        let both: Vec<&str> = [labels, &self.labels].into_iter().flatten().map(String::as_str).collect();
        let labels = (!both.is_empty()).then(|| both.join(","));
        let namespaces = match (&self.namespace, &declared.namespaces) {
            (Some(namespace), _) => vec![Some(namespace.as_str())],
            (None, Some(namespaces)) => namespaces.iter().map(|name| Some(name.as_str())).collect(),
            (None, None) => vec![None],
        };
        let mut items = Vec::new();
        for namespace in namespaces {
            let selection = Selection { namespace, labels: labels.as_deref(), fields: fields.as_deref() };
            items.extend(client.pages(kind, &selection).await?.0);
        }
        self.select(&kind.info, items)
    }

    fn select(&self, kind: &KindInfo, items: Vec<Value>) -> Result<Vec<AnyValue>, Error> {
        let mut found = BTreeMap::new();
        for mut item in items {
            // Items of a list do not say their kind.
            item["apiVersion"] = kind.api_version.as_str().into();
            item["kind"] = kind.kind.as_str().into();
            let value = kind.decode(item.to_string().as_bytes(), &format!("list of {}", kind.kind))?;
            let owned = self.owner.as_ref().is_none_or(|owner| {
                let mut owners = kind.meta(&*value).owner_references.iter().flatten();
                owners.any(|reference| Uid::from(reference.uid.as_str()) == *owner)
            });
            if owned {
                found.insert(kind.key(&*value), value);
            }
        }
        Ok(found.into_values().collect())
    }
}

fn has_labels(kind: &KindState, declared: &Declared, seen: &Seen, selector: Option<&Selector>) -> bool {
    let Some(selector) = selector else { return true };
    match seen {
        Seen::Stored(object) if !declared.typed => {
            // Without decoding the rest. What cannot be decoded passes, so that the reader is told.
            object.metadata().map_or(true, |metadata| selector.matches(Some(&metadata.labels)))
        }
        seen => {
            let info = &kind.info;
            seen.value(info).map_or(true, |value| selector.matches(info.meta(&*value).labels.as_ref()))
        }
    }
}

/// Objects of the cache with what was written laid over them, ordered by key. What was written may be more than the cache
/// was asked for. `None` if only the API can tell.
pub(crate) async fn gather(
    client: &Client,
    kind: &KindState,
    declared: &Declared,
    stored: impl FnOnce() -> Vec<Object>,
) -> Result<Option<Vec<Seen>>, Error> {
    // Notes before positions before objects: see `KindState::read`.
    let (notes, floor) = kind.all_notes(declared);
    let doubts = notes.iter().filter(|(_, note)| matches!(note, Note::Doubt { .. })).count();
    if floor.is_some() || doubts > MAX_DOUBTS {
        return Ok(None);
    }
    let mut over: BTreeMap<Key, Option<Seen>> = BTreeMap::new();
    for (key, note) in notes {
        let position = declared.position(&key);
        let seen = declared.store.get(&key);
        match note.judge(shown(position.as_ref(), seen.as_ref())) {
            Verdict::Cache => kind.forget(&key, &note),
            Verdict::Live => {
                let seen = client.resolve(kind, &key).await?;
                over.insert(key, seen);
            }
            Verdict::Note => {
                let held = match note {
                    Note::At { object, .. } => object,
                    Note::Gone { .. } | Note::Doubt { .. } => None,
                };
                over.insert(key, held.map(Seen::Noted));
            }
        }
    }
    let mut objects: Vec<Seen> = stored().into_iter().map(Seen::Stored).collect();
    if !over.is_empty() {
        objects.retain(|seen| !over.contains_key(seen.key()));
        objects.extend(over.into_values().flatten());
    }
    objects.sort_unstable_by(|left, right| left.key().cmp(right.key()));
    Ok(Some(objects))
}
