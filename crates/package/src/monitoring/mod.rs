//! Alerts, monitors and dashboards, made of metrics that the program has and of no others.

mod alerts;
mod dashboards;
pub(crate) mod promql;

use serde_json::{Value, json};

use crate::Renderer;
use crate::error::Error;
use crate::file::File;
use crate::operator::Operator;
use promql::Known;

pub(crate) const RENDERER: Renderer = Renderer {
    name: "monitoring",
    about: "alerts for Prometheus, monitors for its operator, dashboards for Grafana",
    owns: &["monitoring/"],
    render,
};

fn render(operator: &Operator<'_>) -> Result<Vec<File>, Error> {
    let mut files = Vec::new();
    if let Some(rules) = rules(operator) {
        // For a Prometheus without its operator.
        files.push(File::yaml("monitoring/rules.yaml", std::slice::from_ref(&rules)));
        files.push(File::yaml("monitoring/prometheusrule.yaml", &[prometheus_rule(operator, rules)]));
    }
    if let Some((service_monitor, pod_monitor)) = monitors(operator) {
        files.push(File::yaml("monitoring/servicemonitor.yaml", &[service_monitor]));
        files.push(File::yaml("monitoring/podmonitor.yaml", &[pod_monitor]));
    }
    for (name, dashboard) in dashboards(operator) {
        files.push(File::json(format!("monitoring/dashboards/{name}.json"), &dashboard));
    }
    Ok(files)
}

/// What the operator of Prometheus takes: a ServiceMonitor and the alerts.
pub(crate) fn objects(operator: &Operator<'_>) -> Vec<Value> {
    let monitor = monitors(operator).map(|(service_monitor, _)| service_monitor);
    let rules = rules(operator).map(|rules| prometheus_rule(operator, rules));
    monitor.into_iter().chain(rules).collect()
}

/// The alerts as Prometheus reads them, if there is one.
pub(crate) fn rules(operator: &Operator<'_>) -> Option<Value> {
    operator.port()?;
    let known = Known::of(operator.description);
    let alerts: Vec<Value> = alerts::ALERTS
        .iter()
        .filter(|alert| alert.of == operator.component() && known.has_all(alert.expression))
        .map(|alert| alert.render(operator.name()))
        .collect();
    (!alerts.is_empty()).then(|| json!({"groups": [{"name": operator.name(), "rules": alerts}]}))
}

/// The dashboards that there are metrics for, with the names of their files.
pub(crate) fn dashboards(operator: &Operator<'_>) -> Vec<(&'static str, Value)> {
    match operator.port() {
        Some(_) => dashboards::render(operator.name(), &Known::of(operator.description)),
        None => Vec::new(),
    }
}

fn metadata(operator: &Operator<'_>) -> Value {
    json!({"name": operator.name(), "namespace": operator.namespace(), "labels": operator.labels()})
}

fn prometheus_rule(operator: &Operator<'_>, rules: Value) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata(operator),
        "spec": rules,
    })
}

/// A ServiceMonitor, and a PodMonitor for those who prefer that. Both make `job` the name of the operator, which the alerts ask for.
fn monitors(operator: &Operator<'_>) -> Option<(Value, Value)> {
    operator.port()?;
    let selector = json!({"matchLabels": operator.selector()});
    let endpoint = json!([{"port": "metrics", "path": "/metrics"}]);
    let monitor = |kind: &str, endpoints: &str| {
        json!({
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": kind,
            "metadata": metadata(operator),
            "spec": {"jobLabel": "app.kubernetes.io/name", "selector": selector, endpoints: endpoint},
        })
    };
    Some((monitor("ServiceMonitor", "endpoints"), monitor("PodMonitor", "podMetricsEndpoints")))
}
