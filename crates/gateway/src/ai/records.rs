//! Records of calls: a line of JSON each, in files that are rotated.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use watchkeeper_ai::{Amounts, Money, Period, Usage};
use watchkeeper_core::Key;
use watchkeeper_go::Time;

/// How many records may wait to be written. More are lost, and counted.
const WAITING: usize = 16_384;
/// A file of this size, in bytes, is followed by another.
const FILE_BYTES: u64 = 64 << 20;
/// How many files are kept.
const FILES: usize = 32;
/// How long records are collected before they are written.
const BATCH: Duration = Duration::from_millis(200);
const PREFIX: &str = "calls-";
const SUFFIX: &str = ".jsonl";

/// What became of a call. It has nothing of prompts, answers and keys.
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
}

impl Record {
    /// The line.
    pub fn to_json(&self) -> Value {
        let millis = |duration: Duration| duration.as_micros() as f64 / 1e3;
        json!({
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
        })
    }
}

/// Writes records, from a thread of its own, so that no call waits for a disk.
pub struct Records {
    sender: Option<SyncSender<Vec<u8>>>,
    lost: AtomicU64,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Records {
    /// Writes to files in a directory, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// If it cannot be made or written.
    pub fn start(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let output = Output::open(directory)?;
        let (sender, lines) = sync_channel(WAITING);
        let thread =
            std::thread::Builder::new().name("ai-records".into()).spawn(move || write_all(output, &lines))?;
        Ok(Self { sender: Some(sender), lost: AtomicU64::new(0), thread: Some(thread) })
    }

    pub(super) fn write(&self, record: &Record) {
        let line = format!("{}\n", record.to_json()).into_bytes();
        if self.sender.as_ref().is_none_or(|sender| sender.try_send(line).is_err()) {
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// How many records were lost because the disk was too slow.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
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

fn write_all(mut output: Output, lines: &Receiver<Vec<u8>>) {
    let (mut batch, mut since) = (Vec::new(), Instant::now());
    loop {
        let received = match batch.is_empty() {
            true => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => lines.recv_timeout(BATCH.saturating_sub(since.elapsed())),
        };
        let is_over = matches!(received, Err(RecvTimeoutError::Disconnected));
        if let Ok(line) = &received {
            if batch.is_empty() {
                since = Instant::now();
            }
            batch.extend_from_slice(line);
        }
        let is_due = received.is_err() || since.elapsed() >= BATCH || batch.len() > 1 << 20;
        if is_due && !batch.is_empty() {
            if let Err(error) = output.write(&batch) {
                tracing::error!("{}: records of calls are lost: {error}", output.directory.display());
            }
            batch.clear();
        }
        if is_over {
            return;
        }
    }
}

struct Output {
    directory: PathBuf,
    file: File,
    bytes: u64,
}

impl Output {
    fn open(directory: &Path) -> io::Result<Self> {
        let name =
            format!("{PREFIX}{}{SUFFIX}", Time::from(SystemTime::now()).rfc3339_micro().replace(':', ""));
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(directory.join(name))?;
        Ok(Self { directory: directory.to_owned(), file, bytes: 0 })
    }

    fn write(&mut self, batch: &[u8]) -> io::Result<()> {
        if self.bytes >= FILE_BYTES {
            *self = Self::open(&self.directory)?;
            let files = files(&self.directory)?;
            for old in files.iter().take(files.len().saturating_sub(FILES)) {
                fs::remove_file(old)?;
            }
        }
        self.file.write_all(batch)?;
        self.bytes += batch.len() as u64;
        Ok(())
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
        for line in BufReader::new(File::open(file)?).lines() {
            if let Ok(record) = serde_json::from_str::<Value>(&line?) {
                each(&record);
            }
        }
    }
    Ok(())
}

/// What budgets were charged with in the periods of a moment, by policy, and name of the key; empty for all keys of the policy.
pub type Spent = HashMap<(Key, String), [Amounts; Period::ALL.len()]>;

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
    read(directory, |record| {
        let text = |name: &str| record[name].as_str();
        let time = text("time").and_then(|time| Time::parse_micro(time).ok());
        let time = time.and_then(|time| u64::try_from(time.seconds()).ok());
        let (Some(time), Some(policy), Some(key)) = (time, text("policy"), text("key")) else { return };
        let charged = Amounts {
            requests: record["chargedRequests"].as_u64().unwrap_or(0),
            tokens: record["chargedTokens"].as_u64().unwrap_or(0),
            money: text("chargedCost").and_then(|cost| cost.parse::<Money>().ok()).unwrap_or_default().0,
        };
        let policy = Key::new(text("namespace"), policy);
        for name in [key, ""] {
            let sums = spent.entry((policy.clone(), name.to_owned())).or_default();
            for (sum, period) in sums.iter_mut().zip(Period::ALL) {
                if period.number(time) == period.number(now) {
                    *sum = sum.plus(charged);
                }
            }
        }
    })?;
    Ok(spent)
}
