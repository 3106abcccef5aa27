//! The binary, over sockets: whatever comes in over one connection, the server goes on, and so do the others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use watchkeeper_fuzz::frames::{Conversation, Heard};
use watchkeeper_fuzz::octets::{self, Octets};
use watchkeeper_fuzz::{
    Corpus, Finding, Known, Process, Protocol, Remote, Request, Scenario, Server, Tally, cut, run, seconds,
    variable,
};

/// How long a connection that misbehaves, and then says nothing more, may stay open.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long what was asked for may take to come, before the other side is closed.
const SETTLE: Duration = Duration::from_millis(40);

/// A server, and a client that does nothing wrong.
struct Place {
    process: Process,
    innocent: Innocent,
}

/// A client with a connection of its own that reads one object again and again.
struct Innocent {
    stop: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<Vec<String>>,
}

impl Place {
    async fn start(name: &str) -> Self {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let process = Process::start(&scratch).unwrap();
        let client = Remote::new(process.kubeconfig(), Protocol::Two).await.unwrap();
        let (stop, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let task = tokio::spawn({
            let (stop, served) = (Arc::clone(&stop), Arc::clone(&served));
            async move {
                let request = Request::new("GET", "/api/v1/namespaces/default");
                let mut complaints = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    match client.send(&request).await {
                        Ok(answer) if answer.code == 200 => drop(served.fetch_add(1, Ordering::Relaxed)),
                        Ok(answer) => complaints.push(format!("{}: {}", answer.code, answer.message())),
                        Err(broken) => complaints.push(broken.to_string()),
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                complaints
            }
        });
        Self { process, innocent: Innocent { stop, served, task } }
    }

    async fn remote(&self, protocol: Protocol) -> Remote {
        Remote::new(self.process.kubeconfig(), protocol).await.unwrap()
    }

    /// Everything that went wrong beside the requests themselves.
    async fn end(mut self) {
        self.innocent.stop.store(true, Ordering::Relaxed);
        let complaints = self.innocent.task.await.unwrap();
        println!("the innocent client was served {} times", self.innocent.served.load(Ordering::Relaxed));
        assert!(self.process.is_alive(), "the server ended: {:#?}", self.process.panics());
        assert_eq!(self.process.panics(), Vec::<String>::new());
        assert_eq!(complaints, Vec::<String>::new(), "an innocent client was not served");
        assert!(self.innocent.served.load(Ordering::Relaxed) > 0);
    }
}

fn first_seed() -> u64 {
    let text = variable("SEED").or_else(|| variable("START"));
    text.map_or(1, |text| text.parse().unwrap())
}

/// The seeds to try until the deadline; only one if it was named.
fn seeds(deadline: Instant) -> impl futures_util::Stream<Item = u64> {
    let count = match (variable("SEED"), variable("SECONDS")) {
        (Some(_), _) => 1,
        (None, Some(_)) => u64::MAX / 2,
        // A usual run tries the same seeds on every machine, however quick it is.
        (None, None) => 500,
    };
    let first = first_seed();
    futures_util::stream::iter(first..first + count)
        .take_while(move |_| std::future::ready(variable("SEED").is_some() || Instant::now() < deadline))
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_requests_over_sockets_are_answered_on_their_connection() {
    let place = Place::start("fuzz-requests").await;
    let corpus = Corpus::read().unwrap();
    let known = Known::read();
    let scenarios = seeds(Instant::now() + seconds(18)).map(|seed| {
        let (corpus, place) = (&corpus, &place);
        async move {
            let protocol = if seed % 2 == 0 { Protocol::One } else { Protocol::Two };
            let server = place.remote(protocol).await;
            // Others than those of the requests without sockets.
            let scenario = Scenario::generate(corpus, !seed, &format!("fuzz-{:08x}-00", seed as u32));
            let mut heard = Vec::new();
            run(&server, &scenario, usize::MAX, |place, request, answer| {
                heard.push((place, request.clone(), answer.clone()));
            })
            .await;
            (seed, scenario.class, heard)
        }
    });
    let mut scenarios = Box::pin(scenarios.buffer_unordered(8));
    let (mut tally, mut findings) = (Tally::default(), Vec::new());
    while let Some((seed, class, heard)) = scenarios.next().await {
        for (place, request, answer) in heard {
            if variable("SEED").is_some() {
                println!("--- {request}\n>>> {answer:?}");
            }
            let what = tally.judge(class, &request, &answer);
            if let Some(what) =
                what.filter(|what| !what.strip_prefix("500: ").is_some_and(|message| known.has(message)))
            {
                findings.push(Finding { seed, place, what, request });
            }
        }
    }
    drop(scenarios);
    println!("{tally}");
    findings.iter().take(20).for_each(|finding| println!("{finding}"));
    assert!(findings.is_empty(), "{} findings, see above", findings.len());
    place.end().await;
}

/// Sends bytes on a connection of their own, closes that side once what is awaited has come, or after a while if that is not sure, and
/// returns what came until the server closed the other side; `None` if it did not.
async fn conversation(
    remote: &Remote,
    bytes: &[u8],
    is_sure: bool,
    awaited: impl Fn(&[u8]) -> bool,
) -> Option<Vec<u8>> {
    let (mut reader, mut writer) = tokio::io::split(remote.connect().await.unwrap());
    let mut heard = Vec::new();
    let talk = async {
        // Who is not read any more may be told so in the middle of a sentence.
        let send = async {
            let _ = writer.write_all(bytes).await;
            let _ = writer.flush().await;
            writer
        };
        let mut buffer = vec![0; 16 << 10];
        let mut send = std::pin::pin!(send);
        let mut open = None;
        let begin = Instant::now();
        loop {
            let is_enough = open.is_some() && (awaited(&heard) || (!is_sure && begin.elapsed() > SETTLE));
            if is_enough && let Some(Some(mut writer)) = open.replace(None::<tokio::io::WriteHalf<_>>) {
                let _ = writer.shutdown().await;
            }
            tokio::select! {
                writer = &mut send, if open.is_none() => open = Some(Some(writer)),
                read = reader.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(count) => heard.extend_from_slice(&buffer[..count]),
                },
                () = tokio::time::sleep(SETTLE) => {}
            }
        }
    };
    let ended = tokio::time::timeout(TIMEOUT, talk).await.is_ok();
    ended.then_some(heard)
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_are_wrong_end_their_connection_and_no_other() {
    let place = Place::start("fuzz-frames").await;
    let remote = place.remote(Protocol::Two).await;
    let counts: [AtomicUsize; 5] = Default::default();
    let failed = seeds(Instant::now() + seconds(14))
        .map(|seed| {
            let (remote, counts) = (&remote, &counts);
            async move {
                let said = Conversation::generate(seed, remote.address(), remote.authorization().as_deref());
                let wanted = said.requests;
                let heard = conversation(remote, &said.bytes(), !said.mutated, |bytes| {
                    Heard::read(bytes).answered >= wanted
                })
                .await;
                if variable("SEED").is_some() {
                    println!(
                        "{said:?}\n{:?}",
                        heard.as_deref().map(|heard| (Heard::read(heard), cut(heard, 2000)))
                    );
                }
                let Some(heard) = heard else {
                    return Some(format!("seed {seed}: the connection stays open"));
                };
                let heard = Heard::read(&heard);
                let outcome = [heard.answered > 0, heard.reset > 0, heard.goodbye, heard == Heard::default()];
                counts[0].fetch_add(1, Ordering::Relaxed);
                for (count, _) in counts[1..].iter().zip(outcome).filter(|(_, is_so)| *is_so) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                (!said.mutated && heard.answered != said.requests)
                    .then(|| format!("seed {seed}: {} requests, but {heard:?}", said.requests))
            }
        })
        .buffer_unordered(8)
        .filter_map(std::future::ready)
        .collect::<Vec<_>>()
        .await;
    let [all, answered, reset, goodbye, nothing] = counts.map(AtomicUsize::into_inner);
    println!(
        "{all} connections: {answered} with an answer, {reset} with a reset, {goodbye} with a goodbye, {nothing} with nothing"
    );
    assert!(failed.is_empty(), "{} connections: {:#?}", failed.len(), &failed[..failed.len().min(20)]);
    place.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn octets_that_are_no_request_end_their_connection_and_no_other() {
    let place = Place::start("fuzz-octets").await;
    let remote = place.remote(Protocol::One).await;
    let mut tally = std::collections::BTreeMap::<u16, usize>::new();
    let mut failed = Vec::new();
    let cases = seeds(Instant::now() + seconds(13)).map(|seed| {
        let remote = &remote;
        async move {
            let said = Octets::generate(seed, remote.address(), remote.authorization().as_deref());
            let wanted = said.requests;
            let heard = conversation(remote, &said.bytes, !said.mutated, |bytes| {
                octets::codes(bytes).len() >= wanted
            })
            .await;
            (seed, said, heard)
        }
    });
    let mut cases = std::pin::pin!(cases.buffer_unordered(8));
    while let Some((seed, said, heard)) = cases.next().await {
        if variable("SEED").is_some() {
            println!("{}\n>>> {:?}", cut(&said.bytes, 4000), heard.as_deref().map(|heard| cut(heard, 4000)));
        }
        let Some(heard) = heard else {
            failed.push(format!("seed {seed}: the connection stays open"));
            continue;
        };
        let codes = octets::codes(&heard);
        if !said.mutated && codes.len() != said.requests {
            failed.push(format!("seed {seed}: {} requests, but {codes:?}", said.requests));
        }
        if codes.contains(&500) {
            failed.push(format!("seed {seed}: {codes:?}"));
        }
        *tally.entry(codes.last().copied().unwrap_or_default()).or_default() += 1;
    }
    println!("last answers by code, 0 for none: {tally:?}");
    assert!(failed.is_empty(), "{} connections: {:#?}", failed.len(), &failed[..failed.len().min(20)]);
    place.end().await;
}
