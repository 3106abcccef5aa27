use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use watchkeeper_connection::Connection;

use crate::lease::Stamps;
use crate::machine::{Action, Answer, Input, Machine, Note};
use crate::requests::Requests;
use crate::sightings::Sightings;
use crate::{ElectionEvent, ElectionMetrics, ElectionOptions, InvalidOptions, Leadership, LeaseName};

/// How many events wait for somebody who does not ask for them.
const WAITING: usize = 64;

/// A candidate for a Lease, which leads as long as it holds the Lease.
///
/// # What it promises
///
/// - Of all candidates for a lease, at most one has a [`Leadership`] that [is held](Leadership::is_held), as long as their
///   clocks run at about the same speed. What time they show does not matter: a lease is judged by how long it has not been
///   seen to change.
/// - The leader renews every retry period. A request that hangs does not keep it from trying again. It steps down when it
///   could not renew for the renew deadline, and stands again: a loss does not end the election.
/// - Others take over as soon as the lease is released or not renewed for its duration.
/// - A lease that somebody deletes is still respected by candidates who have seen it; its holder creates it again.
///   One that somebody edits to have another holder is lost.
/// - [`release`](Self::release) leaves the lease to others at once. Call it when all work has ended: from then on others
///   work. Dropping the election is what a crash does: the leadership ends here, and others wait for the lease to run out.
///
/// # What it does not promise
///
/// - That what the leader sent before it lost the lease arrives before its successor starts; see [`Leadership`].
/// - Anything about people who edit the lease: whoever empties its holder by hand can have two leaders for as long as the
///   old one takes to notice, one retry period.
pub struct Election {
    identity: String,
    shared: Arc<Shared>,
    release: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<ElectionEvent>,
    leadership: Option<Leadership>,
    leader: Option<String>,
    metrics: ElectionMetrics,
    ended: bool,
}

impl Election {
    /// Starts to stand for a lease. Needs a tokio runtime.
    pub fn start(
        connection: impl Into<Connection>,
        name: LeaseName,
        options: ElectionOptions,
    ) -> Result<Self, InvalidOptions> {
        options.validate()?;
        let identity = options.identity.clone();
        let shared = Arc::new(Shared::default());
        let (release, released) = watch::channel(false);
        let candidate = Candidate {
            machine: Machine::new(name.clone(), &options),
            requests: Requests::new(connection.into(), &name),
            sightings: Sightings::Closed,
            stamps: Stamps::new(options.wall_clock),
            options,
            shared: Arc::clone(&shared),
            released,
            begun: false,
        };
        let task = Some(tokio::spawn(candidate.supervised()));
        Ok(Self { identity, shared, release, task })
    }

    /// The next event. `None` when the election has ended. If events are not taken, the oldest of 64 are dropped.
    pub async fn next(&mut self) -> Option<ElectionEvent> {
        loop {
            let changed = self.shared.changed.notified();
            {
                let mut state = self.shared.state.lock();
                if let Some(event) = state.events.pop_front() {
                    return Some(event);
                }
                if state.ended {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// The identity of this candidate.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The present term, if this candidate leads.
    pub fn leadership(&self) -> Option<Leadership> {
        self.shared.state.lock().leadership.clone().filter(Leadership::is_held)
    }

    /// The leader, as far as this candidate knows.
    pub fn leader(&self) -> Option<String> {
        self.shared.state.lock().leader.clone()
    }

    /// The metrics of this election.
    pub fn metrics(&self) -> ElectionMetrics {
        let mut metrics = self.shared.state.lock().metrics;
        metrics.leading &= self.leadership().is_some();
        metrics
    }

    /// Ends the election and leaves the lease to others. For when all work that needed it has ended. Takes no longer than the
    /// renew deadline, even if the server does not answer.
    pub async fn release(mut self) {
        self.release.send_replace(true);
        if let Some(task) = self.task.take() {
            // Panics are caught inside.
            let _ = task.await;
        }
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        self.shared.end();
    }
}

impl Shared {
    fn end(&self) {
        let mut state = self.state.lock();
        if let Some(leadership) = state.leadership.take() {
            leadership.end();
        }
        state.ended = true;
        drop(state);
        self.changed.notify_waiters();
    }
}

/// The task of an election: does what the machine says.
struct Candidate {
    machine: Machine,
    requests: Requests,
    sightings: Sightings,
    stamps: Stamps,
    options: ElectionOptions,
    shared: Arc<Shared>,
    released: watch::Receiver<bool>,
    /// Whether it has run before.
    begun: bool,
}

impl Candidate {
    async fn supervised(self) {
        let supervisor = self.options.supervisor.clone();
        supervisor.run_with("election", self, |candidate| Box::pin(candidate.run())).await;
    }

    async fn run(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            let was_leading = self.shared.state.lock().leadership.is_some();
            self.machine.begin_again(&self.options, was_leading);
            self.sightings.close();
            self.publish();
        }
        // Only if a panic came in between: others wait until the lease runs out.
        if *self.released.borrow() {
            return self.shared.end();
        }
        let mut input = Input::Wake;
        loop {
            let stamp = self.stamps.next();
            let action = self.machine.step(self.options.clock.now(), &stamp, input);
            self.publish();
            if !self.machine.is_standby() {
                self.sightings.close();
            }
            let mut released = self.released.clone();
            input = tokio::select! {
                biased;
                // Told once: after that, the machine is on its way to the end.
                Ok(()) = released.changed() => {
                    self.released = released;
                    Input::Release
                }
                input = self.perform(action) => match input {
                    Some(input) => input,
                    None => break,
                },
            };
        }
        self.shared.end();
    }

    /// `None` at the end.
    async fn perform(&mut self, action: Action) -> Option<Input> {
        let answer = match action {
            Action::Wait { until } => {
                let time = until.saturating_sub(self.options.clock.now());
                return Some(self.wait(time).await);
            }
            Action::Read { timeout } => self.requests.read(timeout).await,
            Action::Create { lease, timeout } => self.requests.create(lease, timeout).await,
            Action::Replace { lease, timeout } => self.requests.replace(lease, timeout).await,
            Action::End => return None,
        };
        if let Answer::Failed { why, .. } = &answer {
            tracing::warn!(candidate = %self.options.identity, %why, "lease request failed");
        }
        Some(Input::Answered(answer))
    }

    async fn wait(&mut self, time: Duration) -> Input {
        if !self.options.watch || !self.machine.is_standby() {
            sleep(time).await;
            return Input::Wake;
        }
        tokio::select! {
            sighting = self.sightings.next(&self.requests, self.options.retry_period) => Input::Sighted(sighting),
            () = sleep(time) => Input::Wake,
        }
    }

    /// Makes known what the machine has decided.
    fn publish(&mut self) {
        let notes = self.machine.take_notes();
        let mut state = self.shared.state.lock();
        for note in notes {
            let event = match note {
                Note::Standby(leader) => {
                    state.leader.clone_from(&leader);
                    ElectionEvent::Standby { leader }
                }
                Note::Leading => {
                    let until = self.machine.held_until().unwrap_or_default();
                    let term = self.machine.metrics().terms;
                    let leadership = Leadership::new(term, self.options.clock.clone(), until);
                    state.leader = Some(self.options.identity.clone());
                    state.leadership = Some(leadership.clone());
                    ElectionEvent::Leading(leadership)
                }
                Note::Lost(loss) => {
                    if let Some(leadership) = state.leadership.take() {
                        leadership.end();
                    }
                    state.leader = None;
                    ElectionEvent::Lost(loss)
                }
            };
            tracing::info!(candidate = %self.options.identity, ?event, "election");
            if state.events.len() == WAITING {
                state.events.pop_front();
            }
            state.events.push_back(event);
        }
        if let (Some(until), Some(leadership)) = (self.machine.held_until(), &state.leadership) {
            leadership.extend(until);
        }
        state.metrics = self.machine.metrics();
        drop(state);
        self.shared.changed.notify_waiters();
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election").field("identity", &self.identity).field("leader", &self.leader()).finish()
    }
}
