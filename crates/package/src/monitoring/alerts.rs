//! The alerts. Each is left out if the program lacks one of its metrics.

use serde_json::{Value, json};

/// What `job` is in the expressions below.
const JOB: &str = "JOB";

pub(crate) struct Alert {
    name: &'static str,
    /// When it fires; `JOB` stands for the name of the operator.
    pub(crate) expression: &'static str,
    /// How long that has to be so.
    lasting: &'static str,
    severity: &'static str,
    summary: &'static str,
    /// What to do.
    description: &'static str,
}

pub(crate) const ALERTS: &[Alert] = &[
    Alert {
        name: "OperatorDown",
        expression: "absent(up{job=\"JOB\"} == 1)",
        lasting: "5m",
        severity: "critical",
        summary: "No replica of JOB can be scraped",
        description: "Nothing is reconciled. Look at its Deployment and at the log of its pods.",
    },
    Alert {
        name: "OperatorWithoutLeader",
        expression: "sum by (namespace) (leader_election_master_status{job=\"JOB\"}) == 0",
        lasting: "5m",
        severity: "critical",
        summary: "No replica of JOB leads",
        description: "Nothing is reconciled. Look at its Lease, and whether its service account may update that.",
    },
    Alert {
        name: "OperatorReconcileErrors",
        expression: "sum by (namespace, controller) (rate(controller_runtime_reconcile_errors_total{job=\"JOB\"}[10m])) / sum by (namespace, controller) (rate(controller_runtime_reconcile_total{job=\"JOB\"}[10m])) > 0.5",
        lasting: "15m",
        severity: "warning",
        summary: "More than half of the reconciles of {{ $labels.controller }} fail",
        description: "Objects are not brought to what they declare. The log of the operator names objects and errors.",
    },
    Alert {
        name: "OperatorReconcilePanics",
        expression: "increase(controller_runtime_reconcile_panics_total{job=\"JOB\"}[15m]) > 0",
        lasting: "0m",
        severity: "warning",
        summary: "Reconciles of {{ $labels.controller }} panic",
        description: "This is a mistake in the operator. The log has the object and the place.",
    },
    Alert {
        name: "OperatorTaskPanics",
        expression: "increase(watchkeeper_task_panics_total{job=\"JOB\"}[15m]) > 0",
        lasting: "0m",
        severity: "warning",
        summary: "The task {{ $labels.task }} of JOB panics",
        description: "It was started again. The log has the place.",
    },
    Alert {
        name: "OperatorReconcileStuck",
        expression: "max by (namespace, name) (workqueue_longest_running_processor_seconds{job=\"JOB\"}) > 600",
        lasting: "5m",
        severity: "warning",
        summary: "A reconcile of {{ $labels.name }} has been running for more than ten minutes",
        description: "It waits for something that does not answer. Give the call a time-out.",
    },
    Alert {
        name: "OperatorQueueGrows",
        expression: "sum by (namespace, name) (workqueue_depth{job=\"JOB\"}) > 100 and sum by (namespace, name) (deriv(workqueue_depth{job=\"JOB\"}[15m])) > 0",
        lasting: "30m",
        severity: "warning",
        summary: "The queue of {{ $labels.name }} grows",
        description: "More objects change than are worked on. Raise the concurrency of the controller, or make its reconcile faster.",
    },
    Alert {
        name: "OperatorSourceDegraded",
        expression: "max by (namespace, source, reason) (watchkeeper_source_degraded{job=\"JOB\"}) > 0",
        lasting: "10m",
        severity: "warning",
        summary: "{{ $labels.source }} cannot be watched: {{ $labels.reason }}",
        description: "What is known of it is old. If it is denied, compare the roles with deploy/rbac.yaml.",
    },
    Alert {
        name: "OperatorHotLoop",
        expression: "sum by (namespace, controller, field) (increase(watchkeeper_hot_loops_total{job=\"JOB\"}[30m])) > 0",
        lasting: "0m",
        severity: "warning",
        summary: "{{ $labels.controller }} wakes itself by writing {{ $labels.field }}",
        description: "It writes a field that somebody else puts back, or a value that differs each time.",
    },
    Alert {
        name: "OperatorRequestErrors",
        expression: "sum by (namespace) (rate(rest_client_requests_total{job=\"JOB\", code=~\"5..|<error>\"}[10m])) / sum by (namespace) (rate(rest_client_requests_total{job=\"JOB\"}[10m])) > 0.1",
        lasting: "15m",
        severity: "warning",
        summary: "More than a tenth of the requests of JOB to the API server fail",
        description: "The API server, or the way to it, is not well.",
    },
];

impl Alert {
    pub(crate) fn render(&self, job: &str) -> Value {
        json!({
            "alert": self.name,
            "expr": self.expression.replace(JOB, job),
            "for": self.lasting,
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary.replace(JOB, job), "description": self.description},
        })
    }
}
