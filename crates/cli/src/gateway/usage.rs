use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use serde_json::Value;
use watchkeeper_gateway::ai::records;
use watchkeeper_go::Time;

use super::serve::record_table;
use crate::failure::Failure;
use crate::{duration, host};

/// Say who used how much of which models, as the records of a gateway tell it
#[derive(Args)]
#[command(after_help = "\
Examples:
  watchkeeper gateway --from file:./objects --records ./records
  watchkeeper gateway usage --records ./records --by key,model --since 24h
  watchkeeper gateway usage --records ./records --by provider -o json
  watchkeeper gateway usage --records ./records --namespace team-a --by key
  watchkeeper gateway usage --records-database postgres://me@host/db --by key --since 7d")]
pub(super) struct Usage {
    /// The directory that the gateway was given as --records
    #[arg(long, value_name = "DIR", required_unless_present = "records_database")]
    records: Option<PathBuf>,
    /// The table that the gateway was given as --records-database
    #[arg(long, value_name = "URL", conflicts_with = "records")]
    records_database: Option<String>,
    /// What to add up by
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FIELD", default_values = ["key", "model"])]
    by: Vec<By>,
    /// Only calls of this namespace, which is a tenant
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Only calls that began within so long, such as 1d, 12h or 30m
    #[arg(long, value_name = "DURATION", value_parser = since)]
    since: Option<Duration>,
    /// How to print it
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    Namespace,
    Gateway,
    Policy,
    Key,
    Model,
    Provider,
    Dialect,
    Status,
    Error,
    /// The day, in UTC
    Day,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

/// A duration, or a number of days: `1d`.
fn since(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok()) {
        Some(days) => Ok(Duration::from_secs(86_400) * days),
        None => duration::parse(text),
    }
}

#[derive(Default)]
struct Sum {
    calls: u64,
    failed: u64,
    input: u64,
    output: u64,
    /// What budgets are charged with.
    cost: f64,
    /// The part of it that no provider confirmed.
    unconfirmed: f64,
    milliseconds: f64,
    /// Calls whose provider did not say what was used.
    unknown: u64,
}

impl Sum {
    /// Adds what a record says.
    fn add(&mut self, record: &Value) {
        // What a database counts need not be whole in JSON.
        let count = |name: &str| record[name].as_f64().map_or(0, |count| count as u64);
        let money = |name: &str| record[name].as_str()?.parse::<f64>().ok();
        let (told, charged) = (money("cost").unwrap_or(0.0), money("chargedCost").unwrap_or(0.0));
        self.calls += 1;
        self.failed += u64::from(!record["error"].is_null());
        self.input += count("inputTokens");
        self.output += count("outputTokens");
        self.cost += charged;
        self.unconfirmed += (charged - told).max(0.0);
        self.milliseconds += record["milliseconds"].as_f64().unwrap_or(0.0);
        self.unknown += u64::from(record["inputTokens"].is_null() && count("chargedTokens") != 0);
    }
}

impl By {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    fn of(self, record: &Value) -> String {
        let field = match self {
            Self::Day => {
                return record["time"]
                    .as_str()
                    .and_then(|time| time.get(..10))
                    .unwrap_or_default()
                    .to_owned();
            }
            other => &record[other.name().as_str()],
        };
        match field {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

impl Usage {
    pub(super) fn run(self) -> Result<(), Failure> {
        let from = self.since.and_then(|since| SystemTime::now().checked_sub(since));
        let from = from.map(|from| Time::from(from).rfc3339_micro());
        let mut sums: BTreeMap<Vec<String>, Sum> = BTreeMap::new();
        let mut add = |record: &Value| {
            if self.namespace.as_ref().is_some_and(|namespace| record["namespace"] != namespace.as_str()) {
                return;
            }
            sums.entry(self.by.iter().map(|by| by.of(record)).collect()).or_default().add(record);
        };
        if let Some(url) = &self.records_database {
            let table = record_table(url)?;
            let read = host::runtime()?.block_on(table.read(from.as_deref(), add));
            read.map_err(|error| Failure::running(format!("--records-database: {error}")))?;
        } else if let Some(directory) = &self.records {
            // Times in this form sort as text.
            let from = from.unwrap_or_default();
            let read = records::read(directory, |record| {
                if record["time"].as_str().is_some_and(|time| time >= from.as_str()) {
                    add(record);
                }
            });
            read.map_err(|error| Failure::input(format!("--records {}: {error}", directory.display())))?;
        }
        let mut output = io::stdout().lock();
        let written = match self.output {
            Output::Json => self.json(&sums, &mut output),
            Output::Table => self.table(&sums, &mut output),
        };
        written.map_err(Failure::running)
    }

    fn json(&self, sums: &BTreeMap<Vec<String>, Sum>, output: &mut impl io::Write) -> io::Result<()> {
        for (place, sum) in sums {
            let mut line: serde_json::Map<String, Value> =
                self.by.iter().zip(place).map(|(by, value)| (by.name(), value.as_str().into())).collect();
            line.insert("calls".into(), sum.calls.into());
            line.insert("failed".into(), sum.failed.into());
            line.insert("inputTokens".into(), sum.input.into());
            line.insert("outputTokens".into(), sum.output.into());
            line.insert("cost".into(), sum.cost.into());
            line.insert("unconfirmedCost".into(), sum.unconfirmed.into());
            line.insert("unknownUsage".into(), sum.unknown.into());
            writeln!(output, "{}", Value::from(line))?;
        }
        Ok(())
    }

    fn table(&self, sums: &BTreeMap<Vec<String>, Sum>, output: &mut impl io::Write) -> io::Result<()> {
        let mut rows: Vec<Vec<String>> = vec![self.by.iter().map(|by| by.name().to_uppercase()).collect()];
        rows[0]
            .extend(["CALLS", "FAILED", "INPUT", "OUTPUT", "COST", "UNCONFIRMED", "MEAN"].map(str::to_owned));
        let mut sums: Vec<(&Vec<String>, &Sum)> = sums.iter().collect();
        // What costs most comes first.
        sums.sort_by(|(_, one), (_, other)| {
            other.cost.total_cmp(&one.cost).then(other.calls.cmp(&one.calls))
        });
        for (place, sum) in sums {
            let mut row = place.clone();
            let mean = sum.milliseconds / sum.calls.max(1) as f64;
            row.extend([sum.calls, sum.failed, sum.input, sum.output].map(|number| number.to_string()));
            row.extend([sum.cost, sum.unconfirmed].map(|money| format!("{money:.6}")));
            row.push(format!("{mean:.0}ms"));
            rows.push(row);
        }
        let widths: Vec<usize> = (0..rows[0].len())
            .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
            .collect();
        for row in &rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            writeln!(output, "{}", cells.collect::<Vec<_>>().join("   ").trim_end())?;
        }
        Ok(())
    }
}
