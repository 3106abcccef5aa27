//! Dashboards for Grafana. A panel is left out if the program lacks one of its metrics, and a dashboard without panels too.

use serde_json::{Value, json};

use super::promql::Known;

/// How a number is shown, in Grafana's words.
const COUNT: &str = "short";
const RATE: &str = "ops";
const SECONDS: &str = "s";
const BYTES: &str = "bytes";

struct Dashboard {
    name: &'static str,
    title: &'static str,
    panels: &'static [Panel],
}

struct Panel {
    title: &'static str,
    /// `$job` and `$namespace` are what is chosen above the panels.
    query: &'static str,
    legend: &'static str,
    unit: &'static str,
}

const fn panel(title: &'static str, query: &'static str, legend: &'static str, unit: &'static str) -> Panel {
    Panel { title, query, legend, unit }
}

const DASHBOARDS: &[Dashboard] = &[
    Dashboard {
        name: "controllers",
        title: "controllers",
        panels: &[
            panel(
                "Reconciles per second",
                "sum by (controller, result) (rate(controller_runtime_reconcile_total{job=\"$job\"}[$__rate_interval]))",
                "{{controller}} {{result}}",
                RATE,
            ),
            panel(
                "Errors per second",
                "sum by (controller) (rate(controller_runtime_reconcile_errors_total{job=\"$job\"}[$__rate_interval]))",
                "{{controller}}",
                RATE,
            ),
            panel(
                "Time of a reconcile, 99 of 100",
                "histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{job=\"$job\"}[$__rate_interval])))",
                "{{controller}}",
                SECONDS,
            ),
            panel(
                "Time of a reconcile, half of them",
                "histogram_quantile(0.5, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{job=\"$job\"}[$__rate_interval])))",
                "{{controller}}",
                SECONDS,
            ),
            panel(
                "Workers that have work",
                "sum by (controller) (controller_runtime_active_workers{job=\"$job\"})",
                "{{controller}}",
                COUNT,
            ),
            panel(
                "Workers",
                "sum by (controller) (controller_runtime_max_concurrent_reconciles{job=\"$job\"})",
                "{{controller}}",
                COUNT,
            ),
            panel(
                "Reconciles that panicked",
                "sum by (controller) (increase(controller_runtime_reconcile_panics_total{job=\"$job\"}[$__rate_interval]))",
                "{{controller}}",
                COUNT,
            ),
            panel(
                "Reconciles that took too long",
                "sum by (controller) (increase(controller_runtime_reconcile_timeouts_total{job=\"$job\"}[$__rate_interval]))",
                "{{controller}}",
                COUNT,
            ),
            panel(
                "Objects that keep their controller busy",
                "sum by (controller, field) (increase(watchkeeper_hot_loops_total{job=\"$job\"}[$__rate_interval]))",
                "{{controller}} {{field}}",
                COUNT,
            ),
            panel(
                "Who leads",
                "max by (pod) (leader_election_master_status{job=\"$job\"})",
                "{{pod}}",
                COUNT,
            ),
        ],
    },
    Dashboard {
        name: "queues",
        title: "queues",
        panels: &[
            panel("Items that wait", "sum by (name) (workqueue_depth{job=\"$job\"})", "{{name}}", COUNT),
            panel(
                "Items added per second",
                "sum by (name) (rate(workqueue_adds_total{job=\"$job\"}[$__rate_interval]))",
                "{{name}}",
                RATE,
            ),
            panel(
                "Retries per second",
                "sum by (name) (rate(workqueue_retries_total{job=\"$job\"}[$__rate_interval]))",
                "{{name}}",
                RATE,
            ),
            panel(
                "Time in the queue, 99 of 100",
                "histogram_quantile(0.99, sum by (name, le) (rate(workqueue_queue_duration_seconds_bucket{job=\"$job\"}[$__rate_interval])))",
                "{{name}}",
                SECONDS,
            ),
            panel(
                "Time of work, 99 of 100",
                "histogram_quantile(0.99, sum by (name, le) (rate(workqueue_work_duration_seconds_bucket{job=\"$job\"}[$__rate_interval])))",
                "{{name}}",
                SECONDS,
            ),
            panel(
                "Longest run that has not ended",
                "max by (name) (workqueue_longest_running_processor_seconds{job=\"$job\"})",
                "{{name}}",
                SECONDS,
            ),
            panel(
                "Runs that have not ended, summed up",
                "sum by (name) (workqueue_unfinished_work_seconds{job=\"$job\"})",
                "{{name}}",
                SECONDS,
            ),
        ],
    },
    Dashboard {
        name: "informers",
        title: "informers",
        panels: &[
            panel(
                "Objects in caches",
                "sum by (informer) (watchkeeper_informer_objects{job=\"$job\"})",
                "{{informer}}",
                COUNT,
            ),
            panel(
                "Bytes in caches",
                "sum by (informer) (watchkeeper_informer_bytes{job=\"$job\"})",
                "{{informer}}",
                BYTES,
            ),
            panel(
                "Changes per second",
                "sum by (informer) (rate(watchkeeper_informer_changes_total{job=\"$job\"}[$__rate_interval]))",
                "{{informer}}",
                RATE,
            ),
            panel(
                "Feeds that failed",
                "sum by (informer, class) (increase(watchkeeper_informer_errors_total{job=\"$job\"}[$__rate_interval]))",
                "{{informer}} {{class}}",
                COUNT,
            ),
            panel(
                "Snapshots after the first",
                "sum by (informer, reason) (increase(watchkeeper_informer_resnapshots_total{job=\"$job\"}[$__rate_interval]))",
                "{{informer}} {{reason}}",
                COUNT,
            ),
            panel(
                "Objects that could not be understood",
                "sum by (informer) (increase(watchkeeper_informer_rejected_total{job=\"$job\"}[$__rate_interval]))",
                "{{informer}}",
                COUNT,
            ),
            panel(
                "Sources that cannot be watched",
                "max by (source, reason) (watchkeeper_source_degraded{job=\"$job\"})",
                "{{source}} {{reason}}",
                COUNT,
            ),
            panel(
                "From a change to its delivery, 99 of 100",
                "histogram_quantile(0.99, sum by (subscriber, le) (rate(watchkeeper_subscriber_delay_seconds_bucket{job=\"$job\"}[$__rate_interval])))",
                "{{subscriber}}",
                SECONDS,
            ),
        ],
    },
    Dashboard {
        name: "requests",
        title: "requests to the API server",
        panels: &[
            panel(
                "Requests per second",
                "sum by (method) (rate(rest_client_requests_total{job=\"$job\"}[$__rate_interval]))",
                "{{method}}",
                RATE,
            ),
            panel(
                "Answers per second",
                "sum by (code) (rate(rest_client_requests_total{job=\"$job\"}[$__rate_interval]))",
                "{{code}}",
                RATE,
            ),
        ],
    },
    Dashboard {
        name: "apiserver",
        title: "API server",
        panels: &[
            panel(
                "Requests per second",
                "sum by (verb) (rate(apiserver_request_total{job=\"$job\"}[$__rate_interval]))",
                "{{verb}}",
                RATE,
            ),
            panel(
                "Answers per second",
                "sum by (code) (rate(apiserver_request_total{job=\"$job\"}[$__rate_interval]))",
                "{{code}}",
                RATE,
            ),
            panel(
                "Time of a request, 99 of 100",
                "histogram_quantile(0.99, sum by (verb, le) (rate(apiserver_request_duration_seconds_bucket{job=\"$job\"}[$__rate_interval])))",
                "{{verb}}",
                SECONDS,
            ),
            panel(
                "Open watches",
                "sum by (instance) (apiserver_longrunning_requests{job=\"$job\"})",
                "{{instance}}",
                COUNT,
            ),
            panel(
                "Objects stored",
                "max by (instance) (watchkeeper_storage_objects{job=\"$job\"})",
                "{{instance}}",
                COUNT,
            ),
            panel(
                "Bytes of the log",
                "max by (instance) (watchkeeper_storage_log_bytes{job=\"$job\"})",
                "{{instance}}",
                BYTES,
            ),
            panel(
                "Requests refused",
                "sum by (request_kind, reason) (rate(watchkeeper_rejected_requests_total{job=\"$job\"}[$__rate_interval]))",
                "{{request_kind}} {{reason}}",
                RATE,
            ),
            panel(
                "Connections",
                "sum by (client) (watchkeeper_connections{job=\"$job\"})",
                "{{client}}",
                COUNT,
            ),
            panel(
                "Commits per second",
                "sum by (instance) (deriv(watchkeeper_storage_commits{job=\"$job\"}[$__rate_interval]))",
                "{{instance}}",
                RATE,
            ),
            panel(
                "Checkpoints that failed",
                "max by (instance) (watchkeeper_storage_checkpoint_failures{job=\"$job\"})",
                "{{instance}}",
                COUNT,
            ),
        ],
    },
    Dashboard {
        name: "gateway",
        title: "gateway",
        panels: &[
            panel(
                "Requests per second, by route",
                "sum by (route) (rate(gateway_requests_total{job=\"$job\"}[$__rate_interval]))",
                "{{route}}",
                RATE,
            ),
            panel(
                "Answers per second, by code",
                "sum by (code) (rate(gateway_requests_total{job=\"$job\"}[$__rate_interval]))",
                "{{code}}",
                RATE,
            ),
            panel(
                "Time of a request, 99 of 100",
                "histogram_quantile(0.99, sum by (route, le) (rate(gateway_request_seconds_bucket{job=\"$job\"}[$__rate_interval])))",
                "{{route}}",
                SECONDS,
            ),
            panel(
                "Requests under way",
                "sum by (route) (gateway_requests_active{job=\"$job\"})",
                "{{route}}",
                COUNT,
            ),
            panel(
                "Servers of backends that are not available",
                "sum by (backend) (gateway_backend_endpoints{job=\"$job\", available=\"false\"})",
                "{{backend}}",
                COUNT,
            ),
            panel(
                "Requests repeated per second",
                "sum by (backend, allowed) (rate(gateway_backend_retries_total{job=\"$job\"}[$__rate_interval]))",
                "{{backend}} {{allowed}}",
                RATE,
            ),
            panel(
                "Requests refused per second: too many for a backend",
                "sum by (backend) (rate(gateway_backend_overflowed_total{job=\"$job\"}[$__rate_interval]))",
                "{{backend}}",
                RATE,
            ),
            panel(
                "Requests per second that no route was for",
                "sum by (instance) (rate(gateway_unrouted_total{job=\"$job\"}[$__rate_interval]))",
                "{{instance}}",
                RATE,
            ),
            panel(
                "Requests refused per second: by policies",
                "sum by (instance) (rate(gateway_refused_total{job=\"$job\"}[$__rate_interval]))",
                "{{instance}}",
                RATE,
            ),
            panel(
                "Responses cut off per second",
                "sum by (instance) (rate(gateway_cut_total{job=\"$job\"}[$__rate_interval]))",
                "{{instance}}",
                RATE,
            ),
            panel("Routes served", "max by (instance) (gateway_routes{job=\"$job\"})", "{{instance}}", COUNT),
            panel(
                "Changes of the table per second",
                "sum by (instance) (rate(gateway_table_swaps_total{job=\"$job\"}[$__rate_interval]))",
                "{{instance}}",
                RATE,
            ),
            panel(
                "Sources that are read",
                "min by (source) (gateway_source_up{job=\"$job\"})",
                "{{source}}",
                COUNT,
            ),
            panel(
                "Connections",
                "sum by (listener) (gateway_connections{job=\"$job\"})",
                "{{listener}}",
                COUNT,
            ),
        ],
    },
    Dashboard {
        name: "models",
        title: "calls of models",
        panels: &[
            panel(
                "Cost per hour, by key",
                "3600 * sum by (key) (rate(gateway_ai_cost_total{job=\"$job\"}[$__rate_interval]))",
                "{{key}}",
                COUNT,
            ),
            panel(
                "Cost per hour, by model",
                "3600 * sum by (model) (rate(gateway_ai_cost_total{job=\"$job\"}[$__rate_interval]))",
                "{{model}}",
                COUNT,
            ),
            panel(
                "Cost per hour that no provider confirmed",
                "3600 * sum by (key) (rate(gateway_ai_cost_unconfirmed_total{job=\"$job\"}[$__rate_interval]))",
                "{{key}}",
                COUNT,
            ),
            panel(
                "Calls per second",
                "sum by (gen_ai_provider_name, gen_ai_request_model) (rate(gen_ai_client_operation_duration_seconds_count{job=\"$job\"}[$__rate_interval]))",
                "{{gen_ai_provider_name}} {{gen_ai_request_model}}",
                RATE,
            ),
            panel(
                "Calls that failed per second",
                "sum by (gen_ai_provider_name, error_type) (rate(gen_ai_client_operation_duration_seconds_count{job=\"$job\", error_type!=\"\"}[$__rate_interval]))",
                "{{gen_ai_provider_name}} {{error_type}}",
                RATE,
            ),
            panel(
                "Time to the first token, half of them",
                "histogram_quantile(0.5, sum by (gen_ai_request_model, le) (rate(gen_ai_client_operation_time_to_first_chunk_seconds_bucket{job=\"$job\"}[$__rate_interval])))",
                "{{gen_ai_request_model}}",
                SECONDS,
            ),
            panel(
                "Time to the first token, 99 of 100",
                "histogram_quantile(0.99, sum by (gen_ai_request_model, le) (rate(gen_ai_client_operation_time_to_first_chunk_seconds_bucket{job=\"$job\"}[$__rate_interval])))",
                "{{gen_ai_request_model}}",
                SECONDS,
            ),
            panel(
                "Time of a call, 99 of 100",
                "histogram_quantile(0.99, sum by (gen_ai_request_model, le) (rate(gen_ai_client_operation_duration_seconds_bucket{job=\"$job\"}[$__rate_interval])))",
                "{{gen_ai_request_model}}",
                SECONDS,
            ),
            panel(
                "Tokens per second",
                "sum by (gen_ai_request_model, gen_ai_token_type) (rate(gen_ai_client_token_usage_sum{job=\"$job\"}[$__rate_interval]))",
                "{{gen_ai_request_model}} {{gen_ai_token_type}}",
                RATE,
            ),
            panel(
                "Slices of budgets leased per second",
                "sum by (instance) (rate(gateway_ai_budget_leases_total{job=\"$job\"}[$__rate_interval]))",
                "{{instance}}",
                RATE,
            ),
            panel(
                "Records lost per second",
                "sum by (instance) (rate(gateway_ai_records_lost_total{job=\"$job\"}[$__rate_interval]))",
                "{{instance}}",
                RATE,
            ),
        ],
    },
];

/// Width and height of a panel, on a grid of 24 columns.
const WIDTH: usize = 12;
const HEIGHT: usize = 8;

pub(crate) fn render(job: &str, known: &Known) -> Vec<(&'static str, Value)> {
    DASHBOARDS
        .iter()
        .filter_map(|dashboard| {
            let panels = dashboard.panels.iter().filter(|panel| known.has_all(panel.query));
            let panels: Vec<Value> = panels.enumerate().map(|(at, panel)| panel.render(at)).collect();
            (!panels.is_empty()).then(|| (dashboard.name, dashboard.render(job, panels)))
        })
        .collect()
}

impl Dashboard {
    fn render(&self, job: &str, panels: Vec<Value>) -> Value {
        let source = json!({
            "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
        });
        let chosen = json!({
            "name": "job", "label": "Job", "type": "textbox", "query": job,
            "current": {"text": job, "value": job}, "options": [{"text": job, "value": job, "selected": true}],
        });
        json!({
            "uid": format!("{}-{}", &job[..job.len().min(28)], self.name),
            "title": format!("{job}: {}", self.title),
            "tags": ["watchkeeper", job],
            "schemaVersion": 39,
            "version": 1,
            "editable": false,
            "time": {"from": "now-1h", "to": "now"},
            "refresh": "30s",
            "templating": {"list": [source, chosen]},
            "panels": panels,
        })
    }
}

impl Panel {
    fn render(&self, at: usize) -> Value {
        let source = json!({"type": "prometheus", "uid": "${datasource}"});
        json!({
            "id": at + 1,
            "type": "timeseries",
            "title": self.title,
            "datasource": source,
            "gridPos": {"x": at % 2 * WIDTH, "y": at / 2 * HEIGHT, "w": WIDTH, "h": HEIGHT},
            "fieldConfig": {"defaults": {"unit": self.unit, "min": 0}, "overrides": []},
            "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
            "targets": [{"refId": "A", "datasource": source, "expr": self.query, "legendFormat": self.legend}],
        })
    }
}
