use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use std::marker::PhantomData;
use watchkeeper_client::{DynamicKind, DynamicObject, Kind, StaticKind};
use watchkeeper_description::Resource;

use crate::admission::{self, AdmissionRequest, Answer, Handler, Operation, Verdict};
use crate::conversion::Conversions;
use crate::service::Routes;

/// The fate of a write when its webhook cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailurePolicy {
    /// The write is refused.
    Fail,
    /// The write goes on without the webhook.
    Ignore,
}

impl FailurePolicy {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}

/// The webhooks of one kind: functions that default, validate and convert its objects.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use watchkeeper_webhook::{AdmissionRequest, Verdict, Webhook};
///
/// fn validate(new: &ConfigMap, old: Option<&ConfigMap>, _: &AdmissionRequest) -> Verdict {
///     let mut verdict = Verdict::allow();
///     if old.is_some_and(|old| old.data != new.data) {
///         verdict.forbidden("data", "cannot be changed");
///     }
///     verdict
/// }
/// let webhook = Webhook::of::<ConfigMap>()
///     .default(|map: &mut ConfigMap, _: &AdmissionRequest| {
///         map.data.get_or_insert_default().entry("size".into()).or_insert_with(|| "1".into());
///     })
///     .validate(validate);
/// ```
///
/// # What it promises
///
/// - Functions see objects in the version of their type, whatever version they were written in; a write to `status` or another part
///   is not their concern.
/// - Fields that the type does not know survive defaulting: only what the function changed is sent back.
/// - A function that panics or takes too long is answered for, with a verdict that says so; no other review is disturbed.
/// - Functions run on threads of their own and may compute for as long as the review may take; those that await are `_async`.
///
/// # What it does not promise
///
/// That every object was seen: others may have been stored before, or while the operator was away under
/// [`FailurePolicy::Ignore`]. A controller still has to cope with objects that would be refused.
#[must_use = "it does nothing until a manager serves it"]
pub struct Webhook<K = ()> {
    erased: AnyWebhook,
    _kind: PhantomData<fn() -> K>,
}

/// The webhooks of one kind, without its type.
#[derive(Clone)]
pub struct AnyWebhook {
    pub(crate) resource: Resource,
    pub(crate) default: Option<Handler>,
    pub(crate) validate: Option<Handler>,
    pub(crate) raw: Vec<Raw>,
    pub(crate) validated: Vec<Operation>,
    pub(crate) conversions: Option<Conversions>,
    /// The definitions of all versions, that of the hub first.
    pub(crate) definitions: Vec<fn() -> CustomResourceDefinition>,
    pub(crate) stored: Option<String>,
    pub(crate) failure_policy: FailurePolicy,
    pub(crate) timeout: Duration,
    pub(crate) is_own: bool,
}

/// Something of the user's own that answers reviews.
#[derive(Clone)]
pub(crate) struct Raw {
    pub(crate) path: String,
    pub(crate) handler: Handler,
}

impl<K: Kind> Webhook<K> {
    fn begin(resource: Resource) -> Self {
        let group = &resource.group;
        let is_own = group.contains('.') && !group.ends_with(".k8s.io");
        let failure_policy = if is_own { FailurePolicy::Fail } else { FailurePolicy::Ignore };
        let erased = AnyWebhook { failure_policy, is_own, ..AnyWebhook::empty(resource) };
        Self { erased, _kind: PhantomData }
    }

    fn with(mut self, change: impl FnOnce(&mut AnyWebhook)) -> Self {
        change(&mut self.erased);
        self
    }

    /// Sets defaults in objects that are created or changed, before they are validated.
    pub fn default(self, default: impl Fn(&mut K, &AdmissionRequest) + Send + Sync + 'static) -> Self {
        self.with(|this| this.default = Some(admission::defaulting(default)))
    }

    /// Validates objects that are created or changed: the new state, the old one if there is one, and the request.
    ///
    /// The answer is a [`Verdict`], or a `Result` whose error is the reason.
    pub fn validate<V: Into<Verdict>>(
        self,
        validate: impl Fn(&K, Option<&K>, &AdmissionRequest) -> V + Send + Sync + 'static,
    ) -> Self {
        self.with(|this| {
            let before = this.validate.take();
            this.validated.extend([Operation::Create, Operation::Update]);
            this.validate = Some(chained(before, &[Operation::Create, Operation::Update], {
                admission::validating(move |new: Option<&K>, old, request| match new {
                    Some(new) => validate(new, old, request).into(),
                    None => Verdict::allow(),
                })
            }));
        })
    }

    /// Validates deletions.
    pub fn validate_delete<V: Into<Verdict>>(
        self,
        validate: impl Fn(&K, &AdmissionRequest) -> V + Send + Sync + 'static,
    ) -> Self {
        self.with(|this| {
            let before = this.validate.take();
            this.validated.push(Operation::Delete);
            this.validate = Some(chained(before, &[Operation::Delete], {
                admission::validating(move |_: Option<&K>, old: Option<&K>, request| match old {
                    Some(old) => validate(old, request).into(),
                    None => Verdict::allow(),
                })
            }));
        })
    }

    /// As [`validate`](Self::validate), with an async function.
    pub fn validate_async<F, R, V>(self, validate: F) -> Self
    where
        F: Fn(Arc<K>, Option<Arc<K>>, Arc<AdmissionRequest>) -> R + Send + Sync + 'static,
        R: Future<Output = V> + Send + 'static,
        V: Into<Verdict>,
    {
        let validate = Arc::new(validate);
        let handler: Handler = Arc::new(move |request| {
            let validate = Arc::clone(&validate);
            Box::pin(async move {
                match admission::read::<K>(&request) {
                    Ok((Some(new), old)) => {
                        validate(Arc::new(new), old.map(Arc::new), request).await.into().into()
                    }
                    Ok((None, _)) => Verdict::allow().into(),
                    Err(verdict) => verdict.into(),
                }
            })
        });
        self.with(|this| {
            let before = this.validate.take();
            this.validated.extend([Operation::Create, Operation::Update]);
            this.validate = Some(chained(before, &[Operation::Create, Operation::Update], handler));
        })
    }

    /// Converts objects of another version of the kind, and back. The kind of this webhook is the hub: versions are
    /// converted to each other by way of it.
    ///
    /// What `From` loses is lost: `watchkeeper_testkit::round_trips::<Hub, Other>()` is a test of that in one line. Of the metadata
    /// only labels and annotations can be changed.
    ///
    /// If the manager [installs](Self) the definition of the kind, it has all versions and the conversion in it.
    pub fn convert<S>(self) -> Self
    where
        K: CustomResourceExt + From<S>,
        S: Kind + CustomResourceExt + From<K>,
    {
        self.with(|this| {
            this.conversions.get_or_insert_with(Conversions::of::<K>).add::<K, S>();
            if this.definitions.is_empty() {
                this.definitions.push(K::crd);
            }
            this.definitions.push(S::crd);
        })
    }

    /// Sets the version in which objects are stored. Default: that of the hub. While replicas run that do not know the hub yet, it is
    /// the version that they know.
    pub fn stored_as(self, version: impl Into<String>) -> Self {
        self.with(|this| this.stored = Some(version.into()))
    }

    /// Sets the fate of writes while the webhook cannot be reached. Default: [`Fail`](FailurePolicy::Fail) for custom resources,
    /// [`Ignore`](FailurePolicy::Ignore) for the kinds of Kubernetes itself.
    pub fn failure_policy(self, policy: FailurePolicy) -> Self {
        self.with(|this| this.failure_policy = policy)
    }

    /// Sets the timeout of the API server for an answer: 1 to 30 s. Default: 5 s.
    pub fn timeout(self, timeout: Duration) -> Self {
        let timeout = timeout.clamp(Duration::from_secs(1), Duration::from_secs(30));
        self.with(|this| this.timeout = timeout)
    }
}

impl Webhook<()> {
    /// Begins the webhooks of a kind.
    pub fn of<K: StaticKind>() -> Webhook<K> {
        Webhook::begin(Resource {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            namespaced: TypeId::of::<K::Scope>() != TypeId::of::<ClusterResourceScope>(),
        })
    }

    /// Begins the webhooks of a kind that is known at run time only.
    ///
    /// ```
    /// use watchkeeper_client::{DynamicKind, DynamicObject};
    /// use watchkeeper_webhook::{AdmissionRequest, Verdict, Webhook};
    ///
    /// let certificates = DynamicKind::namespaced("cert-manager.io", "v1", "Certificate", "certificates");
    /// let webhook = Webhook::dynamic(&certificates).validate(
    ///     |new: &DynamicObject, _: Option<&DynamicObject>, _: &AdmissionRequest| {
    ///         let mut verdict = Verdict::allow();
    ///         if new.get("/spec/secretName").is_none() {
    ///             verdict.required("spec.secretName", "");
    ///         }
    ///         verdict
    ///     },
    /// );
    /// ```
    pub fn dynamic(kind: &DynamicKind) -> Webhook<DynamicObject> {
        Webhook::begin(Resource {
            group: kind.group().to_owned(),
            version: kind.version().to_owned(),
            kind: kind.kind().to_owned(),
            plural: kind.plural().to_owned(),
            namespaced: kind.is_namespaced(),
        })
    }

    /// Answers reviews at any path. Nothing is configured for it: the configuration is the user's.
    pub fn raw<F, R, A>(path: impl Into<String>, answer: F) -> AnyWebhook
    where
        F: Fn(Arc<AdmissionRequest>) -> R + Send + Sync + 'static,
        R: Future<Output = A> + Send + 'static,
        A: Into<Answer>,
    {
        let handler: Handler = Arc::new(move |request| {
            let answering = answer(request);
            Box::pin(async move { answering.await.into() })
        });
        let none = Resource {
            group: String::new(),
            version: String::new(),
            kind: String::new(),
            plural: String::new(),
            namespaced: false,
        };
        AnyWebhook { raw: vec![Raw { path: path.into(), handler }], ..AnyWebhook::empty(none) }
    }
}

impl<K> From<Webhook<K>> for AnyWebhook {
    fn from(webhook: Webhook<K>) -> Self {
        webhook.erased
    }
}

impl AnyWebhook {
    fn empty(resource: Resource) -> Self {
        Self {
            resource,
            default: None,
            validate: None,
            raw: Vec::new(),
            validated: Vec::new(),
            conversions: None,
            definitions: Vec::new(),
            stored: None,
            failure_policy: FailurePolicy::Fail,
            timeout: Duration::from_secs(5),
            is_own: true,
        }
    }

    /// Where it is asked to `mutate` or to `validate`, as controller-runtime names paths: `/mutate-example-com-v1-app`.
    pub(crate) fn path(&self, what: &str) -> String {
        let Resource { group, version, kind, .. } = &self.resource;
        format!("/{what}-{}-{version}-{}", group.replace('.', "-"), kind.to_lowercase())
    }

    /// The name of one of its webhooks, which has to have three parts at least: `validate.apps.example.com`.
    pub(crate) fn name(&self, what: &str) -> String {
        let Resource { group, plural, .. } = &self.resource;
        let group = if group.is_empty() { "core" } else { group };
        format!("{what}.{plural}.{group}")
    }

    pub(crate) fn serve(&self, routes: &mut Routes) {
        for (what, handler) in [("mutate", &self.default), ("validate", &self.validate)] {
            if let Some(handler) = handler {
                let name: Arc<str> = self.name(what).into();
                routes.admission.insert(self.path(what), (name, Arc::clone(handler)));
            }
        }
        for raw in &self.raw {
            let name: Arc<str> = raw.path.as_str().into();
            routes.admission.insert(raw.path.clone(), (name, Arc::clone(&raw.handler)));
        }
        if let Some(conversions) = &self.conversions {
            routes.conversion.push(Arc::new(conversions.clone()));
        }
    }
}

/// Asks one after the other: what was there before, and, for some operations, one more. All that is wrong is said.
fn chained(before: Option<Handler>, operations: &'static [Operation], more: Handler) -> Handler {
    Arc::new(move |request| {
        let (before, more) = (before.clone(), Arc::clone(&more));
        Box::pin(async move {
            let mut verdict = Verdict::allow();
            if let Some(before) = before {
                verdict = before(Arc::clone(&request)).await.verdict;
            }
            if operations.contains(&request.operation) {
                verdict = verdict.and(more(request).await.verdict);
            }
            verdict.into()
        })
    })
}

impl<K> fmt::Debug for Webhook<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.erased.fmt(f)
    }
}

impl fmt::Debug for AnyWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("resource", &self.resource)
            .field("defaults", &self.default.is_some())
            .field("validates", &self.validated)
            .field("converts", &self.conversions.is_some())
            .finish_non_exhaustive()
    }
}
