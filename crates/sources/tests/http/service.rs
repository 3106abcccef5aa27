//! A service with a list of items, on a socket, that can be told to misbehave.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// How the next answer is not what it should be.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// This status, with these headers and an empty list as its body.
    Status(u16, String),
    /// The body ends before it should.
    Truncated,
    /// The connection is closed at once.
    Closed,
    /// A page for people.
    Html,
    /// The list as it was one change ago, all its pages.
    Stale,
    /// An empty list, with status 200.
    Empty,
    /// A third of the list, all its pages, with status 200.
    Third,
    /// The list, much later.
    Slow,
    /// The same list under another tag.
    AnotherTag,
}

impl Fault {
    /// Whether it is about a list with all its pages, so that it begins with the first one.
    fn is_of_lists(&self) -> bool {
        matches!(self, Self::Stale | Self::Empty | Self::Third)
    }
}

/// What an answer says about its own age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Validator {
    Strong,
    /// A weak tag that does not change.
    Weak,
    /// The second of the last change, on a clock that is off.
    Date,
    None,
}

#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    revision: Arc<watch::Sender<u64>>,
    task: Arc<Task>,
}

struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) struct State {
    pub(crate) items: BTreeMap<String, u64>,
    before: BTreeMap<String, u64>,
    pub(crate) validator: Validator,
    /// How many items a page has.
    pub(crate) page: Option<usize>,
    /// What all pages are of that are asked for before the first one is asked for again, if it is not the list as it is.
    shown: Option<BTreeMap<String, u64>>,
    pub(crate) faults: VecDeque<Fault>,
    /// The heads of all requests.
    pub(crate) requests: Vec<String>,
    /// What has to be in the header `Authorization`.
    pub(crate) password: Option<String>,
    /// The second of the last change, and how many of them there were in it.
    changed: u64,
    /// By how many seconds its clock is off.
    pub(crate) skew: i64,
    /// What is added to the revision that is shown as index.
    pub(crate) index_offset: i64,
    /// Whether it waits when it is asked to.
    pub(crate) waits: bool,
    /// Whether there is an item without a name in the list.
    pub(crate) nameless: bool,
    /// Whether all but the first page is refused, and bodies that are not in pages are cut short.
    pub(crate) cut: bool,
    /// Items that have lost their names.
    corrupt: BTreeSet<String>,
    /// Whether each answer has something in it that no other one has.
    pub(crate) restless: bool,
}

impl Service {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = State {
            items: BTreeMap::new(),
            before: BTreeMap::new(),
            validator: Validator::Strong,
            page: None,
            shown: None,
            faults: VecDeque::new(),
            requests: Vec::new(),
            password: None,
            changed: 1_000_000,
            skew: 3600,
            index_offset: 0,
            waits: true,
            nameless: false,
            cut: false,
            corrupt: BTreeSet::new(),
            restless: false,
        };
        let state = Arc::new(Mutex::new(state));
        let revision = Arc::new(watch::Sender::new(1));
        let serving = (Arc::clone(&state), Arc::clone(&revision));
        let task = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (state, revision) = serving.clone();
                tokio::spawn(async move {
                    let _ = Connection { socket, state, revision }.serve().await;
                });
            }
        });
        Self { address, state, revision, task: Arc::new(Task(task.abort_handle())) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut BTreeMap<String, u64>)) {
        let mut state = self.lock();
        state.before = state.items.clone();
        change(&mut state.items);
        state.changed += 10;
        drop(state);
        self.revision.send_modify(|revision| *revision += 1);
    }

    /// Has an item lose its name, until it is put again.
    pub(crate) fn corrupt(&self, name: &str) {
        self.lock().corrupt.insert(name.into());
        self.change(|_| {});
    }

    /// Gives their names back to all that have lost them.
    pub(crate) fn heal(&self) {
        self.lock().corrupt.clear();
        self.change(|_| {});
    }

    pub(crate) fn put(&self, name: &str, value: u64) {
        self.lock().corrupt.remove(name);
        self.change(|items| {
            items.insert(name.into(), value);
        });
    }

    pub(crate) fn remove(&self, name: &str) {
        self.change(|items| {
            items.remove(name);
        });
    }

    pub(crate) fn fail(&self, fault: Fault) {
        self.lock().faults.push_back(fault);
    }

    /// The heads of the requests for a path so far.
    pub(crate) fn requests(&self, path: &str) -> Vec<String> {
        let start = format!("GET {path}");
        self.lock().requests.iter().filter(|head| head.starts_with(&start)).cloned().collect()
    }

    /// Forgets that it is kept alive by this handle.
    pub(crate) fn stop(&self) {
        self.task.0.abort();
    }
}

struct Connection {
    socket: TcpStream,
    state: Arc<Mutex<State>>,
    revision: Arc<watch::Sender<u64>>,
}

impl Connection {
    async fn serve(mut self) -> std::io::Result<()> {
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match self.socket.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => return Ok(()),
                }
            }
            let head = String::from_utf8(head).unwrap().to_lowercase().replacen("get ", "GET ", 1);
            self.state.lock().unwrap().requests.push(head.clone());
            let target = head.split(' ').nth(1).unwrap().to_owned();
            if target.starts_with("/events") {
                return self.events().await;
            }
            let fault = self.fault(&target);
            if fault.is_none() {
                self.wait(&head, &target).await;
            }
            if let Some(Fault::Slow) = fault {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            let Some(answer) = self.answer(&head, &target, fault) else { return Ok(()) };
            let truncated = answer.ends_with(b"TRUNCATED");
            self.socket.write_all(answer.strip_suffix(b"TRUNCATED").unwrap_or(&answer)).await?;
            if truncated {
                return Ok(());
            }
        }
    }

    /// How the answer to a request is not what it should be.
    fn fault(&self, target: &str) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        let is_first = parameter(target, "page").is_none();
        let fault = state.faults.pop_front_if(|fault| is_first || !fault.is_of_lists());
        if state.page.is_some() && is_first {
            state.shown = match fault {
                Some(Fault::Stale) => Some(state.before.clone()),
                Some(Fault::Empty) => Some(BTreeMap::new()),
                Some(Fault::Third) => {
                    Some(state.items.clone().into_iter().take(state.items.len() / 3).collect())
                }
                _ => None,
            };
        }
        fault
    }

    async fn wait(&self, head: &str, target: &str) {
        if !self.state.lock().unwrap().waits {
            return;
        }
        let asked = parameter(target, "wait").and_then(|wait| wait.trim_end_matches('s').parse().ok());
        let preferred = header(head, "prefer").and_then(|prefer| prefer.strip_prefix("wait=")?.parse().ok());
        let Some(seconds) = asked.or(preferred) else { return };
        let mut revision = self.revision.subscribe();
        let known = match parameter(target, "index").and_then(|index| index.parse::<i64>().ok()) {
            Some(index) => index - self.state.lock().unwrap().index_offset,
            None => match header(head, "if-none-match").and_then(|tag| tag.trim_matches('"').parse().ok()) {
                Some(known) => known,
                None => return,
            },
        };
        let newer = revision.wait_for(|revision| *revision as i64 != known);
        let _ = tokio::time::timeout(Duration::from_secs(seconds), newer).await;
    }

    fn answer(&self, head: &str, target: &str, fault: Option<Fault>) -> Option<Vec<u8>> {
        let state = self.state.lock().unwrap();
        let revision = *self.revision.borrow();
        let respond = |status: u16, headers: &str, body: &str| {
            let length = body.len();
            Some(
                format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
                    .into_bytes(),
            )
        };
        if let Some(password) = &state.password
            && header(head, "authorization") != Some(&password.to_lowercase())
        {
            return respond(401, "", "");
        }
        let list = |items: Vec<(&String, &u64)>, next: Option<usize>| {
            let mut items: Vec<_> = items
                .iter()
                .map(|(id, value)| match state.corrupt.contains(*id) {
                    true => json!({"di": id, "value": value}),
                    false => json!({"id": id, "value": value}),
                })
                .collect();
            items.extend(state.nameless.then(|| json!({"value": 0})));
            items.extend(state.restless.then(|| json!({"id": "clock", "value": state.requests.len()})));
            json!({
                "items": items,
                "next": next.map(|next| format!("/items?page={next}")),
                "token": next.map(|next| next.to_string()),
            })
            .to_string()
        };
        let index = i64::try_from(revision).unwrap() + state.index_offset;
        let mut headers = format!("x-index: {index}\r\n");
        let mut items = state.shown.as_ref().unwrap_or(&state.items);
        let mut tag = revision;
        match fault {
            Some(Fault::Status(status, headers)) => {
                return respond(status, &headers, &list(Vec::new(), None));
            }
            Some(Fault::Closed) => return None,
            Some(Fault::Html) => return respond(200, "", "<html>we will be back soon</html>"),
            Some(Fault::Stale | Fault::Empty | Fault::Third) if state.page.is_some() => {}
            // Without validators: on a condition, it would be said again and again that this has not changed.
            Some(Fault::Empty) => return respond(200, &headers, &list(Vec::new(), None)),
            Some(Fault::Third) => {
                let third = state.items.iter().take(state.items.len() / 3);
                return respond(200, &headers, &list(third.collect(), None));
            }
            Some(Fault::Stale) => {
                items = &state.before;
                tag = revision - 1;
            }
            Some(Fault::AnotherTag) => tag = revision + 1_000_000,
            Some(Fault::Truncated | Fault::Slow) | None => {}
        }
        match state.validator {
            Validator::Strong => headers += &format!("etag: \"{tag}\"\r\n"),
            Validator::Weak => headers += "etag: W/\"always\"\r\n",
            Validator::Date => {
                let changed = state.changed - if tag < revision { 10 } else { 0 };
                headers += &format!(
                    "last-modified: {}\r\ndate: {}\r\n",
                    date(changed),
                    date(state.changed.saturating_add_signed(state.skew))
                );
            }
            Validator::None => {}
        }
        let fault = match fault {
            None if state.cut && state.page.is_none() => Some(Fault::Truncated),
            None if state.cut && parameter(target, "page").is_some() => return respond(500, "", ""),
            fault => fault,
        };
        let unchanged = match state.validator {
            Validator::Strong => header(head, "if-none-match") == Some(&format!("\"{tag}\"")),
            Validator::Weak => header(head, "if-none-match").is_some(),
            Validator::Date => header(head, "if-modified-since") == Some(&date(state.changed).to_lowercase()),
            Validator::None => false,
        };
        if unchanged && !matches!(fault, Some(Fault::Truncated)) {
            return respond(304, &headers, "");
        }
        let all: Vec<_> = items.iter().collect();
        let body = match state.page {
            None => list(all, None),
            Some(size) => {
                let page: usize = parameter(target, "page").and_then(|page| page.parse().ok()).unwrap_or(0);
                let more = all.len() > (page + 1) * size;
                let next = more.then_some(page + 1);
                if let Some(next) = next {
                    headers += &format!("link: </items?page={next}>; rel=\"next\"\r\n");
                }
                list(all.into_iter().skip(page * size).take(size).collect(), next)
            }
        };
        let mut answer = respond(200, &headers, &body)?;
        if matches!(fault, Some(Fault::Truncated)) {
            answer.truncate(answer.len() - body.len() / 2);
            answer.extend(b"TRUNCATED");
        }
        Some(answer)
    }

    /// An event for every revision.
    async fn events(mut self) -> std::io::Result<()> {
        let mut revision = self.revision.subscribe();
        self.socket
            .write_all(b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\nretry: 10\n\n")
            .await?;
        loop {
            if revision.changed().await.is_err() {
                return Ok(());
            }
            let event = format!("id: {}\ndata: changed\n\n", *revision.borrow_and_update());
            if matches!(self.state.lock().unwrap().faults.front(), Some(Fault::Closed)) {
                self.state.lock().unwrap().faults.pop_front();
                return Ok(());
            }
            self.socket.write_all(event.as_bytes()).await?;
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn parameter<'a>(target: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = target.split_once('?')?;
    query.split('&').find_map(|parameter| parameter.strip_prefix(name)?.strip_prefix('='))
}

/// A date in January 1970, which is enough for these tests.
fn date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(days % 7) as usize];
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday}, {:02} Jan 1970 {hour:02}:{minute:02}:{second:02} GMT", days + 1)
}
