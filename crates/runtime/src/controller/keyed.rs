use std::future::Future;
use std::sync::Arc;

use crate::action::Action;
use crate::context::Context;
use crate::controller::{Controller, ControllerBuilder};
use crate::error::Result;
use crate::request::WorkKey;

/// The work of a controller that has keys of its own; see [`Controller::keyed`].
#[derive(Clone, Copy, Debug)]
pub struct Keyed;

impl<R: WorkKey> ControllerBuilder<Keyed, R> {
    /// Sets the function that reconciles a key. Completes the controller.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// use watchkeeper_runtime::{Action, Context, Controller, Watch};
    /// // One run for all pods of a node.
    /// let controller = Controller::keyed::<String>("nodes")
    ///     .watch(Watch::of(|pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone())))
    ///     .reconcile(|node: String, _cx: Context| async move {
    ///         println!("the pods of {node} have changed");
    ///         Ok(Action::done())
    ///     });
    /// ```
    pub fn reconcile<F, O>(mut self, reconcile: F) -> Controller
    where
        F: Fn(R, Context) -> O + Send + Sync + 'static,
        O: Future<Output = Result<Action>> + Send + 'static,
    {
        let name = self.settings.name.clone();
        let declared = self.settings.declared(None, None);
        let start = move |environment: &crate::manager::Environment| {
            let metrics = environment.metrics.clone();
            let name = self.settings.name.clone();
            let alarm =
                Box::new(move |work: &R, hot: &crate::hot_loop::Loop| metrics.hot_loop(&name, work, hot));
            let prepared = self.settings.prepare(environment, alarm)?;
            let run: super::worker::Run<R> = Arc::new(move |work, cx| Box::pin(reconcile(work, cx)));
            Ok(self.settings.run(prepared, environment, run, |_| None, Vec::new()))
        };
        Controller { name, declared, start: Box::new(start) }
    }
}
