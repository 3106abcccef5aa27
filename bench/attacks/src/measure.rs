//! One attack on one server, and what the innocent client notices of it.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};
use watchkeeper_bench_target::{Access, Ask, Connection, Memory, Process, Program, Result};

use crate::attack::{Attack, Scene, Tally};
use crate::innocent::Innocent;
use crate::report::{RECOVERY_TIMEOUT, Row, SETTLED};
use crate::site::{CALM, Site};

/// How long the client looks while nothing happens.
const QUIET: Duration = Duration::from_secs(4);
/// How much longer than it should an attack may take before it is ended.
const SLACK: Duration = Duration::from_secs(20);

/// Starts a server, attacks it, and gives what was seen.
pub(crate) async fn measure(attack: &Attack, name: &str, program: &Program) -> Result<Row> {
    let site = Site::prepare(program, attack.files, attack.filled, attack.who).await?;
    site.until_allowed("innocent", CALM).await?;
    let mut innocent = Innocent::start(&site.kubeconfig("innocent"))?;
    // The first requests of any client are slow.
    innocent.look(Duration::from_secs(1), attack.fresh).await?;
    let quiet = innocent.look(QUIET, attack.fresh).await?;

    let load = load()?;
    let target = &site.target;
    let before = target.memory(Memory::Now)?;
    target.processes().into_iter().try_for_each(Process::forget_peak)?;
    let cpu = target.cpu()?;
    let attacker = site.kubeconfig("attacker");
    let (tally, during) = join(assault(attack, &attacker), innocent.look(attack.time, attack.fresh)).await;
    let (tally, during) = (tally?, during?);
    let cpu = target.cpu()? - cpu;
    let stored = attack.stored * tally.successes() as f64;
    let peak = target.memory(Memory::Most)?;
    let ended = Instant::now();
    let after = innocent.look(QUIET, attack.fresh).await?;
    let left = loop {
        let now = target.memory(Memory::Now)?;
        if now <= before * SETTLED + stored || ended.elapsed() > RECOVERY_TIMEOUT {
            break now;
        }
        sleep(Duration::from_secs(1)).await;
    };
    let settled = ended.elapsed();
    let ready = timeout(Duration::from_secs(8), ready(&target.access)).await.is_ok_and(|ready| ready.is_ok());
    Ok(Row {
        attack: attack.name.into(),
        who: attack.who.name().into(),
        server: name.into(),
        quiet,
        during,
        after,
        memory: [before, peak, left],
        settled: settled.as_secs_f64(),
        stored,
        cpu,
        tally,
        ready,
        load,
    })
}

/// The load average of the last minute.
fn load() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    Ok(text.split_whitespace().next().unwrap_or_default().parse()?)
}

async fn ready(access: &Arc<Access>) -> Result<()> {
    Connection::http2(access).await?.call(Ask::get("/readyz")).await.map(drop)
}

/// Runs the attack in a process of its own.
///
/// An attacker has a machine of their own: what they compute must not take the cores from the server and its client. The lowest nice value
/// is not quite enough for that, for what wakes up then still waits for the next tick of the scheduler, four milliseconds: it is for where
/// `chrt` is missing or not allowed.
async fn assault(attack: &Attack, kubeconfig: &Path) -> Result<Tally> {
    let idle: &[&str] = if has_chrt() { &["chrt", "--idle", "0"] } else { &["nice", "-n", "19"] };
    let output = Command::new(idle[0])
        .args(&idle[1..])
        .arg(std::env::current_exe()?)
        .args(["attacker", attack.name])
        .arg(kubeconfig)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output();
    let output = timeout(attack.time + SLACK, output).await.map_err(|_| "the attacker does not end")??;
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout)?),
        false => Err(format!("the attacker failed: {}", output.status).into()),
    }
}

/// Whether a process can be told to run when nobody else wants to.
fn has_chrt() -> bool {
    let tried = std::process::Command::new("chrt")
        .args(["--idle", "0", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    tried.is_ok_and(|status| status.success())
}

/// What runs in the process of the attacker.
pub(crate) fn attack(name: &str, kubeconfig: &Path) -> Result<Tally> {
    let attack = Attack::all().find(|attack| attack.name == name).ok_or("there is no such attack")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let access = Arc::new(Access::of(&std::fs::read(kubeconfig)?)?);
    runtime.block_on(async { (attack.act)(Scene { access, end: Instant::now() + attack.time }).await })
}
