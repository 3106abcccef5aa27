"""prometheus-operator: a Prometheus with a monitor and rules becomes a StatefulSet, is scaled and changed; an Alertmanager with its configuration.

After "Getting started" and "Alerting" of its documentation.
"""

import json
import os

from look import condition, events, named

PROGRAMS = ["prometheus-operator"]
SOURCES = {"PROMETHEUS_OPERATOR": "github.com/prometheus-operator/prometheus-operator@v0.93.0"}


def resource(version, kind, name, **spec):
    return {"apiVersion": f"monitoring.coreos.com/{version}", "kind": kind, "metadata": {"name": name, "namespace": "watch", "labels": {"team": "frontend"}}, "spec": spec}


ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "prometheus", "namespace": "watch"}}
TEAM = {"matchLabels": {"team": "frontend"}}
OBJECTS = [
    resource("v1", "ServiceMonitor", "example-app", selector={"matchLabels": {"app": "example-app"}}, endpoints=[{"port": "web", "interval": "30s"}]),
    resource("v1", "PodMonitor", "example-app", selector={"matchLabels": {"app": "example-app"}}, podMetricsEndpoints=[{"port": "web"}]),
    resource("v1", "PrometheusRule", "rules", groups=[{"name": "a", "rules": [{"alert": "ExampleAlert", "expr": "vector(1)", "for": "5m"}, {"record": "one", "expr": "vector(1)"}]}]),
    resource(
        "v1", "Prometheus", "prometheus", replicas=1, serviceAccountName="prometheus", serviceMonitorSelector=TEAM, podMonitorSelector=TEAM, ruleSelector=TEAM,
        resources={"requests": {"memory": "400Mi"}}, alerting={"alertmanagers": [{"namespace": "watch", "name": "alertmanager-example", "port": "web"}]},
    ),
    resource("v1", "Alertmanager", "example", replicas=2, alertmanagerConfigSelector=TEAM),
    resource(
        "v1alpha1", "AlertmanagerConfig", "config", route={"groupBy": ["job"], "groupWait": "30s", "receiver": "webhook"},
        receivers=[{"name": "webhook", "webhookConfigs": [{"url": "http://example.com/"}]}],
    ),
]


def available(kind, name):
    return lambda server: condition(server.get(kind, "-n", "watch", name), "Available") == "True"


def play(server):
    source = os.environ["PROMETHEUS_OPERATOR"]
    server.kubectl("apply", "--server-side", "-f", f"{source}/example/prometheus-operator-crd")
    server.kubectl("create", "namespace", "watch")
    server.start("prometheus-operator", "--web.listen-address=127.0.0.1:8080", "--kubelet-service=kube-system/kubelet", "--kubelet-endpointslice=true")
    server.apply(ACCOUNT, *OBJECTS)
    server.wait("Prometheus", available("prometheus", "prometheus"))
    server.wait("Alertmanager", available("alertmanager", "example"))
    server.kubectl("scale", "prometheus", "-n", "watch", "prometheus", "--replicas=2")
    server.wait("two shards of it", lambda server: server.get("prometheus", "-n", "watch", "prometheus")["status"]["availableReplicas"] == 2)
    server.kubectl("patch", "prometheus", "-n", "watch", "prometheus", "--type=merge", "-p", '{"spec": {"retention": "15d", "resources": {"requests": {"memory": "500Mi"}}}}')
    server.wait("the change", lambda server: "500Mi" in json.dumps(server.get("statefulset", "-n", "watch", "prometheus-prometheus")["spec"]["template"]))
    server.wait("Prometheus again", lambda server: server.get("statefulset", "-n", "watch", "prometheus-prometheus")["status"].get("updatedReplicas") == 1)
    server.wait("Prometheus is available again", available("prometheus", "prometheus"))
    said = {}
    bad = resource("v1", "PrometheusRule", "bad", groups=[{"name": "a", "interval": "not a time", "rules": []}])
    (server.folder / "bad.json").write_text(json.dumps(bad))
    said["rules that are refused"] = server.kubectl("create", "-f", "bad.json", check=False)
    said["prometheuses"] = [line.split()[:6] for line in server.kubectl("get", "prometheuses", "-n", "watch", "--no-headers").splitlines()]
    kinds = "prometheuses,alertmanagers,servicemonitors,podmonitors,prometheusrules,alertmanagerconfigs,statefulsets,secrets,configmaps,services,poddisruptionbudgets"
    for one in server.get(kinds, "-n", "watch", "--show-managed-fields")["items"]:
        if one["kind"] == "Secret":
            one["data"] = sorted(one.get("data", {}))
        if one["metadata"]["name"] != "kube-root-ca.crt":
            said[f"{one['kind']}/{one['metadata']['name']}"] = one
    said["events"] = events(server, "watch", of=["Prometheus", "Alertmanager", "PrometheusRule", "ServiceMonitor", "StatefulSet"])
    server.kubectl("delete", "prometheus", "-n", "watch", "prometheus")
    server.wait("all of it goes", lambda server: not named(server, "statefulset/prometheus-prometheus", "-n", "watch"))
    return said
