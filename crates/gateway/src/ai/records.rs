//! Records of calls: a line of JSON each, in files that are rotated; or a row each, in a database.
//!
//! Records are written as soon as the disk takes them: several at once if there are several. What was handed to the system survives the end of the process by
//! whatever signal; it is not synced, so that a crash of the machine may take the last seconds with it. No call waits for a disk or a database: records
//! wait, within bounds, and beyond them are lost and counted.
//!
//! The oldest files are removed when all of them together are too large. What budgets were charged with in the month that runs is added up before, and
//! kept in a file of its own.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;
use watchkeeper_ai::{Amounts, Money, Period, Usage};
use watchkeeper_core::Key;
use watchkeeper_front::private_file;
use watchkeeper_go::Time;
use watchkeeper_supervision::Supervisor;

use super::clock::now;
use super::content::Content;
use super::database_writer::DatabaseWriter;
use super::record_table::RecordTable;
use crate::thread;

/// The name of the thread that writes.
const TASK: &str = "ai-records";
/// How many records may wait to be written. More are lost, and counted.
const WAITING: usize = 16_384;
/// How many bytes of content those may have that wait.
const CONTENT_BYTES: usize = 64 << 20;
/// How long a gateway that stops waits for its records to be written.
const FLUSH: Duration = Duration::from_secs(5);
/// A file of this size, in bytes, is followed by another.
const FILE_BYTES: u64 = 64 << 20;
/// How large all files together may be, in bytes.
const ALL_BYTES: u64 = 32 * FILE_BYTES;
/// How much is written at once at most, in bytes.
const BATCH: usize = 1 << 20;
/// What budgets were charged with by calls whose records were removed.
const SUMS: &str = "sums.jsonl";
const PREFIX: &str = "calls-";
const SUFFIX: &str = ".jsonl";

/// What became of a call. It has nothing of keys; and of prompts and answers what the policy of the key says.
#[derive(Clone, Debug)]
pub struct Record {
    /// When it began.
    pub time: SystemTime,
    /// Which call: clients get it as `x-request-id`.
    pub id: String,
    /// The AIGatewayConfig.
    pub gateway: Key,
    /// The LLMGatewayPolicy of the key.
    pub policy: Option<Key>,
    /// The name of the key.
    pub key: Option<Arc<str>>,
    /// The model, as the client named it.
    pub model: Arc<str>,
    /// The provider that was asked last.
    pub provider: Option<Arc<str>>,
    /// What the client speaks.
    pub dialect: &'static str,
    /// Whether the answer was a stream.
    pub stream: bool,
    /// The status code; 0 if the client left before there was one.
    pub status: u16,
    /// What went wrong, in a word.
    pub error: Option<&'static str>,
    /// What was used, if the provider said so.
    pub usage: Option<Usage>,
    /// What it cost.
    pub cost: Money,
    /// What its budgets are charged with: more than what was used if nobody knows what was.
    pub charged: Amounts,
    /// How long it took, to the last byte.
    pub duration: Duration,
    /// How long it took to the first token.
    pub first_token: Option<Duration>,
    /// How often providers were asked.
    pub attempts: u32,
    /// Whether the answer is one that was given before: no provider was asked.
    pub is_cached: bool,
    /// What is kept of the request and the answer.
    pub(super) content: Option<Content>,
}

impl Record {
    /// The line.
    pub fn to_json(&self) -> Value {
        let millis = |duration: Duration| duration.as_micros() as f64 / 1e3;
        let mut record = json!({
            "time": Time::from(self.time).rfc3339_micro(),
            "id": self.id,
            "namespace": self.gateway.namespace(),
            "gateway": self.gateway.name(),
            "policy": self.policy.as_ref().map(Key::name),
            "key": self.key.as_deref(),
            "model": &*self.model,
            "provider": self.provider.as_deref(),
            "dialect": self.dialect,
            "stream": self.stream,
            "status": self.status,
            "error": self.error,
            "inputTokens": self.usage.map(|usage| usage.input),
            "cachedTokens": self.usage.map(|usage| usage.cached),
            "outputTokens": self.usage.map(|usage| usage.output),
            "cost": self.cost.to_string(),
            "chargedTokens": self.charged.tokens,
            "chargedCost": Money(self.charged.money).to_string(),
            "chargedRequests": self.charged.requests,
            "milliseconds": millis(self.duration),
            "firstTokenMilliseconds": self.first_token.map(millis),
            "attempts": self.attempts,
            "cached": self.is_cached,
        });
        if let Some(content) = &self.content {
            let (request, response) = content.to_texts();
            (record["request"], record["response"]) = (request.into(), response.into());
        }
        record
    }
}

/// Where records go.
#[derive(Clone, Debug, Default)]
pub struct Destinations {
    /// A directory for files.
    pub directory: Option<PathBuf>,
    /// A table.
    pub table: Option<RecordTable>,
}

impl Destinations {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.directory.is_none() && self.table.is_none()
    }
}

enum Message {
    Record(Box<Record>),
    /// Answered when all that came before is written, or handed to who writes to the database.
    Flush(oneshot::Sender<()>),
}

/// Writes records, from a thread of its own, so that no call waits for a disk.
pub(crate) struct Records {
    sender: Option<SyncSender<Message>>,
    counted: Arc<Counted>,
    database: Option<Arc<DatabaseWriter>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Counted {
    lost: AtomicU64,
    /// Bytes of content that wait.
    content: AtomicUsize,
}

impl Records {
    /// Writes to files in a directory, which is made if it is not there, and to a table, on the current runtime.
    ///
    /// # Errors
    ///
    /// If the directory cannot be made or written.
    pub(crate) fn start(destinations: Destinations, supervisor: &Supervisor) -> io::Result<Self> {
        let output = match &destinations.directory {
            Some(directory) => {
                fs::create_dir_all(directory)?;
                Some(Output::open(directory, Sizes { file: FILE_BYTES, all: ALL_BYTES })?)
            }
            None => None,
        };
        let database = destinations.table.map(|table| Arc::new(DatabaseWriter::start(table, supervisor)));
        let (sender, messages) = sync_channel(WAITING);
        let counted = Arc::<Counted>::default();
        let (database_writer, counts) = (database.clone(), Arc::clone(&counted));
        let mut writer = Writer {
            output,
            database: database_writer,
            counted: counts,
            in_hand: 0,
            supervisor: supervisor.clone(),
        };
        let entry = supervisor.enter(TASK);
        let thread = std::thread::Builder::new()
            .name(TASK.into())
            .spawn(move || thread::run(&entry, || writer.run(&messages)))?;
        Ok(Self { sender: Some(sender), counted, database, thread: Some(thread) })
    }

    /// Takes a record. Without room for its content, it is taken without it.
    pub(super) fn write(&self, mut record: Record) {
        if let Some(content) = &record.content {
            let bytes = content.size();
            if self.counted.content.fetch_add(bytes, Relaxed).saturating_add(bytes) > CONTENT_BYTES {
                self.counted.content.fetch_sub(bytes, Relaxed);
                record.content = None;
                self.counted.lost.fetch_add(1, Relaxed);
            }
        }
        let Some(sender) = &self.sender else { return };
        if let Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) =
            sender.try_send(Message::Record(Box::new(record)))
        {
            self.counted.taken(&message);
            self.counted.lost.fetch_add(1, Relaxed);
        }
    }

    /// How many records were lost, or lost their content, because the disk was too slow.
    pub(crate) fn lost(&self) -> u64 {
        self.counted.lost.load(Relaxed)
    }

    /// How many records were written to the database, and how many were lost because it was too slow or refused them.
    pub(crate) fn in_database(&self) -> Option<(u64, u64)> {
        let counted = self.database.as_ref()?.counted();
        Some((counted.written.load(Relaxed), counted.lost.load(Relaxed)))
    }

    /// Waits until all that was taken is written, but not for ever.
    pub(crate) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        let sent = self.sender.as_ref().is_some_and(|sender| sender.try_send(Message::Flush(done)).is_ok());
        let flushing = async {
            if sent {
                let _ = flushed.await; // the thread has ended
            }
            if let Some(database) = &self.database {
                database.flush().await;
            }
        };
        if timeout(FLUSH, flushing).await.is_err() {
            tracing::error!("records of calls are lost: they were not written within {FLUSH:?}");
        }
    }
}

impl Counted {
    /// Takes note of a message that waits no longer.
    fn taken(&self, message: &Message) {
        if let Message::Record(record) = message
            && let Some(content) = &record.content
        {
            self.content.fetch_sub(content.size(), Relaxed);
        }
    }
}

/// What waits is written.
impl Drop for Records {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // what failed was said
        }
    }
}

/// The thread that writes.
struct Writer {
    output: Option<Output>,
    database: Option<Arc<DatabaseWriter>>,
    counted: Arc<Counted>,
    /// How many records are in the batch.
    in_hand: u64,
    supervisor: Supervisor,
}

impl Writer {
    /// Writes until no more can come. Can be called again after a panic: the batch that was in hand is lost.
    fn run(&mut self, messages: &Receiver<Message>) {
        self.lose_batch();
        while let Ok(first) = messages.recv() {
            let (mut batch, mut next, mut flushed) = (Vec::new(), Some(first), None);
            while let Some(message) = next {
                self.counted.taken(&message);
                match message {
                    Message::Record(record) => self.take(&record, &mut batch),
                    Message::Flush(done) => flushed = Some(done),
                }
                let goes_on = batch.len() < BATCH && flushed.is_none();
                next = if goes_on { messages.try_recv().ok() } else { None };
            }
            if let Some(output) = self.output.as_mut().filter(|_| !batch.is_empty())
                && let Err(error) = output.write(&batch)
            {
                tracing::error!("{}: records of calls are lost: {error}", output.directory.display());
                self.lose_batch();
            }
            self.in_hand = 0;
            if let Some(done) = flushed {
                let _ = done.send(()); // nobody waits any more
            }
        }
    }

    fn lose_batch(&mut self) {
        self.counted.lost.fetch_add(std::mem::take(&mut self.in_hand), Relaxed);
    }

    /// Puts a record into the batch. One that makes this panic is lost, and no other.
    fn take(&mut self, record: &Record, batch: &mut Vec<u8>) {
        let supervisor = self.supervisor.clone();
        let policy = record.policy.as_ref().unwrap_or(&record.gateway);
        match supervisor.caught(TASK, policy, || self.line(record, batch)) {
            Some(()) => self.in_hand += 1,
            None => drop(self.counted.lost.fetch_add(1, Relaxed)),
        }
    }

    fn line(&self, record: &Record, batch: &mut Vec<u8>) {
        let line = format!("{}\n", record.to_json()).into_bytes();
        if self.output.is_some() {
            batch.extend_from_slice(&line);
        }
        if let Some(database) = &self.database {
            database.offer(line);
        }
    }
}

/// When files end.
#[derive(Clone, Copy)]
struct Sizes {
    file: u64,
    all: u64,
}

struct Output {
    directory: PathBuf,
    file: File,
    bytes: u64,
    sizes: Sizes,
}

impl Output {
    /// Goes on with the last file, or begins another if that is full.
    fn open(directory: &Path, sizes: Sizes) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let last = files(directory)?.pop();
        let last = last.filter(|path| fs::metadata(path).is_ok_and(|metadata| metadata.len() < sizes.file));
        let path = last.unwrap_or_else(|| {
            let now = Time::from(SystemTime::now()).rfc3339_micro().replace(':', "");
            directory.join(format!("{PREFIX}{now}{SUFFIX}"))
        });
        let mut file = options.open(path)?;
        let mut bytes = file.metadata()?.len();
        // A process that was killed may have left half a line.
        if bytes > 0 {
            let mut end = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut end)?;
            if end != *b"\n" {
                file.write_all(b"\n")?;
                bytes += 1;
            }
        }
        Ok(Self { directory: directory.to_owned(), file, bytes, sizes })
    }

    fn write(&mut self, batch: &[u8]) -> io::Result<()> {
        if self.bytes >= self.sizes.file {
            *self = Self::open(&self.directory, self.sizes)?;
            self.remove_oldest()?;
        }
        self.file.write_all(batch)?;
        self.bytes += batch.len() as u64;
        Ok(())
    }

    /// Removes the oldest files if all together are too large.
    fn remove_oldest(&self) -> io::Result<()> {
        let mut sizes = Vec::new();
        for file in files(&self.directory)? {
            let bytes = fs::metadata(&file)?.len();
            sizes.push((file, bytes));
        }
        let mut total: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
        sizes.pop(); // it is being written
        for (file, bytes) in sizes {
            if total <= self.sizes.all {
                break;
            }
            self.keep_sums(&file)?;
            fs::remove_file(&file)?;
            total -= bytes;
        }
        Ok(())
    }

    /// Adds what a file says of this month to the sums. If this is interrupted before the file is removed, it counts twice: rather too much than too little.
    fn keep_sums(&self, file: &Path) -> io::Result<()> {
        let month = Period::Month.number(now());
        let mut sums: BTreeMap<Sum, Amounts> = BTreeMap::new();
        let kept = self.directory.join(SUMS);
        for path in [&kept, file].into_iter().filter(|path| path.exists()) {
            each_line(path, &mut |record| {
                if let Some((sum, charged)) = Sum::of(record)
                    && Period::Month.number(sum.hour * 3_600) == month
                {
                    let known = sums.entry(sum).or_default();
                    *known = known.plus(charged);
                }
            })?;
        }
        let lines: String =
            sums.iter().map(|(sum, charged)| format!("{}\n", sum.to_json(*charged))).collect();
        private_file::write(&kept, lines.as_bytes())
    }
}

/// Whose calls, and in which hour since 1970.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sum {
    namespace: Option<String>,
    policy: Option<String>,
    key: Option<String>,
    hour: u64,
}

impl Sum {
    /// Where a record belongs, and what it is charged with.
    fn of(record: &Value) -> Option<(Self, Amounts)> {
        let text = |name: &str| record[name].as_str().map(str::to_owned);
        let time = seconds(record)?;
        let (namespace, policy, key) = (text("namespace"), text("policy"), text("key"));
        Some((Self { namespace, policy, key, hour: time / 3_600 }, charged(record)))
    }

    /// A line that says of budgets what its records said.
    fn to_json(&self, charged: Amounts) -> Value {
        let time = UNIX_EPOCH + Duration::from_secs(self.hour * 3_600);
        json!({
            "time": Time::from(time).rfc3339_micro(),
            "namespace": self.namespace,
            "policy": self.policy,
            "key": self.key,
            "chargedTokens": charged.tokens,
            "chargedCost": Money(charged.money).to_string(),
            "chargedRequests": charged.requests,
        })
    }
}

/// When the call of a record began, in seconds since 1970.
fn seconds(record: &Value) -> Option<u64> {
    let time = record["time"].as_str().and_then(|time| Time::parse_micro(time).ok())?;
    u64::try_from(time.seconds()).ok()
}

fn charged(record: &Value) -> Amounts {
    let cost = record["chargedCost"].as_str().and_then(|cost| cost.parse::<Money>().ok());
    Amounts {
        requests: record["chargedRequests"].as_u64().unwrap_or(0),
        tokens: record["chargedTokens"].as_u64().unwrap_or(0),
        money: cost.unwrap_or_default().0,
    }
}

/// The files of a directory, the oldest first: their names are times.
fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Goes through all records of a directory, the oldest first. Lines that are none, such as one that is being written, are left out.
///
/// # Errors
///
/// If the directory or a file cannot be read.
pub fn read(directory: &Path, mut each: impl FnMut(&Value)) -> io::Result<()> {
    for file in files(directory)? {
        each_line(&file, &mut each)?;
    }
    Ok(())
}

fn each_line(file: &Path, each: &mut impl FnMut(&Value)) -> io::Result<()> {
    let mut lines = BufReader::new(File::open(file)?);
    let mut line = Vec::new();
    // Half a line need not be text.
    while lines.read_until(b'\n', &mut line)? > 0 {
        if let Ok(record) = serde_json::from_slice::<Value>(&line) {
            each(&record);
        }
        line.clear();
    }
    Ok(())
}

/// The name under which the budget of all of a namespace is kept. No policy can have it.
pub(crate) const TENANT: &str = "Tenant:";

/// What budgets were charged with in the periods of a moment, by policy, and name of the key; empty for all keys of the policy. What all of a namespace
/// was charged with is under a policy that cannot be.
pub type Spent = HashMap<(Key, String), [Amounts; Period::ALL.len()]>;

/// Adds what calls of a namespace, a policy and a key were charged with in each period.
pub(super) fn charge(
    spent: &mut Spent,
    [namespace, policy, key]: [Option<&str>; 3],
    charged: &[Amounts; Period::ALL.len()],
) {
    let tenant = (Key::new(namespace, TENANT), "");
    let policy = policy.map(|policy| Key::new(namespace, policy));
    let all = policy.clone().map(|policy| (policy, ""));
    let own = policy.zip(key);
    for (policy, name) in [Some(tenant), all, own].into_iter().flatten() {
        let sums = spent.entry((policy, name.to_owned())).or_default();
        for (sum, charged) in sums.iter_mut().zip(charged) {
            *sum = sum.plus(*charged);
        }
    }
}

/// Adds up what records say of the periods that a moment is in, so that a start does not begin anew.
///
/// # Errors
///
/// If the directory or a file cannot be read.
pub fn spent(directory: &Path, now: u64) -> io::Result<Spent> {
    let mut spent = Spent::new();
    if !directory.exists() {
        return Ok(spent);
    }
    let mut add = |record: &Value| {
        let text = |name: &str| record[name].as_str();
        let Some(time) = seconds(record) else { return };
        let charged = charged(record);
        let in_period = |period: Period| period.number(time) == period.number(now);
        let sums = Period::ALL.map(|period| if in_period(period) { charged } else { Amounts::default() });
        charge(&mut spent, [text("namespace"), text("policy"), text("key")], &sums);
    };
    let sums = directory.join(SUMS);
    if sums.exists() {
        each_line(&sums, &mut add)?;
    }
    read(directory, add)?;
    Ok(spent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { file: 2_000, all: 6_000 };

    fn line(time: SystemTime, number: u64) -> Vec<u8> {
        let record = json!({
            "time": Time::from(time).rfc3339_micro(), "namespace": "a", "policy": "p", "key": if number.is_multiple_of(2) { "jane" } else { "joe" },
            "chargedTokens": 7, "chargedCost": "0.01", "chargedRequests": 1, "padding": "x".repeat(200),
        });
        format!("{record}\n").into_bytes()
    }

    fn requests(directory: &Path, policy: &str, key: &str) -> u64 {
        let spent = spent(directory, now()).unwrap();
        let place = (Key::new(Some("a"), policy), key.to_owned());
        spent.get(&place).map_or(0, |sums| sums[Period::Month as usize].requests)
    }

    #[test]
    fn what_was_spent_this_month_outlives_the_files_that_say_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let long_ago = SystemTime::now() - Duration::from_secs(40 * 86_400);
        let mut output = Output::open(path, SIZES).unwrap();
        for number in 0..100 {
            output.write(&line(long_ago, number)).unwrap();
            output.write(&line(SystemTime::now(), number)).unwrap();
        }
        let size: u64 = files(path).unwrap().iter().map(|file| fs::metadata(file).unwrap().len()).sum();
        assert!(size <= SIZES.all + SIZES.file, "{size}");
        assert_eq!(
            (requests(path, "p", "jane"), requests(path, "p", ""), requests(path, TENANT, "")),
            (50, 100, 100)
        );
    }

    #[test]
    fn sums_are_private_and_are_not_written_through_a_link() {
        let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, target) = (directory.path(), elsewhere.path().join("target"));
        fs::write(&target, "as it was").unwrap();
        for name in [SUMS.to_owned(), format!("{SUMS}.new")] {
            std::os::unix::fs::symlink(&target, path.join(name)).unwrap();
        }
        let mut output = Output::open(path, SIZES).unwrap();
        for number in 0..100 {
            output.write(&line(SystemTime::now(), number)).unwrap();
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "as it was");
        let sums = fs::symlink_metadata(path.join(SUMS)).unwrap();
        assert!(sums.is_file());
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&sums) & 0o777, 0o600);
    }

    #[test]
    fn a_start_goes_on_with_the_last_file_and_after_half_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        for _ in 0..50 {
            Output::open(path, SIZES).unwrap();
        }
        assert_eq!(files(path).unwrap().len(), 1);
        let mut output = Output::open(path, SIZES).unwrap();
        output.write(&line(SystemTime::now(), 0)).unwrap();
        output.write(&line(SystemTime::now(), 1)[..50]).unwrap();
        Output::open(path, SIZES).unwrap().write(&line(SystemTime::now(), 2)).unwrap();
        assert_eq!(requests(path, "p", ""), 2, "the half line is left out, and what follows it is not");
    }
}
