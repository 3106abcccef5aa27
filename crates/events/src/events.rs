use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use watchkeeper_connection::Connection;

use crate::counts::{Counters, count};
use crate::series::{Series, Verdict};
use crate::writer::Writer;
use crate::{Event, EventCounts, EventOptions, ObjectRef};

/// How often to look for series that have come to their end.
const SWEEP_INTERVAL: Duration = Duration::from_secs(15);

/// Records events. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    queue: mpsc::Sender<(ObjectRef, Event)>,
    counters: Arc<Counters>,
}

impl Recorder {
    /// Records an event. Does not wait and does not fail: if too many are waiting already, or too many were recorded about
    /// this object, it is dropped and [counted](Events::counts).
    ///
    /// ```no_run
    /// # use watchkeeper_events::{Event, ObjectRef, Recorder};
    /// # fn example(recorder: &Recorder) {
    /// let widget = ObjectRef::new("example.com/v1", "Widget", "w").in_namespace("shop").with_uid("6f1c");
    /// recorder.event(&widget, Event::normal("Resized", "Resize", "from 1 to 3"));
    /// # }
    /// ```
    pub fn event(&self, regarding: &ObjectRef, event: Event) {
        count(&self.counters.recorded);
        if self.queue.try_send((regarding.clone(), event)).is_err() {
            count(&self.counters.overflowed);
        }
    }
}

/// The task that writes events (`events.k8s.io/v1`).
///
/// - An event that is recorded again within six minutes, whatever its note, is a repetition: the object that was written
///   first gets a series with the number and the time of the last. The second is written at once, later ones every minute.
/// - About one object, 25 events can be new at once, and one more every five minutes. Repetitions are not limited.
/// - What the server refuses is not tried again; what it does not answer, or cannot answer now, is tried twelve times.
/// - Events of objects that are in no namespace are in the namespace `default`.
///
/// Dropping it ends the task; what was not written is lost. [`shutdown`](Self::shutdown) writes what there is.
pub struct Events {
    recorder: Recorder,
    ending: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
}

impl Events {
    /// Starts the task. Needs a tokio runtime.
    pub fn start(connection: impl Into<Connection>, options: EventOptions) -> Self {
        let connection = connection.into();
        let (queue, waiting) = mpsc::channel(options.queue.max(1));
        let (ending, hurry) = watch::channel(false);
        let counters = Arc::new(Counters::default());
        let writer = Writer { connection, options: options.clone(), counters: Arc::clone(&counters), hurry };
        let supervisor = options.supervisor.clone();
        let task =
            Task { waiting, series: Series::new(options), writer, start: Instant::now(), in_hand: false };
        let task = async move { supervisor.run_with("events", task, |task| Box::pin(task.run())).await };
        let task = Some(tokio::spawn(task));
        Self { recorder: Recorder { queue, counters }, ending, task }
    }

    /// A recorder of this writer.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Counts of the events so far: written, dropped, failed.
    pub fn counts(&self) -> EventCounts {
        self.recorder.counters.read()
    }

    /// Stops to accept events and writes the pending ones, for at most `grace`. Returns the counts of all events.
    pub async fn shutdown(mut self, grace: Duration) -> EventCounts {
        self.ending.send_replace(true);
        if let Some(mut task) = self.task.take()
            && timeout(grace, &mut task).await.is_err()
        {
            task.abort();
        }
        self.counts()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// What the task has. A panic costs the event that is in hand.
struct Task {
    waiting: mpsc::Receiver<(ObjectRef, Event)>,
    series: Series,
    writer: Writer,
    start: Instant,
    /// Whether an event was taken and nothing has become of it yet.
    in_hand: bool,
}

impl Task {
    async fn run(&mut self) {
        if std::mem::take(&mut self.in_hand) {
            count(&self.writer.counters.failed);
        }
        let mut ending = self.writer.hurry.clone();
        ending.mark_unchanged();
        if *ending.borrow() {
            self.waiting.close();
        }
        let mut sweep = interval(SWEEP_INTERVAL);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                Ok(()) = ending.changed() => self.waiting.close(),
                next = self.waiting.recv() => match next {
                    Some((regarding, event)) => {
                        self.in_hand = true;
                        self.take(regarding, event).await;
                        self.in_hand = false;
                    }
                    None => break,
                },
                _ = sweep.tick() => {
                    for write in self.series.due(self.start.elapsed(), false) {
                        self.writer.write(write).await;
                    }
                }
            }
        }
        for write in self.series.due(self.start.elapsed(), true) {
            self.writer.write(write).await;
        }
    }

    async fn take(&mut self, regarding: ObjectRef, event: Event) {
        let now = self.start.elapsed();
        let wall = (self.writer.options.wall_clock)();
        match self.series.take(now, wall, regarding, event) {
            Verdict::New(write) => self.writer.write(write).await,
            Verdict::Repeated(write) => {
                count(&self.writer.counters.repeated);
                if let Some(write) = write {
                    self.writer.write(write).await;
                }
            }
            Verdict::Limited => count(&self.writer.counters.limited),
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("counts", &self.counts()).finish()
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}
