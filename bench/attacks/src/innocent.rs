//! The innocent client: a process of its own that reads one small object again and again, and tells how long that took.

use std::fs;
use std::io::{self, BufRead, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use rustix::process::nice;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};
use watchkeeper_bench_target::{Access, Ask, Connection, Result};

use crate::site::CALM;

/// Attackers come from 127.0.0.1, so that limits by address tell them apart.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// Between two requests over the kept connection, and between two new connections.
const INTERVAL: Duration = Duration::from_millis(2);
const FRESH_PAUSE: Duration = Duration::from_millis(100);
/// Whoever has not been answered after this time gives up.
const TIMEOUT: Duration = Duration::from_secs(8);

/// What the client saw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sight {
    /// Over one connection that is kept.
    pub(crate) kept: Series,
    /// Over a new connection each, the handshakes included; empty if that was not asked for.
    pub(crate) fresh: Series,
}

/// Times in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Series {
    pub(crate) count: usize,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
    /// Requests that were not answered with 200.
    pub(crate) failed: usize,
    /// Why the first of them was not.
    pub(crate) failure: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Order {
    seconds: f64,
    fresh: bool,
}

/// The client, seen from the program that started it. It ends when this is dropped.
pub(crate) struct Innocent {
    _process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Innocent {
    /// Starts it.
    pub(crate) fn start(kubeconfig: &Path) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("innocent")
            .arg(kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let (Some(input), Some(output)) = (input, output) else { return Err("no pipes".into()) };
        Ok(Self { _process: process, input, output: BufReader::new(output).lines() })
    }

    /// Has it look for a while.
    pub(crate) async fn look(&mut self, time: Duration, fresh: bool) -> Result<Sight> {
        let order = serde_json::to_string(&Order { seconds: time.as_secs_f64(), fresh })?;
        self.input.write_all(format!("{order}\n").as_bytes()).await?;
        let line = self.output.next_line().await?.ok_or("the innocent client ended")?;
        Ok(serde_json::from_str(&line)?)
    }
}

/// What runs in the process: answers each order of a line on stdin with a line on stdout.
pub(crate) fn serve(kubeconfig: &Path) -> Result<()> {
    // It has a machine of its own, too: what it would wait for a core that the server is using is nothing that it could notice there.
    // Only root may ask for that.
    if nice(-15).is_err() {
        eprintln!("the innocent client runs at the usual priority: what it waits for a core counts");
    }
    let access = Arc::new(Access { from: Some(ADDRESS), ..Access::of(&fs::read(kubeconfig)?)? });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut kept = None;
    for line in io::stdin().lock().lines() {
        let order: Order = serde_json::from_str(&line?)?;
        let end = Instant::now() + Duration::from_secs_f64(order.seconds);
        let sight = runtime.block_on(async {
            let looking = look(&access, &mut kept, end);
            match order.fresh {
                true => join(looking, look_afresh(&access, end)).await,
                false => (looking.await, Series::default()),
            }
        });
        let sight = Sight { kept: sight.0, fresh: sight.1 };
        writeln!(io::stdout(), "{}", serde_json::to_string(&sight)?)?;
    }
    Ok(())
}

async fn look(access: &Arc<Access>, kept: &mut Option<Connection>, end: Instant) -> Series {
    let mut times = Times::default();
    while Instant::now() < end {
        let begin = Instant::now();
        let answered = timeout(TIMEOUT, ask(access, kept)).await;
        if !times.take(begin, answered) {
            *kept = None;
        }
        sleep(INTERVAL).await;
    }
    times.series()
}

async fn look_afresh(access: &Arc<Access>, end: Instant) -> Series {
    let mut times = Times::default();
    while Instant::now() < end {
        let begin = Instant::now();
        times.take(begin, timeout(TIMEOUT, ask(access, &mut None)).await);
        sleep(FRESH_PAUSE).await;
    }
    times.series()
}

async fn ask(access: &Arc<Access>, connection: &mut Option<Connection>) -> Result<()> {
    let mut used = match connection.take() {
        Some(connection) => connection,
        None => Connection::http2(access).await?,
    };
    used.call(Ask::get(CALM)).await?;
    *connection = Some(used);
    Ok(())
}

#[derive(Default)]
struct Times {
    milliseconds: Vec<f64>,
    failed: usize,
    failure: Option<String>,
}

impl Times {
    /// Takes note of a request, and tells whether it was answered.
    fn take(&mut self, begin: Instant, answered: Result<Result<()>, tokio::time::error::Elapsed>) -> bool {
        self.milliseconds.push(begin.elapsed().as_secs_f64() * 1e3);
        let why = match answered {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {TIMEOUT:?}"),
        };
        self.failed += 1;
        self.failure.get_or_insert(why);
        false
    }

    fn series(mut self) -> Series {
        self.milliseconds.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = self.milliseconds.len().saturating_sub(1);
            self.milliseconds.get((last as f64 * share).ceil() as usize).copied().unwrap_or(0.0)
        };
        let (p50, p99, max) = (at(0.5), at(0.99), at(1.0));
        Series { count: self.milliseconds.len(), p50, p99, max, failed: self.failed, failure: self.failure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let milliseconds = (0..=100).rev().map(f64::from).collect();
        let series = Times { milliseconds, ..Times::default() }.series();
        assert_eq!((series.p50, series.p99, series.max), (50.0, 99.0, 100.0));
        assert_eq!(Times::default().series().max, 0.0);
    }
}
