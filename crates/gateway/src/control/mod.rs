//! From sources to requests: what keeps the table up to date, opens sockets, and tells what became of objects.

mod explain;
mod ports;
mod reports;
mod side_tasks;
mod sources;
mod state;
mod statuses;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use watchkeeper_connection::Connection;
use watchkeeper_core::{Key, Source};
use watchkeeper_front::{Drained, Listener as Socket};
use watchkeeper_informer::Object;
use watchkeeper_sources::postgres::Database;
use watchkeeper_supervision::Supervisor;

pub use explain::{Explained, Question, Served, explain};
pub use state::StateError;

use crate::ai;
use crate::ai::records::{Destinations, Records, Spent};
use crate::compile::{Compiler, Place, Report, Settings};
use crate::object::ObjectId;
use crate::proxy::Shared;
use crate::proxy::access_log::AccessLog;
use crate::spans::{Otlp, Tracer};
use crate::table::Table;
use ports::{Ending, Ports};
use reports::Reports;
use side_tasks::SideTasks;
use sources::{Follower, News, Sources};
use state::StateFile;
use statuses::Statuses;

/// The name of the task that keeps the table up to date.
const TASK: &str = "configuration";
/// How many pieces of news are taken together.
const BATCH: usize = 4_096;
/// How long sources may take for their first word, before what others have said is compiled and listened for. Requests are still answered with 503
/// as long as a source that may have policies is silent.
const SYNC_TIMEOUT: Duration = Duration::from_secs(5);
/// How often files that objects name are looked at, sockets that could not be opened are tried again, and idle connections are closed.
const ROUND: Duration = Duration::from_secs(2);

/// Where objects come from.
pub enum From {
    /// Objects of all kinds in one source: files, a table, keys of etcd, a list behind a URL.
    Source(Arc<dyn Source>),
    /// The kinds of a cluster.
    Kubernetes(Connection),
}

/// Where budgets of models are kept that replicas share.
pub enum BudgetStore {
    /// LLMBudget objects of a cluster.
    Kubernetes(Connection),
    /// A table of a PostgreSQL database.
    Postgres(Database),
}

impl BudgetStore {
    /// Reads `postgres://user@host/database?table=NAME&passwordFile=FILE`. Nothing is asked yet.
    ///
    /// # Errors
    ///
    /// What is wrong with the URL.
    pub fn from_url(url: &str) -> Result<Self, String> {
        ai::DatabaseStore::database(url).map(Self::Postgres)
    }
}

/// What a gateway is made of.
#[derive(Default)]
pub struct Options {
    /// Where objects come from. Of one object in two of them, that of the first counts.
    pub from: Vec<From>,
    /// Where files are that objects name, and which listeners listen elsewhere than their objects say.
    pub settings: Settings,
    /// The directory in which the last good state is kept, for a start without sources.
    pub state: Option<PathBuf>,
    /// Where the access log goes, and of how many requests one is logged.
    pub access_log: Option<(Box<dyn Write + Send>, u64)>,
    /// Where spans of requests go.
    pub otlp: Option<Otlp>,
    /// Sockets that were opened by somebody else, such as the process before this one: a listener that wants the address of one gets it.
    pub sockets: Vec<Socket>,
    /// Where calls of models are recorded.
    pub records: Destinations,
    /// Where budgets of models are kept that replicas share. Then what records say of them does not count.
    pub share_budgets: Option<BudgetStore>,
    /// What watches over tasks.
    pub supervisor: Supervisor,
}

/// Why a gateway could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The access log cannot be written.
    #[error("the access log: {0}")]
    Log(std::io::Error),
    /// Calls of models cannot be recorded.
    #[error("the records of calls: {0}")]
    Records(std::io::Error),
    /// Spans cannot be exported.
    #[error("the export of spans: {0}")]
    Otlp(String),
}

/// A gateway that runs.
///
/// # What it promises
///
/// - A request is served by the table that was current when its head was read, to its last byte.
/// - A change in a source is served as soon as it is known; nobody but those it is for notices. No connection is closed for it.
/// - An object that cannot be used keeps its last good form. A source that fails keeps its objects.
/// - When [`Report::programmed`] is true of a generation, every request that comes in after that is served by it or a later one.
///
/// # What it does not promise
///
/// That the objects of two sources are seen as of one moment.
pub struct Gateway {
    handle: Handle,
    stop: Option<watch::Sender<Option<Ending>>>,
    keeper: JoinHandle<Drained>,
}

/// What is to be seen of a gateway.
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) view: Arc<Mutex<View>>,
    progress: watch::Receiver<u64>,
    supervisor: Supervisor,
}

/// What the keeper last did.
#[derive(Default)]
pub(crate) struct View {
    pub(crate) reports: Reports,
    /// Where sockets are, by the address that their objects name, or why there is none.
    pub(crate) ports: BTreeMap<SocketAddr, Result<SocketAddr, String>>,
    /// Sources that have not delivered everything once, or have failed since, with the reason.
    pub(crate) sources: Vec<SourceView>,
    /// Objects that cannot be read at all.
    pub(crate) rejected: BTreeMap<String, String>,
    pub(crate) front: Vec<(SocketAddr, watchkeeper_front::AccessMetrics)>,
    pub(crate) sockets: Vec<Socket>,
    pub(crate) begun: bool,
    pub(crate) from_state: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct SourceView {
    pub(crate) name: String,
    pub(crate) synced: bool,
    /// Whether the state file has its objects.
    pub(crate) stored: bool,
    /// Whether requests wait for it, because it may have policies for them.
    pub(crate) awaited: bool,
    pub(crate) error: Option<String>,
}

impl Gateway {
    /// Starts on the current runtime. Sources that do not answer are waited for. Requests are answered with 503 as long as one of them may have
    /// policies, unless the state on disk has its objects.
    pub fn start(options: Options) -> Result<Self, Error> {
        let Options {
            from,
            mut settings,
            state,
            access_log,
            otlp,
            sockets,
            records,
            share_budgets,
            supervisor,
        } = options;
        let begin = SystemTime::now();
        let now = begin.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        // Budgets that replicas share are known to those who lease them.
        let spent = match (&records.directory, &records.table) {
            _ if share_budgets.is_some() => None,
            (Some(directory), _) => {
                (settings.spent, settings.spent_at) =
                    (ai::records::spent(directory, now).map_err(Error::Records)?, now);
                None
            }
            (None, Some(table)) => Some((ai::ask_spent(table.clone(), begin, &supervisor), now)),
            (None, None) => None,
        };
        let log = match access_log {
            Some((output, one_in)) => AccessLog::start(output, one_in, &supervisor).map_err(Error::Log)?,
            None => AccessLog::default(),
        };
        let state = state.map(StateFile::open).transpose()?;
        let records = match records.is_empty() {
            true => None,
            false => Some(Records::start(records, &supervisor).map_err(Error::Records)?),
        };
        let tracer = otlp.map(|otlp| Tracer::start(otlp, &supervisor)).transpose().map_err(Error::Otlp)?;
        let share = share_budgets.map(|store| match store {
            BudgetStore::Kubernetes(cluster) => ai::Share::start(ai::ClusterStore(cluster), &supervisor),
            BudgetStore::Postgres(database) => {
                ai::Share::start(ai::DatabaseStore::new(database), &supervisor)
            }
        });
        let shared =
            Arc::new(Shared::new(log, tracer, ai::Shared { records, share, ..ai::Shared::default() }));
        if spent.is_some() {
            shared.ai.spent.awaits();
        }
        let view = Arc::<Mutex<View>>::default();
        let (stop, stopping) = watch::channel(None);
        let (told, progress) = watch::channel(0);
        let (sender, news) = mpsc::channel(BATCH);
        let sources = Sources::start(from, &sender, &supervisor);
        let mut keeper = Keeper {
            compiler: Compiler::new(settings),
            origins: HashMap::new(),
            ports: Ports::new(Arc::clone(&shared), supervisor.clone(), sockets),
            side_tasks: SideTasks::new(supervisor.clone()),
            statuses: Statuses::start(sources.handles(), &supervisor),
            shared: Arc::clone(&shared),
            view: Arc::clone(&view),
            sources,
            state,
            told,
            news,
            spent,
            stopping,
            begun: false,
            supervisor: supervisor.clone(),
        };
        let from_state = keeper.load_state();
        view.lock().from_state = from_state;
        keeper.begun = from_state;
        let handle = Handle { shared, view, progress, supervisor: supervisor.clone() };
        let keeper =
            tokio::spawn(
                async move { supervisor.run_with(TASK, keeper, |keeper| Box::pin(keeper.keep())).await },
            );
        Ok(Self { handle, stop: Some(stop), keeper })
    }

    /// What is to be seen of it.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Stops: no more connections are accepted, requests that run may end within this time.
    pub async fn stop(self, grace: Duration) -> Drained {
        self.end(Ending::Stop(grace)).await
    }

    /// Stops in favour of another process, which has its [sockets](Handle::sockets) and accepts: nobody is refused. Clients are told to connect anew;
    /// requests that run may end within this time.
    pub async fn hand_over(self, grace: Duration) -> Drained {
        self.end(Ending::HandOver(grace)).await
    }

    async fn end(mut self, ending: Ending) -> Drained {
        if let Some(stop) = self.stop.take() {
            stop.send_replace(Some(ending));
        }
        (&mut self.keeper).await.unwrap_or(Drained::CutOff)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Handle {
    /// The table that requests are served by.
    pub fn table(&self) -> Arc<Table> {
        self.shared.table()
    }

    /// What became of the objects.
    pub fn reports(&self) -> Vec<Report> {
        self.view.lock().reports.all()
    }

    /// What became of an object.
    pub fn report(&self, id: &ObjectId) -> Option<Report> {
        self.view.lock().reports.get(id)
    }

    /// Where sockets are, by the address that their listeners name; for those that could not be opened, why.
    pub fn ports(&self) -> BTreeMap<SocketAddr, Result<SocketAddr, String>> {
        self.view.lock().ports.clone()
    }

    /// How many connections are open, by the address that listeners name.
    pub fn connections(&self) -> BTreeMap<SocketAddr, i64> {
        let view = self.view.lock();
        view.front.iter().map(|(address, metrics)| (*address, metrics.connections())).collect()
    }

    /// The sockets of all listeners, to be passed to another process.
    pub fn sockets(&self) -> Vec<Socket> {
        self.view.lock().sockets.iter().filter_map(|socket| socket.try_clone().ok()).collect()
    }

    /// Objects that could not be read, by their place, and why.
    pub fn rejected(&self) -> BTreeMap<String, String> {
        self.view.lock().rejected.clone()
    }

    /// Whether requests are served, and what is not as it should be.
    ///
    /// Requests are served when all sources have told everything once, or the state on disk has their objects, and at least one socket is
    /// open if there are listeners. A listener that has no socket is named, and harms no other.
    pub fn readiness(&self) -> (bool, Vec<String>) {
        let failing = self.supervisor.failing();
        let mut notes: Vec<String> = failing
            .iter()
            .map(|task| format!("task {task}: panics again and again; the log says where"))
            .collect();
        let view = self.view.lock();
        for source in &view.sources {
            match (&source.error, source.synced) {
                (Some(error), _) => notes.push(format!("source {}: {error}", source.name)),
                (None, false) => {
                    notes.push(format!("source {}: has not delivered everything yet", source.name));
                }
                (None, true) => {}
            }
            if source.awaited {
                notes.push(format!(
                    "source {}: may have policies: requests are answered with 503 until it has delivered everything",
                    source.name
                ));
            }
        }
        if view.from_state && view.sources.iter().any(|source| !source.synced) {
            notes.push(
                "objects of sources that do not answer are served as they were when the state was written"
                    .into(),
            );
        }
        if self.shared.ai.spent.is_awaited() {
            notes.push("the database of records has not said yet what budgets were charged with: calls of models that have limits wait for it".into());
        }
        for (address, port) in &view.ports {
            if let Err(reason) = port {
                notes.push(format!("listener on {address}: {reason}"));
            }
        }
        let served = view.begun && view.sources.iter().all(|source| source.synced || source.stored);
        let listens = view.ports.is_empty() || !view.sockets.is_empty();
        (served && listens && failing.is_empty(), notes)
    }

    /// Waits until something changed after the last time that this was called on the same handle.
    pub async fn changed(&mut self) {
        // The keeper lives as long as the gateway; after it nothing changes any more.
        if self.progress.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until requests are served.
    pub async fn ready(&mut self) {
        while !self.readiness().0 {
            self.changed().await;
        }
    }
}

/// Keeps the table up to date. It alone owns the compiler.
struct Keeper {
    compiler: Compiler,
    /// Which object a source has under a key, if that does not say it.
    origins: HashMap<(usize, Key), ObjectId>,
    ports: Ports,
    side_tasks: SideTasks,
    statuses: Statuses,
    shared: Arc<Shared>,
    view: Arc<Mutex<View>>,
    sources: Sources,
    state: Option<StateFile>,
    told: watch::Sender<u64>,
    news: mpsc::Receiver<News>,
    /// Who says what budgets were charged with before a moment, while that is not known.
    spent: Option<(mpsc::Receiver<Spent>, u64)>,
    /// Set to how long requests may take to end when the gateway is to stop.
    stopping: watch::Receiver<Option<Ending>>,
    /// Whether what is known is served yet.
    begun: bool,
    supervisor: Supervisor,
}

impl Keeper {
    /// Follows the sources until the gateway is to stop. Can be called again after a panic: all objects are then looked at again.
    async fn keep(&mut self) -> Drained {
        let deadline = Instant::now() + SYNC_TIMEOUT;
        let mut round = interval(ROUND);
        round.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.compiler.touch_all();
        self.begun |= self.sources.is_synced();
        if self.begun {
            self.publish();
        }
        let (mut batch, mut is_silent) = (Vec::new(), false);
        let ending = loop {
            tokio::select! {
                biased;
                ending = self.stopping.wait_for(Option::is_some).map(|ending| ending.ok().and_then(|ending| *ending)) => {
                    break ending.unwrap_or(Ending::Stop(Duration::ZERO));
                }
                taken = self.news.recv_many(&mut batch, BATCH), if !is_silent => {
                    // No source is left that could say anything.
                    is_silent = taken == 0;
                    for piece in batch.drain(..) {
                        self.take_caught(piece);
                    }
                    self.begun |= self.sources.is_synced();
                }
                Some((spent, at)) = told(&mut self.spent) => self.restore_spent(spent, at),
                _ = round.tick() => self.round(),
                () = sleep_until(deadline), if !self.begun => self.begun = true,
            }
            if self.begun {
                self.publish();
            }
            self.show();
        };
        self.stop(ending).await
    }

    /// Has budgets go on from what they were charged with before a moment.
    fn restore_spent(&mut self, spent: Spent, at: u64) {
        self.spent = None;
        self.compiler.restore_spent(spent, at);
        self.shared.ai.spent.told();
    }

    /// Takes one piece of news. An object that makes this panic is rejected, and keeps its last good form.
    fn take_caught(&mut self, piece: News) {
        let name = match &piece {
            News::Changed(follower, key, _)
            | News::Rejected(follower, Some(key), _)
            | News::Mended(follower, key) => self.sources.shown(*follower, key),
            News::Rejected(follower, None, _) | News::Synced(follower) | News::Failed(follower, _) => {
                self.sources.name(*follower).to_owned()
            }
        };
        let changed = match &piece {
            News::Changed(follower, key, Some(_)) => Some((*follower, key.clone())),
            _ => None,
        };
        let supervisor = self.supervisor.clone();
        if supervisor.caught(TASK, &name, || self.take(piece)).is_none() {
            if let Some((follower, key)) = changed {
                self.doubt(follower, &key);
            }
            self.view.lock().rejected.insert(name, "it makes the gateway panic, which is a bug".to_owned());
        }
    }

    /// Takes one piece of news.
    fn take(&mut self, piece: News) {
        match piece {
            News::Changed(follower, key, value) => self.changed(follower, key, value),
            News::Rejected(follower, key, reason) => {
                if let Some(key) = &key {
                    self.doubt(follower, key);
                }
                let key = key.unwrap_or_else(|| Key::new(None, "an object"));
                let name = self.sources.shown(follower, &key);
                tracing::warn!("{name}: {reason}");
                self.view.lock().rejected.insert(name, reason);
            }
            News::Mended(follower, key) => {
                self.sources.mended(follower, &key);
                self.view.lock().rejected.remove(&self.sources.shown(follower, &key));
            }
            News::Synced(follower) => {
                self.sources.synced(follower);
                self.forget_replaced();
            }
            News::Failed(follower, reason) => self.sources.failed(follower, reason),
        }
    }

    /// Notes that a source has something that cannot be read. What it has told of already is known without the state file.
    fn doubt(&mut self, follower: Follower, key: &Key) {
        let place = (self.sources.number(follower), self.sources.place(follower, key));
        if self.origin(follower, key, &place).is_none() {
            self.sources.doubt(place);
        }
    }

    /// Forgets what the state file has and its source has not any more.
    fn forget_replaced(&mut self) {
        for (place, id) in self.sources.take_replaced() {
            self.compiler.apply(&place, &id, None);
        }
    }

    /// The object that a source has under a key, as far as it has told of it.
    fn origin(&self, follower: Follower, key: &Key, place: &Place) -> Option<ObjectId> {
        let Some(kind) = self.sources.kind(follower) else { return self.origins.get(place).cloned() };
        Some(ObjectId { kind, key: key.clone() }).filter(|id| self.compiler.has(id, place))
    }

    fn changed(&mut self, follower: Follower, key: Key, object: Option<Object<Value>>) {
        let place = (self.sources.number(follower), self.sources.place(follower, &key));
        let name = || self.sources.shown(follower, &key);
        let input = match object {
            None => None,
            Some(object) => match crate::object::Input::stored(&object) {
                Ok(input) => input,
                Err(problem) => {
                    let name = name();
                    tracing::warn!("{name}: {problem}");
                    self.view.lock().rejected.insert(name, problem.to_string());
                    self.doubt(follower, &key);
                    return;
                }
            },
        };
        self.view.lock().rejected.remove(&name());
        self.sources.mended(follower, &key);
        let id = input.as_ref().map(|input| input.id.clone());
        let before = self.origin(follower, &key, &place);
        if before != id {
            if self.sources.kind(follower).is_none() {
                match &id {
                    Some(id) => self.origins.insert(place.clone(), id.clone()),
                    None => self.origins.remove(&place),
                };
            }
            // An object may have another name than before under the same key: a row of a table.
            if let Some(before) = before {
                self.compiler.apply(&place, &before, None);
            }
        }
        if let Some((id, input)) = id.zip(input) {
            self.compiler.apply(&place, &id, Some(input));
        }
        // After it: a form that cannot be used leaves the one of the state file in use.
        if let Some((place, id)) = self.sources.take_told(&place) {
            self.compiler.apply(&place, &id, None);
        }
    }

    /// Has requests be served by what is known now, and tells so.
    fn publish(&mut self) {
        let touched = self.compiler.take_touched();
        let is_withheld = !self.sources.has_policies();
        let is_released = self.shared.table().is_withheld != is_withheld;
        if touched.is_empty() && self.ports.is_settled() && !is_released {
            return;
        }
        if self.compiler.take_changed() || is_released {
            let mut table = self.compiler.table().clone();
            table.generation = self.shared.table().generation + 1;
            table.is_withheld = is_withheld;
            let table = Arc::new(table);
            self.shared.publish(Arc::clone(&table));
            self.side_tasks.follow(&table, &touched);
        }
        let moved = self.ports.follow(&self.shared.table());
        let ports = self.ports.state();
        let mut reports = Vec::new();
        for id in touched.iter().chain(&moved) {
            let report = self
                .compiler
                .report(id)
                .map(|report| ports::with_socket(report, &self.shared.table(), &ports));
            reports.push((id.clone(), report));
        }
        reports.iter().filter_map(|(_, report)| report.as_ref()).for_each(|report| self.tell_status(report));
        let mut view = self.view.lock();
        if view.ports != ports {
            view.sockets = self.ports.sockets();
        }
        view.ports = ports;
        view.front = self.ports.metrics();
        for (id, report) in reports {
            match report {
                Some(report) => {
                    let before = view.reports.get(&id);
                    if before.as_ref() != Some(&report) {
                        log(&report, before.is_some());
                    }
                    view.reports.insert(report);
                }
                None => view.reports.remove(&id),
            }
        }
        drop(view);
        if let Some(state) = &mut self.state {
            state.changed();
        }
    }

    /// Has what became of an object be written into its status, in all sources that have it.
    fn tell_status(&mut self, report: &Report) {
        let names = self.sources.names();
        let by = names.get(report.source).map(String::as_str).unwrap_or_default();
        let shadowed = self.compiler.shadowed(&report.id).into_iter();
        let shadowed = shadowed.map(|(source, generation)| report.shadowed(source, generation, by));
        for report in [report.clone()].into_iter().chain(shadowed) {
            let follower = self.sources.follower(report.source, report.id.kind);
            let stored = self.compiler.stored(&report.id, report.source);
            if let Some((follower, object)) = follower.zip(stored) {
                self.statuses.tell(&report, follower, object);
            }
        }
    }

    /// What is done from time to time.
    fn round(&mut self) {
        self.compiler.refresh_files();
        if self.sources.forget_mended() {
            self.forget_replaced();
        }
        let table = self.shared.table();
        table.backends().for_each(|backend| backend.sweep());
        table.ai.providers().for_each(|provider| provider.backend.sweep());
        table.ai.webhooks().for_each(|webhook| webhook.backend.sweep());
        table.ai.servers().for_each(|server| server.backend.sweep());
        // Before all sources have spoken, what is known is less than what was written.
        if let Some(state) = &mut self.state
            && self.sources.is_synced()
            && state.is_due()
        {
            let names = self.sources.names();
            state.write(self.compiler.good(), &names);
        }
    }

    /// Lets others see what was done.
    fn show(&mut self) {
        let mut view = self.view.lock();
        view.begun = self.begun;
        view.sources = self.sources.views();
        drop(view);
        self.told.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn load_state(&mut self) -> bool {
        let Some(state) = &self.state else { return false };
        let names = self.sources.names();
        let (loaded, stored) = state.load(&names);
        self.sources.set_stored(stored);
        let any = !loaded.is_empty();
        for (place, input) in loaded {
            self.sources.remember(&place, &input.id);
            let id = input.id.clone();
            self.compiler.apply(&place, &id, Some(input));
        }
        any
    }

    async fn stop(&mut self, ending: Ending) -> Drained {
        self.sources.stop().await;
        self.side_tasks.stop();
        self.view.lock().sockets.clear();
        let drained = self.ports.stop(ending).await;
        if let Some(share) = &self.shared.ai.share {
            share.close().await;
        }
        if let Some(records) = &self.shared.ai.records {
            records.flush().await;
        }
        self.shared.log.flush().await;
        // It is no more for this one to write when another has taken over: what it knows is older.
        if let Some(state) = &mut self.state
            && self.sources.is_synced()
            && matches!(ending, Ending::Stop(_))
        {
            let names = self.sources.names();
            state.write(self.compiler.good(), &names);
            state.finish().await;
        }
        drained
    }
}

/// What budgets were charged with, once somebody says so.
async fn told(spent: &mut Option<(mpsc::Receiver<Spent>, u64)>) -> Option<(Spent, u64)> {
    match spent {
        Some((spent, at)) => spent.recv().await.map(|spent| (spent, *at)),
        None => None,
    }
}

fn log(report: &Report, known: bool) {
    match report.is_good() {
        false => tracing::warn!("{report}"),
        true if known => tracing::info!("{report}"),
        true => tracing::debug!("{report}"),
    }
}
