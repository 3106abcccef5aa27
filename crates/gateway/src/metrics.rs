//! How what is counted is shown.

use std::fmt::{self, Write as _};
use std::sync::atomic::Ordering::Relaxed;

use crate::stats::{BOUNDS, Counters, RouteStats};
use crate::table::Table;

/// The metrics that a gateway has, those of its listeners included, for whoever makes alerts of them: names as queries have them, types, and what
/// they tell. A page shows only those that have been used.
#[rustfmt::skip]
pub(crate) const METRICS: &[(&str, &str, &str)] = &[
    ("gateway_requests_total", "counter", "Requests that have ended, by route and first digit of the code"),
    ("gateway_requests_active", "gauge", "Requests under way, by route"),
    ("gateway_request_seconds", "histogram", "How long requests took, to the last byte, by route"),
    ("gateway_backend_endpoints", "gauge", "Servers of backends, by whether they get requests"),
    ("gateway_backend_retries_total", "counter", "Requests that were repeated, and repetitions that were denied"),
    ("gateway_backend_overflowed_total", "counter", "Requests that were refused because there were too many"),
    ("gateway_unrouted_total", "counter", "Requests that no route was for"),
    ("gateway_malformed_total", "counter", "Requests that were refused because of how they were written"),
    ("gateway_refused_total", "counter", "Requests that a policy refused"),
    ("gateway_cut_total", "counter", "Responses that were cut because a backend broke off or was silent"),
    ("gateway_access_log_lost_total", "counter", "Lines of the access log that were lost"),
    ("gateway_spans_lost_total", "counter", "Spans that no collector took"),
    ("gateway_table_swaps_total", "counter", "How often the table was replaced"),
    ("gateway_table_generation", "gauge", "The number of the table that is served"),
    ("gateway_routes", "gauge", "Routes that are served"),
    ("gateway_source_up", "gauge", "1 while a source is read and has told everything once"),
    ("gateway_connections", "gauge", "Connections that are open, by listener"),
    ("gateway_connections_dropped_total", "counter", "Connections that a listener refused or closed, by reason"),
    ("gateway_tls_handshake_failures_total", "counter", "TLS handshakes that failed, by listener"),
];

/// How many routes have labels of their own in the metrics. The rest are one.
const LABELLED: usize = 1_000;

/// The page of metrics, as Prometheus reads it. At most a thousand routes have labels of their own, the first by name; the others are
/// counted together as `_other`.
pub(crate) fn page(table: &Table, counters: &Counters, sources: &[(String, bool)], front: &str) -> String {
    let mut text = String::with_capacity(4096);
    // Writing to a text does not fail.
    let _ = write(&mut text, table, counters).and_then(|()| self::sources(&mut text, sources));
    text.push_str(front);
    text
}

fn write(text: &mut String, table: &Table, counters: &Counters) -> fmt::Result {
    let other = RouteStats::default();
    let mut routes: Vec<(String, &RouteStats)> = Vec::new();
    for (at, route) in table.routes().enumerate() {
        match at < LABELLED {
            true => routes.push((route.head.key.to_string(), &route.head.stats)),
            false => other.add(&route.head.stats),
        }
    }
    if other.total() > 0 || table.routes().nth(LABELLED).is_some() {
        routes.push(("_other".to_owned(), &other));
    }
    head(
        text,
        "gateway_requests_total",
        "counter",
        "Requests that have ended, by route and first digit of the code.",
    )?;
    for (route, stats) in &routes {
        for (class, count) in stats.codes.iter().enumerate().filter(|(_, count)| count.load(Relaxed) > 0) {
            let code = if class == 0 { "gone".to_owned() } else { format!("{class}xx") };
            writeln!(
                text,
                "gateway_requests_total{{route=\"{route}\",code=\"{code}\"}} {}",
                count.load(Relaxed)
            )?;
        }
    }
    head(text, "gateway_requests_active", "gauge", "Requests under way, by route.")?;
    for (route, stats) in routes.iter().filter(|(_, stats)| stats.active.load(Relaxed) != 0) {
        writeln!(text, "gateway_requests_active{{route=\"{route}\"}} {}", stats.active.load(Relaxed))?;
    }
    head(
        text,
        "gateway_request_seconds",
        "histogram",
        "How long requests took, to the last byte, by route.",
    )?;
    for (route, stats) in routes.iter().filter(|(_, stats)| stats.total() > 0) {
        let mut sum = 0;
        for (at, count) in stats.durations.iter().enumerate() {
            sum += count.load(Relaxed);
            let bound = BOUNDS.get(at).map_or("+Inf".to_owned(), |bound| (*bound as f64 / 1e6).to_string());
            writeln!(text, "gateway_request_seconds_bucket{{route=\"{route}\",le=\"{bound}\"}} {sum}")?;
        }
        let seconds = stats.time.load(Relaxed) as f64 / 1e6;
        writeln!(text, "gateway_request_seconds_sum{{route=\"{route}\"}} {seconds}")?;
        writeln!(text, "gateway_request_seconds_count{{route=\"{route}\"}} {sum}")?;
    }
    backends(text, table)?;
    let unreadable = counters.unreadable.load(Relaxed);
    for (name, help, count) in [
        ("gateway_unrouted_total", "Requests that no route was for.", &counters.unrouted),
        (
            "gateway_malformed_total",
            "Requests that were refused because of how they were written.",
            &counters.malformed,
        ),
        ("gateway_refused_total", "Requests that a policy refused.", &counters.refused),
        (
            "gateway_cut_total",
            "Responses that were cut because a backend broke off or was silent.",
            &counters.cut,
        ),
        ("gateway_access_log_lost_total", "Lines of the access log that were lost.", &counters.lost_lines),
        ("gateway_spans_lost_total", "Spans that no collector took.", &counters.lost_spans),
        ("gateway_table_swaps_total", "How often the table was replaced.", &counters.swaps),
    ] {
        head(text, name, "counter", help)?;
        let also = if name == "gateway_malformed_total" { unreadable } else { 0 };
        writeln!(text, "{name} {}", count.load(Relaxed) + also)?;
    }
    head(text, "gateway_table_generation", "gauge", "The number of the table that is served.")?;
    writeln!(text, "gateway_table_generation {}", table.generation)?;
    head(text, "gateway_routes", "gauge", "Routes that are served.")?;
    writeln!(text, "gateway_routes {}", table.routes().count())
}

fn sources(text: &mut String, sources: &[(String, bool)]) -> fmt::Result {
    let help = "1 while a source is read and has told everything once.";
    head(text, "gateway_source_up", "gauge", help)?;
    for (name, is_up) in sources {
        let name = name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
        writeln!(text, "gateway_source_up{{source=\"{name}\"}} {}", u8::from(*is_up))?;
    }
    Ok(())
}

fn backends(text: &mut String, table: &Table) -> fmt::Result {
    let mut backends: Vec<_> = table.backends().collect();
    backends.sort_by(|one, other| one.key.cmp(&other.key));
    backends.truncate(LABELLED);
    head(text, "gateway_backend_endpoints", "gauge", "Servers of backends, by whether they get requests.")?;
    for backend in &backends {
        let available = backend.endpoints.iter().filter(|endpoint| endpoint.state.is_available()).count();
        let key = &backend.key;
        writeln!(text, "gateway_backend_endpoints{{backend=\"{key}\",available=\"true\"}} {available}")?;
        let rest = backend.endpoints.len() - available;
        writeln!(text, "gateway_backend_endpoints{{backend=\"{key}\",available=\"false\"}} {rest}")?;
    }
    head(
        text,
        "gateway_backend_retries_total",
        "counter",
        "Requests that were repeated, and repetitions that were denied.",
    )?;
    for backend in &backends {
        let (key, state) = (&backend.key, &backend.state);
        let (made, denied) = (state.retried.load(Relaxed), state.retries_denied.load(Relaxed));
        writeln!(text, "gateway_backend_retries_total{{backend=\"{key}\",allowed=\"true\"}} {made}")?;
        writeln!(text, "gateway_backend_retries_total{{backend=\"{key}\",allowed=\"false\"}} {denied}")?;
    }
    head(
        text,
        "gateway_backend_overflowed_total",
        "counter",
        "Requests that were refused because there were too many.",
    )?;
    for backend in &backends {
        let count = backend.state.overflowed.load(Relaxed);
        writeln!(text, "gateway_backend_overflowed_total{{backend=\"{}\"}} {count}", backend.key)?;
    }
    Ok(())
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    let family = name.strip_suffix("_total").filter(|_| kind == "counter").unwrap_or(name);
    writeln!(text, "# HELP {family} {help}\n# TYPE {family} {kind}")
}
