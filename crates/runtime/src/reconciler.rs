use std::future::Future;
use std::sync::Arc;

use crate::action::Action;
use crate::context::Context;
use crate::error::Result;

/// Brings the world to the state that an object declares.
///
/// An async function of the same shape is one, too; the trait is for reconcilers with a state of their own, and for those
/// that also clean up.
///
/// # What is promised
///
/// - It is given the newest state that is known, own writes included, and never runs twice at a time for one object.
/// - It runs at least once after every change that its controller watches for. Several changes may be one run.
/// - It may be stopped at any await: when it takes longer than its time, when the program stops or loses the lead. What
///   it had begun is then begun again by the next run, so it should be written to find its own traces.
///
/// It does not learn *what* changed ([`Context::cause`] is for logs): what is right depends on the state alone.
///
/// ```
/// # use std::sync::Arc;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use watchkeeper_runtime::{Action, Context, Controller, Reconciler, Result};
///
/// struct Pages {
///     root: std::path::PathBuf,
/// }
///
/// impl Reconciler<ConfigMap> for Pages {
///     async fn reconcile(&self, page: Arc<ConfigMap>, _cx: Context<ConfigMap>) -> Result<Action> {
///         let name = page.metadata.name.as_deref().unwrap_or_default();
///         tokio::fs::write(self.root.join(name), format!("{:?}", page.data)).await?;
///         Ok(Action::done())
///     }
/// }
///
/// let controller = Controller::of::<ConfigMap>().reconcile(Pages { root: "pages".into() });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not reconcile objects of type `{K}`",
    label = "is not a reconciler of `{K}`",
    note = "expected `async fn(Arc<{K}>, Context<{K}>) -> Result<Action>`, or a type that implements `Reconciler<{K}>`",
    note = "the future has to be `Send`: hold no `Rc`, `RefCell` guard or lock guard of the standard library across an `.await`"
)]
pub trait Reconciler<K>: Send + Sync + 'static {
    /// Makes it so.
    fn reconcile(&self, object: Arc<K>, cx: Context<K>) -> impl Future<Output = Result<Action>> + Send;

    /// Undoes what was done for an object whose deletion was asked for. Called if the controller has a
    /// [finalizer](crate::ControllerBuilder::finalizer), which is removed when this is [done](Action::done); a requeue keeps it.
    fn cleanup(&self, _object: Arc<K>, _cx: Context<K>) -> impl Future<Output = Result<Action>> + Send {
        async { Ok(Action::done()) }
    }

    /// The object is gone. Called with the last state that was known, once, and not again after a restart; what has to
    /// happen in any case belongs into [`cleanup`](Self::cleanup).
    fn deleted(&self, _last: Arc<K>, _cx: Context<K>) -> impl Future<Output = Result<Action>> + Send {
        async { Ok(Action::done()) }
    }
}

impl<K, F, R> Reconciler<K> for F
where
    K: Send + Sync + 'static,
    F: Fn(Arc<K>, Context<K>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Action>> + Send,
{
    fn reconcile(&self, object: Arc<K>, cx: Context<K>) -> impl Future<Output = Result<Action>> + Send {
        self(object, cx)
    }
}
