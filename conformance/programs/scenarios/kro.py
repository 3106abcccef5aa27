"""kro: a graph of resources becomes a kind of its own, of which one is made, scaled, given an Ingress, repaired and deleted; one graph is refused.

After "Quick Start" of its documentation. It reads the OpenAPI documents of the server, to judge what a graph is made of.
"""

import json
import os

from look import condition, events, named

PROGRAMS = ["kro"]
SOURCES = {"KRO": "github.com/kubernetes-sigs/kro@v0.9.4"}

APP = {"app": "${schema.spec.name}"}
CONTAINER = {"name": "${schema.spec.name}", "image": "${schema.spec.image}", "ports": [{"containerPort": 80}]}
BACKEND = {"service": {"name": "${service.metadata.name}", "port": {"number": 80}}}
DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "${schema.spec.name}"},
    "spec": {
        "replicas": "${schema.spec.replicas}", "selector": {"matchLabels": APP},
        "template": {"metadata": {"labels": APP}, "spec": {"containers": [CONTAINER]}},
    },
}
SERVICE = {
    "apiVersion": "v1", "kind": "Service", "metadata": {"name": "${schema.spec.name}-svc"},
    "spec": {"selector": "${deployment.spec.selector.matchLabels}", "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}]},
}
INGRESS = {
    "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "${schema.spec.name}-ingress"},
    "spec": {"rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}]},
}


def graph(name, kind, resources):
    schema = {
        "apiVersion": "v1alpha1", "kind": kind, "scope": "Namespaced",
        "spec": {"name": "string", "image": 'string | default="example.com/web:1"', "replicas": "integer | default=3", "ingress": {"enabled": "boolean | default=false"}},
        "status": {"deploymentConditions": "${deployment.status.conditions}", "availableReplicas": "${deployment.status.availableReplicas}"},
    }
    return {"apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition", "metadata": {"name": name}, "spec": {"schema": schema, "resources": resources}}


GRAPH = graph(
    "my-application", "Application",
    [
        {"id": "deployment", "template": DEPLOYMENT, "readyWhen": ["${deployment.spec.replicas == deployment.status.availableReplicas}"]},
        {"id": "service", "template": SERVICE},
        {"id": "ingress", "includeWhen": ["${schema.spec.ingress.enabled}"], "template": INGRESS},
    ],
)
# A field that no Deployment has, as the documents of the server say.
WRONG = graph("wrong", "Wrong", [{"id": "deployment", "template": {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicaz": 3}}}])
INSTANCE = {"apiVersion": "kro.run/v1alpha1", "kind": "Application", "metadata": {"name": "my-app-instance", "namespace": "graphs"}, "spec": {"name": "my-app", "replicas": 1}}


def ready(replicas):
    def is_ready(server):
        one = server.get("application", "-n", "graphs", "my-app-instance")
        return condition(one, "Ready") == "True" and one["status"]["availableReplicas"] == replicas

    return is_ready


def play(server):
    server.kubectl("apply", "--server-side", "-f", f"{os.environ['KRO']}/helm/crds")
    server.kubectl("create", "namespace", "graphs")
    server.kubectl("wait", "--for=condition=Established", "crd/resourcegraphdefinitions.kro.run", "crd/graphrevisions.internal.kro.run")
    server.start("kro", "--metrics-bind-address=127.0.0.1:8078", "--health-probe-bind-address=127.0.0.1:8079", "--allow-crd-deletion")
    server.apply(GRAPH, WRONG)
    server.wait("the graph", lambda server: server.get("rgd", "my-application")["status"]["state"] == "Active")
    server.wait("the graph that is wrong", lambda server: server.get("rgd", "wrong")["status"]["state"] == "Inactive")
    server.apply(INSTANCE)
    server.wait("the instance", ready(1))
    server.kubectl("patch", "application", "-n", "graphs", "my-app-instance", "--type=merge", "-p", '{"spec": {"replicas": 2, "ingress": {"enabled": true}}}')
    server.wait("more of it", ready(2))
    server.wait("the Ingress", lambda server: named(server, "ingress/my-app-ingress", "-n", "graphs"))
    server.kubectl("delete", "service", "-n", "graphs", "my-app-svc")
    server.wait("the Service again", lambda server: named(server, "service/my-app-svc", "-n", "graphs"))
    server.wait("all of it again", ready(2))
    said = {"graph": server.get("rgd", "my-application", "--show-managed-fields"), "wrong": server.get("rgd", "wrong")["status"]}
    said["definition"] = server.get("crd", "applications.kro.run", "--show-managed-fields")
    said["graphs"] = [line.split()[:5] for line in server.kubectl("get", "rgd", "--no-headers").splitlines()]
    said["applications"] = [line.split()[:3] for line in server.kubectl("get", "applications", "-n", "graphs", "--no-headers").splitlines()]
    for one in server.get("applications,deployments,services,ingresses", "-n", "graphs", "--show-managed-fields")["items"]:
        said[f"{one['kind']}/{one['metadata']['name']}"] = one
    bad = {**INSTANCE, "metadata": {"name": "bad", "namespace": "graphs"}, "spec": {"name": "bad", "replicas": "many"}}
    (server.folder / "bad.json").write_text(json.dumps(bad))
    said["an instance that is refused"] = server.kubectl("create", "-f", "bad.json", check=False)
    said["events"] = events(server, "graphs", of=["Application", "ResourceGraphDefinition"])
    server.kubectl("delete", "application", "-n", "graphs", "my-app-instance")
    server.wait("all of it goes", lambda server: not named(server, "deployments,services,ingresses", "-n", "graphs"))
    server.kubectl("delete", "rgd", "my-application")
    server.wait("its kind goes", lambda server: not named(server, "crd/applications.kro.run"))
    return said
