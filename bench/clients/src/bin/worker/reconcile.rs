//! Runs a controller that does nothing, with one worker.
//!
//! Lines: `start` is answered when every object was reconciled; `record`; `reach VERSION` is answered with what was recorded, when
//! that was reconciled; `again` reconciles every object once more; `heap`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::runtime::Runtime;
use watchkeeper_client::Cache;
use watchkeeper_core::Key;
use watchkeeper_runtime::{Action, Context, Controller, Manager, Reconciler, Running, Trigger};
use watchkeeper_sources::kubernetes::Connection;

use crate::Result;
use crate::flags::Flags;
use crate::lines::{Answer, Stopwatch, each, unknown};
use crate::reached::Reached;
use crate::widget::Widget;

/// A reconciler that has its object and does nothing.
#[derive(Clone, Default)]
pub(crate) struct Idle(Arc<State>);

#[derive(Default)]
struct State {
    runs: Reached,
    recording: AtomicBool,
    starts: Mutex<Vec<(u64, u64)>>,
    newest: Reached,
}

impl Reconciler<Widget> for Idle {
    async fn reconcile(
        &self,
        widget: Arc<Widget>,
        _cx: Context<Widget>,
    ) -> watchkeeper_runtime::Result<Action> {
        let state = &*self.0;
        if state.recording.load(Relaxed) {
            let version = widget.metadata.resource_version.as_ref().and_then(|text| text.parse().ok());
            let version = version.unwrap_or(0);
            state.starts.lock().push((version, now()));
            state.newest.raise(version);
        }
        state.runs.add_one();
        Ok(Action::done())
    }
}

impl Idle {
    /// From now on, remembers when each reconcile began.
    pub(crate) fn record(&self) {
        self.0.recording.store(true, Relaxed);
    }

    /// Waits until so many have begun.
    pub(crate) async fn runs(&self, count: u64) {
        self.0.runs.wait(count).await;
    }

    /// Waits until a version was reconciled, and gives what was recorded.
    pub(crate) async fn take(&self, version: u64) -> Vec<(u64, u64)> {
        self.0.newest.wait(version).await;
        self.0.recording.store(false, Relaxed);
        std::mem::take(&mut *self.0.starts.lock())
    }

    /// Starts a manager with it.
    pub(crate) async fn start(
        &self,
        connection: Connection,
        namespace: Option<&str>,
    ) -> Result<(Running, Trigger)> {
        let controller = Controller::of::<Widget>().concurrency(1);
        let trigger = controller.trigger();
        let manager = Manager::new("bench", connection)
            .cache(Cache::of::<Widget>().namespaces(namespace))
            .controller(controller.reconcile(self.clone()));
        Ok((manager.start().await?, trigger))
    }
}

/// Nanoseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO).as_nanos() as u64
}

/// Runs it.
pub(crate) fn run(flags: &Flags, runtime: &Runtime) -> Result<()> {
    let connection = runtime.block_on(flags.connection())?;
    let expect = flags.get("expect", 0_u64)?;
    let namespace = Some(flags.text("namespace", "")).filter(|name| !name.is_empty());
    let idle = Idle::default();
    let mut running: Option<(Running, Trigger)> = None;
    Answer::default().heap().print()?;
    each(|word, number| {
        let runs = || idle.0.runs.now();
        match word {
            "start" => {
                running = Some(runtime.block_on(async {
                    let running = idle.start(connection.clone(), namespace).await?;
                    idle.runs(expect).await;
                    Ok::<_, crate::Error>(running)
                })?);
                Answer { objects: expect as usize, events: runs(), ..Answer::default() }.print()
            }
            "record" => {
                idle.record();
                Answer::default().print()
            }
            "reach" => {
                let starts = runtime.block_on(idle.take(number));
                Answer { starts, events: runs(), ..Answer::default() }.print()
            }
            "again" => {
                let (running, trigger) = running.as_ref().ok_or("it was not started")?;
                let keys: Vec<Key> = {
                    let store = running.client().informer::<Widget>()?.store();
                    store.list().iter().map(|object| object.key().clone()).collect()
                };
                let (count, watch) = (keys.len() as u64, Stopwatch::start());
                let wanted = runs() + count;
                keys.into_iter().for_each(|key| trigger.fire(key));
                runtime.block_on(idle.runs(wanted));
                watch.stop(count).print()
            }
            "heap" => Answer::default().heap().print(),
            other => unknown(other),
        }
    })
}
