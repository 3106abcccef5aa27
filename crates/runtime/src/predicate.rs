use std::marker::PhantomData;
use std::sync::Arc;

use watchkeeper_core::{Change, ChangeKind};
use watchkeeper_informer::{Metadata, Object, Readable};

/// A filter for the changes of a watched kind that are worth a reconcile.
///
/// A predicate sees the old and the new state. It saves reconciles, not memory: the cache holds what is watched. A
/// predicate that panics counts as `true`, so that nothing is missed because of it.
///
/// Predicates that compare let additions and deletions pass, and drop resyncs.
///
/// ```
/// # use k8s_openapi::api::apps::v1::Deployment;
/// use watchkeeper_runtime::Predicate;
/// let spec_or_labels = Predicate::<Deployment>::generation_changed().or(Predicate::labels_changed());
/// let scaled = Predicate::when(|old: Option<&Deployment>, new: Option<&Deployment>| {
///     let replicas = |deployment: &Deployment| deployment.spec.replicas;
///     old.and_then(replicas) != new.and_then(replicas)
/// });
/// # let _ = spec_or_labels.and(scaled.not());
/// ```
pub struct Predicate<K> {
    pub(crate) test: Test,
    kind: PhantomData<fn(K)>,
}

/// A predicate, of whatever kind.
pub(crate) type Test = Arc<dyn Fn(&Change<Object>) -> bool + Send + Sync>;

impl<K: Readable> Predicate<K> {
    /// A test of the encoded change. Nothing is decoded.
    pub fn new(test: impl Fn(&Change<Object<K>>) -> bool + Send + Sync + 'static) -> Self {
        Self::of(move |change| test(&change.clone().map(Object::typed)))
    }

    fn of(test: impl Fn(&Change<Object>) -> bool + Send + Sync + 'static) -> Self {
        Self { test: Arc::new(test), kind: PhantomData }
    }

    /// A test of the decoded states. A state that cannot be decoded passes, so that the reconcile reports it.
    pub fn when(test: impl Fn(Option<&K>, Option<&K>) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |change| {
            let decode = |state: &Option<Object<K>>| state.as_ref().map(Object::get).transpose();
            match (decode(&change.old), decode(&change.new)) {
                (Ok(old), Ok(new)) => test(old.as_deref(), new.as_deref()),
                _ => true,
            }
        })
    }

    /// Passes if the desired state has changed (`metadata.generation`), or the object is being deleted.
    ///
    /// A kind that does not count generations, such as a ConfigMap, passes with every real change.
    pub fn generation_changed() -> Self {
        Self::comparing(|old, new| {
            if old.generation() == 0 && new.generation() == 0 {
                return !old.is_same_state(new);
            }
            old.generation() != new.generation() || old.is_deleting() != new.is_deleting()
        })
    }

    /// Passes if anything has changed: drops resyncs only.
    pub fn version_changed() -> Self {
        Self::comparing(|old, new| !old.is_same_state(new))
    }

    /// Passes if a label has changed.
    pub fn labels_changed() -> Self {
        Self::comparing_metadata(|old, new| old.labels != new.labels)
    }

    /// Passes if an annotation has changed.
    pub fn annotations_changed() -> Self {
        Self::comparing_metadata(|old, new| old.annotations != new.annotations)
    }

    /// Passes if both predicates pass.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::of(move |change| (self.test)(change) && (other.test)(change))
    }

    /// Passes if at least one of the predicates passes.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::of(move |change| (self.test)(change) || (other.test)(change))
    }

    /// Passes if the predicate does not pass.
    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "reads as the others do, and works on the value")]
    pub fn not(self) -> Self {
        Self::of(move |change| !(self.test)(change))
    }

    /// Whether a change passes.
    pub fn passes(&self, change: &Change<Object<K>>) -> bool {
        (self.test)(&change.clone().map(Object::untyped))
    }

    fn comparing(differs: impl Fn(&Object, &Object) -> bool + Send + Sync + 'static) -> Self {
        Self::of(move |change| match (change.kind(), &change.old, &change.new) {
            (ChangeKind::Modified, Some(old), Some(new)) => differs(old, new),
            _ => true,
        })
    }

    fn comparing_metadata(differs: impl Fn(&Metadata, &Metadata) -> bool + Send + Sync + 'static) -> Self {
        Self::comparing(move |old, new| match (old.metadata(), new.metadata()) {
            (Ok(old), Ok(new)) => differs(&old, &new),
            _ => true,
        })
    }
}

impl<K> Clone for Predicate<K> {
    fn clone(&self) -> Self {
        Self { test: Arc::clone(&self.test), kind: PhantomData }
    }
}

impl<K> std::fmt::Debug for Predicate<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Predicate")
    }
}
