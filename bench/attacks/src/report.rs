//! What was found, and whether it is as it should be.

use std::fmt::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::attack::Tally;
use crate::innocent::{Series, Sight};

/// How many times its quiet 99th percentile the innocent client may wait.
const SLOWER: f64 = 3.0;
/// What is fast enough in any case, in milliseconds: on a machine that does other things too, the scheduler alone is good for so much.
const FLOOR: f64 = 5.0;
/// The same for requests over new connections. They are few, so that their 99th percentile is almost their maximum.
const FRESH_FLOOR: f64 = 25.0;
/// How many times the memory of before a server may hold some time after the attack.
pub(crate) const SETTLED: f64 = 1.5;
/// How long after.
pub(crate) const RECOVERY_TIMEOUT: Duration = Duration::from_secs(30);

const MIB: f64 = (1 << 20) as f64;

/// All of it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) findings: Vec<Finding>,
    pub(crate) rows: Vec<Row>,
}

/// An attack that has been measured.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) attack: String,
    pub(crate) who: String,
    pub(crate) server: String,
    pub(crate) quiet: Sight,
    pub(crate) during: Sight,
    pub(crate) after: Sight,
    /// Bytes: before, at the most, and in the end.
    pub(crate) memory: [f64; 3],
    /// Seconds from the end of the attack to when the memory was back, or to when nobody waited any longer.
    pub(crate) settled: f64,
    /// Bytes that the attack left in the storage.
    pub(crate) stored: f64,
    /// Seconds that the server computed during the attack.
    pub(crate) cpu: f64,
    pub(crate) tally: Tally,
    /// Whether the server said that it is ready afterwards.
    pub(crate) ready: bool,
    /// How many processes ran or wanted to, on average over the minute before the attack.
    #[serde(default)]
    pub(crate) load: f64,
}

/// A request or a state of affairs that is right or wrong.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) what: String,
    pub(crate) who: String,
    pub(crate) server: String,
    pub(crate) answer: String,
    pub(crate) good: bool,
}

impl Row {
    /// What is not as it should be.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.faults_above(FLOOR, FRESH_FLOOR)
    }

    /// The same if nothing is fast enough in any case.
    fn strict_faults(&self) -> Vec<String> {
        self.faults_above(0.0, 0.0)
    }

    fn faults_above(&self, floor: f64, fresh_floor: f64) -> Vec<String> {
        let mut faults = Vec::new();
        slower(&mut faults, "", &self.quiet.kept, &self.during.kept, floor);
        slower(&mut faults, "new connections: ", &self.quiet.fresh, &self.during.fresh, fresh_floor);
        for (what, series) in [("after: ", &self.after.kept), ("after, new connections: ", &self.after.fresh)]
        {
            dropped(&mut faults, what, series);
        }
        let [before, _, after] = self.memory;
        if after > before * SETTLED + self.stored {
            faults.push(format!(
                "memory {:.1} x after {:.0} s",
                after / before,
                RECOVERY_TIMEOUT.as_secs_f64()
            ));
        }
        if !self.ready {
            faults.push("not ready afterwards".into());
        }
        faults
    }
}

fn slower(faults: &mut Vec<String>, what: &str, quiet: &Series, during: &Series, floor: f64) {
    dropped(faults, what, during);
    if during.p99 > (quiet.p99 * SLOWER).max(floor) {
        faults.push(format!("{what}p99 {:.1} x", during.p99 / quiet.p99));
    }
}

fn dropped(faults: &mut Vec<String>, what: &str, series: &Series) {
    if let (1.., Some(why)) = (series.failed, &series.failure) {
        let why: String = why.chars().take(90).collect();
        faults.push(format!("{what}{} of {} failed ({why})", series.failed, series.count));
    }
}

impl Report {
    /// Takes in another one.
    pub(crate) fn extend(&mut self, other: Self) {
        self.findings.extend(other.findings);
        self.rows.extend(other.rows);
    }

    /// What is wrong with a server.
    pub(crate) fn faults(&self, server: &str) -> Vec<String> {
        let findings = self.findings.iter().filter(|finding| finding.server == server && !finding.good);
        let findings = findings.map(|finding| format!("{}: {}", finding.what, finding.answer));
        let rows = self.rows.iter().filter(|row| row.server == server);
        let rows =
            rows.flat_map(|row| row.faults().into_iter().map(|fault| format!("{}: {fault}", row.attack)));
        findings.chain(rows).collect()
    }

    /// Two tables: what was answered, and what was measured; what was done to several servers is side by side.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        self.answers(&mut text);
        self.measurements(&mut text);
        text
    }

    fn answers(&self, text: &mut String) {
        let servers = ordered(self.findings.iter().map(|finding| finding.server.as_str()));
        if servers.is_empty() {
            return;
        }
        let _ = writeln!(text, "| request | who | {} |", servers.join(" | "));
        let _ = writeln!(text, "|---|---|{}", "---|".repeat(servers.len()));
        let asked = self.findings.iter().map(|finding| (finding.what.as_str(), finding.who.as_str()));
        for (what, who) in ordered(asked) {
            // The last one, if it was asked again.
            let of = |server: &str| {
                let mut findings = self.findings.iter();
                findings
                    .rfind(|finding| finding.what == what && finding.who == who && finding.server == server)
            };
            let _ = write!(text, "| {what} | {who} |");
            for server in &servers {
                let _ = match of(server) {
                    Some(Finding { answer, good: true, .. }) => write!(text, " {answer} |"),
                    Some(Finding { answer, .. }) => write!(text, " **{answer}** |"),
                    None => write!(text, " |"),
                };
            }
            text.push('\n');
        }
        text.push('\n');
    }

    fn measurements(&self, text: &mut String) {
        if self.rows.is_empty() {
            return;
        }
        text.push_str(
            "| attack | who | server | quiet, ms | during | after | MiB before / peak / after | CPU s | the attacker got | verdict | strictly |\n\
             |---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for attack in ordered(self.rows.iter().map(|row| row.attack.as_str())) {
            for server in ordered(self.rows.iter().map(|row| row.server.as_str())) {
                // The last one, if it was measured again.
                if let Some(row) = self.rows.iter().rfind(|row| row.attack == attack && row.server == server)
                {
                    row.write(text);
                }
            }
        }
        let loads = || self.rows.iter().map(|row| row.load);
        let (least, most) = (loads().fold(f64::MAX, f64::min), loads().fold(0.0, f64::max));
        let _ = writeln!(
            text,
            "\nTimes are p50 / p99 / max of one small GET over a kept connection, by a process of its own; after a semicolon, over new connections. Memory is of all \
             processes of a server; the last number is when it was back to {SETTLED} x, at most {} s after the attack. A verdict is ok if p99 is at most {SLOWER} x the quiet one \
             or {FLOOR} ms ({FRESH_FLOOR} ms for new connections; strictly, only the first counts), every request of the innocent client was answered, and memory is back to {SETTLED} x of before, \
             not counting what the attacker stored for good. Attackers run when nobody else wants to (SCHED_IDLE, or the lowest priority where there is no `chrt`) and the client, where that is allowed, at a high one, for neither would share a machine with the server. The load average of the machine was {least:.1} to {most:.1}.",
            RECOVERY_TIMEOUT.as_secs()
        );
    }
}

impl Row {
    fn write(&self, text: &mut String) {
        let [before, peak, after] = self.memory.map(|bytes| bytes / MIB);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {before:.0} / {peak:.0} / {after:.0} ({:.0} s) | {:.1} | {} | {} | {} |",
            self.attack,
            self.who,
            self.server,
            shown(&self.quiet),
            shown(&self.during),
            shown(&self.after),
            self.settled,
            self.cpu,
            self.tally.shown(),
            verdict(&self.faults()),
            verdict(&self.strict_faults()),
        );
    }
}

fn verdict(faults: &[String]) -> String {
    match faults {
        [] => "ok".to_owned(),
        faults => format!("**{}**", faults.join("; ").replace('|', "\\|").replace('\n', " ")),
    }
}

fn shown(sight: &Sight) -> String {
    let one = |series: &Series| format!("{:.1} / {:.1} / {:.0}", series.p50, series.p99, series.max);
    match sight.fresh.count {
        0 => one(&sight.kept),
        _ => format!("{}; {}", one(&sight.kept), one(&sight.fresh)),
    }
}

/// Each of them once, in the order in which they come.
fn ordered<T: PartialEq>(names: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let series = Series { count: 1000, p50: 0.5, p99: 2.0, max: 9.0, ..Series::default() };
        let sight = Sight { kept: series, fresh: Series::default() };
        Row {
            attack: "a flood".into(),
            who: "anonymous".into(),
            server: "ours".into(),
            quiet: sight.clone(),
            during: sight.clone(),
            after: sight,
            memory: [20.0 * MIB, 80.0 * MIB, 29.0 * MIB],
            settled: 3.0,
            stored: 0.0,
            cpu: 1.0,
            tally: Tally::default(),
            ready: true,
            load: 0.5,
        }
    }

    #[test]
    fn a_server_that_stays_as_it_is_has_no_faults() {
        assert_eq!(row().faults(), Vec::<String>::new());
    }

    #[test]
    fn a_client_that_waits_more_than_three_times_as_long_is_a_fault_above_the_floor() {
        let mut row = row();
        row.during.kept.p99 = 6.1;
        assert_eq!(row.faults(), ["p99 3.0 x"]);
        row.quiet.kept.p99 = 0.1;
        row.during.kept.p99 = 4.9;
        assert_eq!(row.faults(), Vec::<String>::new());
        assert_eq!(row.strict_faults(), ["p99 49.0 x"]);
        let report = Report { findings: Vec::new(), rows: vec![row] };
        assert!(report.markdown().contains("| ok | **p99 49.0 x** |"), "{}", report.markdown());
    }

    #[test]
    fn a_request_that_is_not_answered_is_a_fault() {
        let mut row = row();
        (row.during.fresh.count, row.during.fresh.failed) = (10, 2);
        row.during.fresh.failure = Some("no answer".into());
        assert_eq!(row.faults(), ["new connections: 2 of 10 failed (no answer)"]);
    }

    #[test]
    fn memory_that_is_kept_is_a_fault_unless_it_was_stored() {
        let mut row = row();
        row.memory[2] = 40.0 * MIB;
        assert_eq!(row.faults(), ["memory 2.0 x after 30 s"]);
        row.stored = 10.0 * MIB;
        assert_eq!(row.faults(), Vec::<String>::new());
    }

    #[test]
    fn servers_are_side_by_side() {
        let finding = |server: &str, answer: &str, good| Finding {
            what: "GET /x".into(),
            who: "nobody".into(),
            server: server.into(),
            answer: answer.into(),
            good,
        };
        let findings = vec![finding("before", "200", false), finding("after", "404", true)];
        let report = Report { findings, rows: Vec::new() };
        assert!(report.markdown().contains("| GET /x | nobody | **200** | 404 |"), "{}", report.markdown());
        assert_eq!(report.faults("before"), ["GET /x: 200"]);
        assert!(report.faults("after").is_empty());
    }
}
