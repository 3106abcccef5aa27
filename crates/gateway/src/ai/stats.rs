//! What is counted of calls, by the names that OpenTelemetry has for generative AI.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;
use watchkeeper_ai::Money;
use watchkeeper_core::Key;

use super::records::Record;

/// How many pairs of provider and model have labels of their own. The rest are one.
const LABELLED: usize = 500;
/// How many sets of namespace, key and model have a cost of their own. The rest of a namespace are one.
const COSTS: usize = 5_000;
/// How many guardrails have labels of their own. The rest are one.
const GUARDRAILS: usize = 1_000;
/// Upper bounds of durations, in seconds, as the conventions advise.
const SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// Upper bounds of counts of tokens, as the conventions advise.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The metrics: names, types, and what they tell.
#[rustfmt::skip]
pub(crate) const METRICS: &[(&str, &str, &str)] = &[
    ("gen_ai_client_token_usage", "histogram", "Tokens of calls of models, by provider, model and whether they are of prompts or answers"),
    ("gen_ai_client_operation_duration_seconds", "histogram", "How long calls of models took, by provider, model and error"),
    ("gen_ai_client_operation_time_to_first_chunk_seconds", "histogram", "How long streams took to their first token, by provider and model"),
    ("gateway_ai_records_lost_total", "counter", "Records of calls that were lost, or lost their content, because the disk was too slow"),
    ("gateway_ai_records_database_written_total", "counter", "Records of calls that were written to the database, with --records-database"),
    ("gateway_ai_records_database_lost_total", "counter", "Records of calls that were not written to the database, because it was too slow or refused them"),
    ("gateway_ai_budget_leases_total", "counter", "Slices of budgets that were leased, with --share-budgets"),
    ("gateway_ai_budget_lease_failures_total", "counter", "How often slices of budgets could not be leased because the cluster or the database did not answer"),
    ("gateway_ai_guardrail_webhook_total", "counter", "Texts that webhooks of guardrails were asked about, by namespace, policy, guardrail, and whether they were allowed, refused, or not judged"),
    ("gateway_ai_cache_hits_total", "counter", "Calls of models that were answered from the cache of their policy"),
    ("gateway_ai_cost_total", "counter", "What calls of models are charged with, in the currency of prices, by namespace, key and model: what the provider said was used, or all that was reserved where it did not say"),
    ("gateway_ai_cost_unconfirmed_total", "counter", "The part of gateway_ai_cost_total that no provider confirmed, by namespace, key and model"),
];

#[derive(Default)]
struct Histogram {
    counts: [u64; SECONDS.len() + 1],
    sum: f64,
}

impl Histogram {
    fn add(&mut self, bounds: &[f64; SECONDS.len()], value: f64) {
        self.counts[bounds.partition_point(|bound| *bound < value)] += 1;
        self.sum += value;
    }

    fn write(
        &self,
        text: &mut String,
        name: &str,
        labels: &str,
        bounds: &[f64; SECONDS.len()],
    ) -> fmt::Result {
        let mut count = 0;
        for (at, more) in self.counts.iter().enumerate() {
            count += more;
            let bound = bounds.get(at).map_or("+Inf".to_owned(), f64::to_string);
            writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}")?;
        }
        writeln!(text, "{name}_sum{{{labels}}} {}\n{name}_count{{{labels}}} {count}", self.sum)
    }
}

#[derive(Default)]
struct Counted {
    input: Histogram,
    output: Histogram,
    /// By error; empty for calls that ended well.
    durations: BTreeMap<&'static str, Histogram>,
    first: Option<Histogram>,
}

/// What is counted.
#[derive(Default)]
pub(crate) struct Stats(Mutex<Tables>);

#[derive(Default)]
struct Cost {
    charged: f64,
    unconfirmed: f64,
}

#[derive(Default)]
struct Tables {
    models: BTreeMap<(Arc<str>, Arc<str>, &'static str), Counted>,
    costs: BTreeMap<(String, Arc<str>, Arc<str>), Cost>,
    /// By policy and guardrail: allowed, refused, not judged.
    judged: BTreeMap<(String, String, String), [u64; 3]>,
    cached: u64,
}

/// What is counted of records.
#[derive(Default)]
pub(super) struct Lost {
    /// Lost by the disk.
    pub(super) records: u64,
    /// Written to the database, and not.
    pub(super) database: Option<(u64, u64)>,
}

impl Stats {
    /// Counts a call that has ended.
    pub(super) fn ended(&self, record: &Record) {
        let operation = match record.dialect {
            "mcp" => "execute_tool",
            dialect if dialect.ends_with("embeddings") => "embeddings",
            _ => "chat",
        };
        let nobody: Arc<str> = "".into();
        let place = (
            record.provider.clone().unwrap_or_else(|| Arc::clone(&nobody)),
            Arc::clone(&record.model),
            operation,
        );
        let mut tables = self.0.lock();
        tables.cached += u64::from(record.is_cached);
        // Names of models that do not exist are made up by clients: they share one place.
        let other = || ("_other".into(), "_other".into(), operation);
        let known = tables.models.contains_key(&place);
        let place = if known || tables.models.len() < LABELLED && record.provider.is_some() {
            place
        } else {
            other()
        };
        let counted = tables.models.entry(place).or_default();
        if let Some(usage) = record.usage {
            counted.input.add(&TOKENS, usage.input as f64);
            counted.output.add(&TOKENS, usage.output as f64);
        }
        let error = record.error.unwrap_or("");
        counted.durations.entry(error).or_default().add(&SECONDS, record.duration.as_secs_f64());
        if let Some(first) = record.first_token.filter(|_| record.stream) {
            counted.first.get_or_insert_default().add(&SECONDS, first.as_secs_f64());
        }
        let charged = Money(record.charged.money);
        if charged.0 > 0 {
            let namespace = record.gateway.namespace().unwrap_or_default().to_owned();
            let key = record.key.clone().unwrap_or(nobody);
            let mut place = (namespace, key, Arc::clone(&record.model));
            if !tables.costs.contains_key(&place) && tables.costs.len() >= COSTS {
                (place.1, place.2) = ("_other".into(), "_other".into());
            }
            let cost = tables.costs.entry(place).or_default();
            cost.charged += charged.as_f64();
            cost.unconfirmed += Money(charged.0.saturating_sub(record.cost.0)).as_f64();
        }
    }

    /// Counts what a webhook said; `None` if it did not judge.
    pub(super) fn judged(&self, policy: &Key, guardrail: &str, allowed: Option<bool>) {
        let namespace = policy.namespace().unwrap_or_default().to_owned();
        let mut place = (namespace, policy.name().to_owned(), guardrail.to_owned());
        let mut tables = self.0.lock();
        if !tables.judged.contains_key(&place) && tables.judged.len() >= GUARDRAILS {
            (place.1, place.2) = ("_other".to_owned(), "_other".to_owned());
        }
        let at = match allowed {
            Some(true) => 0,
            Some(false) => 1,
            None => 2,
        };
        tables.judged.entry(place).or_default()[at] += 1;
    }

    /// Adds to the page of metrics, if there is something to tell.
    pub(super) fn write(&self, text: &mut String, lost: &Lost, leases: (u64, u64)) {
        let _ = self.write_all(text, lost, leases); // writing to a text does not fail
    }

    fn write_all(&self, text: &mut String, lost: &Lost, leases: (u64, u64)) -> fmt::Result {
        let tables = self.0.lock();
        if tables.models.is_empty() && tables.judged.is_empty() {
            return Ok(());
        }
        let labels = |(provider, model, operation): &(Arc<str>, Arc<str>, &str)| {
            format!(
                "gen_ai_operation_name=\"{operation}\",gen_ai_provider_name=\"{}\",gen_ai_request_model=\"{}\"",
                escaped(provider),
                escaped(model)
            )
        };
        for (name, kind, help) in METRICS {
            let family = name.strip_suffix("_total").filter(|_| *kind == "counter").unwrap_or(name);
            writeln!(text, "# HELP {family} {help}.\n# TYPE {family} {kind}")?;
            match *name {
                "gen_ai_client_token_usage" => {
                    for (place, counted) in &tables.models {
                        for (kind, histogram) in [("input", &counted.input), ("output", &counted.output)] {
                            let labels = format!("{},gen_ai_token_type=\"{kind}\"", labels(place));
                            histogram.write(text, name, &labels, &TOKENS)?;
                        }
                    }
                }
                "gen_ai_client_operation_duration_seconds" => {
                    for (place, counted) in &tables.models {
                        for (error, histogram) in &counted.durations {
                            let labels = format!("{},error_type=\"{error}\"", labels(place));
                            histogram.write(text, name, &labels, &SECONDS)?;
                        }
                    }
                }
                "gateway_ai_records_lost_total" => writeln!(text, "{name} {}", lost.records)?,
                "gateway_ai_records_database_written_total" => {
                    writeln!(text, "{name} {}", lost.database.map_or(0, |(written, _)| written))?;
                }
                "gateway_ai_records_database_lost_total" => {
                    writeln!(text, "{name} {}", lost.database.map_or(0, |(_, lost)| lost))?;
                }
                "gateway_ai_guardrail_webhook_total" => {
                    for ((namespace, policy, guardrail), counts) in &tables.judged {
                        for (verdict, count) in ["allowed", "refused", "failed"].iter().zip(counts) {
                            writeln!(
                                text,
                                "{name}{{namespace=\"{}\",policy=\"{}\",guardrail=\"{}\",verdict=\"{verdict}\"}} {count}",
                                escaped(namespace),
                                escaped(policy),
                                escaped(guardrail)
                            )?;
                        }
                    }
                }
                "gateway_ai_cache_hits_total" => writeln!(text, "{name} {}", tables.cached)?,
                "gateway_ai_budget_leases_total" => writeln!(text, "{name} {}", leases.0)?,
                "gateway_ai_budget_lease_failures_total" => writeln!(text, "{name} {}", leases.1)?,
                "gateway_ai_cost_total" | "gateway_ai_cost_unconfirmed_total" => {
                    for ((namespace, key, model), cost) in &tables.costs {
                        let cost =
                            if *name == "gateway_ai_cost_total" { cost.charged } else { cost.unconfirmed };
                        let (namespace, key, model) = (escaped(namespace), escaped(key), escaped(model));
                        writeln!(
                            text,
                            "{name}{{namespace=\"{namespace}\",key=\"{key}\",model=\"{model}\"}} {cost}"
                        )?;
                    }
                }
                _ => {
                    for (place, counted) in &tables.models {
                        if let Some(histogram) = &counted.first {
                            histogram.write(text, name, &labels(place), &SECONDS)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use watchkeeper_ai::Amounts;

    use super::*;

    #[test]
    fn all_cost_is_counted_however_many_keys_there_are() {
        let stats = Stats::default();
        for number in 0..COSTS + 100 {
            stats.ended(&Record {
                time: SystemTime::now(),
                id: String::new(),
                gateway: Key::new(Some("a"), "g"),
                policy: None,
                key: Some(format!("key-{number}").into()),
                model: "m".into(),
                provider: Some("p".into()),
                dialect: "openai-chat",
                stream: false,
                status: 200,
                error: None,
                usage: None,
                cost: Money::default(),
                charged: Amounts { requests: 1, tokens: 1, money: 1_000_000_000 },
                duration: Duration::ZERO,
                first_token: None,
                attempts: 1,
                is_cached: false,
                content: None,
            });
        }
        let mut text = String::new();
        stats.write(&mut text, &Lost::default(), (0, 0));
        let lines = text.lines().filter(|line| line.starts_with("gateway_ai_cost_total{"));
        let costs: Vec<f64> = lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
        assert_eq!((costs.len(), costs.iter().sum::<f64>()), (COSTS + 1, (COSTS + 100) as f64));
    }
}
