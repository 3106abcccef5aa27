use std::future::IntoFuture;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use watchkeeper_core::Key;
use watchkeeper_informer::AnyValue;

use crate::client::Client;
use crate::error::Error;
use crate::kind::{Kind, KindInfo, key_of, typed};
use crate::state::KindState;
use crate::write::condition::ConditionUpdate;
use crate::write::difference::merge_patch;
use crate::write::patch::Patch;
use crate::write::{Outcome, Written};

/// A write of a status. Awaiting it sends the differences; no request is sent if there are none.
///
/// Works with any status type that has a list of [`Condition`](crate::Condition)s called `conditions`, and an
/// `observedGeneration` if that is asked for; there is nothing to implement.
///
/// # How it is written
///
/// As a merge patch of `/status`, guarded by the version it is based on. If somebody else was faster, the object is read
/// again and the change made again. A server-side apply would need neither, but it merges conditions by type only where
/// the schema says `listType: map`; where it does not, it would throw away the conditions of others. This way theirs stay
/// with every schema.
pub struct StatusWriter<'a, K: Kind> {
    client: &'a Client,
    object: &'a K,
    findings: Vec<ConditionUpdate>,
    changes: Vec<Change<'a, K>>,
    observed: bool,
}

type Change<'a, K> = Box<dyn FnMut(&mut K) + Send + 'a>;

impl Client {
    /// Writes the differences in the status of an object.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use watchkeeper_client::{Client, Error, ready};
    /// # async fn example(client: &Client, web: &Deployment) -> Result<(), Error> {
    /// client
    ///     .status(web)
    ///     .set(|web| web.status.get_or_insert_default().replicas = Some(3))
    ///     .observed_generation()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn status<'a, K: Kind>(&'a self, object: &'a K) -> StatusWriter<'a, K> {
        StatusWriter { client: self, object, findings: Vec::new(), changes: Vec::new(), observed: false }
    }
}

impl<'a, K: Kind> StatusWriter<'a, K> {
    /// Sets a condition. Other conditions stay; the time of its last transition moves only if its status does; it says the
    /// generation of the object that was given.
    #[must_use]
    pub fn condition(mut self, finding: impl Into<ConditionUpdate>) -> Self {
        self.findings.push(finding.into());
        self
    }

    /// Changes the status by hand. Of what the function does, only what it does to the status counts. It may be called more
    /// than once.
    #[must_use]
    pub fn set(mut self, change: impl FnMut(&mut K) + Send + 'a) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// Notes in `status.observedGeneration` which generation of the object this is about: that of the one given.
    #[must_use]
    pub fn observed_generation(mut self) -> Self {
        self.observed = true;
        self
    }

    async fn send(self) -> Result<Written<K>, Error> {
        let Self { client, object, findings, mut changes, observed } = self;
        let kind = client.kind_state::<K>();
        let (meta, key) = (object.meta(), key_of(object));
        let newer = client.newer_than(&kind, meta, &key).await?;
        let first = newer.unwrap_or_else(|| Arc::new(object.clone()));
        let about = About { uid: meta.uid.as_deref(), generation: meta.generation, now: now(client) };
        let wanted = Wanted { about, findings: &findings, observed };
        let changed = &mut |current: &AnyValue| {
            if changes.is_empty() {
                return kind.info.encode(&**current);
            }
            let mut changed = K::clone(&typed(Arc::clone(current)));
            changes.iter_mut().for_each(|change| change(&mut changed));
            kind.info.encode(&changed)
        };
        client.write_status(&kind, &key, first, &wanted, changed).await.map(Written::of)
    }
}

/// Which object a status is about, as it was when it was looked at.
struct About<'a> {
    uid: Option<&'a str>,
    generation: Option<i64>,
    now: String,
}

/// What a status shall say, apart from what is changed by hand.
struct Wanted<'a> {
    about: About<'a>,
    findings: &'a [ConditionUpdate],
    observed: bool,
}

impl Client {
    /// Writes a status; `changed` gives an object as JSON, changed by hand.
    async fn write_status(
        &self,
        kind: &KindState,
        key: &Key,
        first: AnyValue,
        wanted: &Wanted<'_>,
        changed: &mut (dyn FnMut(&AnyValue) -> Result<Value, Error> + Send),
    ) -> Result<(AnyValue, Outcome), Error> {
        let Wanted { about, findings, observed } = wanted;
        let change = &mut |current: &AnyValue| {
            let meta = kind.info.meta(&**current);
            if meta.uid.as_deref() != about.uid {
                return Err(Error::NotFound { object: kind.info.describe(key) });
            }
            let mut value = changed(current)?;
            set_conditions(&mut value, findings, about.generation, &about.now);
            if let Some(generation) = about.generation.filter(|_| *observed) {
                value["status"]["observedGeneration"] = generation.into();
            }
            let status = as_the_type_has_it(
                &kind.info,
                kind.info.describe(key),
                &value,
                *observed,
                !findings.is_empty(),
            )?;
            let before = kind.info.encode(&**current)?["status"].take();
            let Some(change) = difference(&before, &status) else { return Ok(None) };
            let version = json!({"resourceVersion": meta.resource_version});
            Ok(Some(Patch::Merge(json!({"metadata": version, "status": change}))))
        };
        self.insist(kind, key, first, Some("status"), change).await
    }
}

/// A status that is not there is an empty one.
fn difference(before: &Value, after: &Value) -> Option<Value> {
    match before {
        Value::Null if !after.is_null() => merge_patch(&json!({}), after),
        before => merge_patch(before, after),
    }
}

fn set_conditions(object: &mut Value, findings: &[ConditionUpdate], generation: Option<i64>, now: &str) {
    if findings.is_empty() {
        return;
    }
    let status = &mut object["status"];
    let mut conditions = match status["conditions"].take() {
        Value::Array(conditions) => conditions,
        _ => Vec::new(),
    };
    findings.iter().for_each(|finding| finding.merge_into(&mut conditions, generation, now));
    status["conditions"] = conditions.into();
}

/// The status as the type can hold it. What it cannot hold it could never show, and would be sent over and over.
fn as_the_type_has_it(
    kind: &KindInfo,
    what: String,
    value: &Value,
    observed: bool,
    conditions: bool,
) -> Result<Value, Error> {
    let typed = kind.decode(value.to_string().as_bytes(), &format!("the new status of {what}"))?;
    let status = kind.encode(&*typed)?["status"].take();
    let missing = if conditions && !status["conditions"].is_array() {
        "the type of its status has no list of conditions: add `conditions: Vec<Condition>`"
    } else if observed
        && value["status"]["observedGeneration"].is_i64()
        && status["observedGeneration"].is_null()
    {
        "the type of its status has no observedGeneration: add `observed_generation: Option<i64>`"
    } else {
        return Ok(status);
    };
    Err(Error::Incomplete { object: what, missing })
}

/// The time, as conditions carry it.
fn now(client: &Client) -> String {
    let time = Timestamp::try_from((client.shared.clock)()).unwrap_or_default();
    match serde_json::to_value(Time(time)) {
        Ok(Value::String(text)) => text,
        _ => String::new(),
    }
}

impl<'a, K: Kind> IntoFuture for StatusWriter<'a, K> {
    type Output = Result<Written<K>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
