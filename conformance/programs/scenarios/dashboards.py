"""Dashboards: what Headlamp, the Kubernetes dashboard and k9s ask for, sent as they send it, and the answers compared.

What they ask for was read from what they do: who they are and what they may, discovery, tables
of every kind with its objects, metrics, events of one object, logs, what is behind Services, and watches.
"""

import json

import kubelet

PROGRAMS = []
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
CONNECTS = ("attach", "exec", "log", "portforward", "proxy")
# Groups of what `up` runs besides.
OURS = ("apps.watchkeeper.dev", "gateway.watchkeeper.dev")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "registry.example.com/web:1"}]}},
    },
}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "idle", "namespace": "shop"}, "spec": {"selector": {"app": "nobody"}, "ports": [{"name": "http", "port": 80}]}}


def may(**attributes):
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}}


REVIEWS = "/apis/authorization.k8s.io/v1"
ASKED = [
    ("GET", "/version", None),
    ("GET", "/healthz", None),
    ("GET", "/api", None),
    ("POST", f"{REVIEWS}/selfsubjectaccessreviews", may(verb="list", resource="nodes")),
    ("POST", f"{REVIEWS}/selfsubjectaccessreviews", may(verb="get", resource="pods", subresource="log", namespace="shop")),
    ("POST", f"{REVIEWS}/selfsubjectaccessreviews", may(verb="watch", group="apps", version="v1", resource="deployments", namespace="shop")),
    ("POST", f"{REVIEWS}/selfsubjectaccessreviews", {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}}),
    ("POST", f"{REVIEWS}/selfsubjectaccessreviews", {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}}),
    ("POST", f"{REVIEWS}/selfsubjectrulesreviews", {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "shop"}}),
    ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}),
    ("GET", "/apis/metrics.k8s.io/v1beta1", None),
    ("GET", "/apis/metrics.k8s.io/v1beta1/nodes", None),
    ("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods", None),
    ("GET", "/apis/gateway.networking.k8s.io/v1/gateways", None),
    ("GET", "/api/v1/namespaces/kubernetes-dashboard/services/kubernetes-dashboard-metrics-scraper/proxy/healthz", None),
    ("GET", "/api/v1/namespaces/kubernetes-dashboard/secrets/kubernetes-dashboard-csrf", None),
    ("GET", "/api/v1/namespaces/monitoring/services/prometheus-operated:9090/proxy/api/v1/query?query=up", None),
    ("GET", "/api/v1/namespaces/monitoring/services/http:prometheus-operated:web/proxy/api/v1/query?query=up", None),
    ("GET", "/api/v1/namespaces/shop/services/idle/proxy/", None),
    ("GET", "/api/v1/namespaces/shop/services/idle:http/proxy/", None),
    ("GET", "/api/v1/namespaces/shop/services/idle:81/proxy/", None),
    ("GET", "/api/v1/namespaces/shop/events?fieldSelector=involvedObject.name%3Dnobody%2CinvolvedObject.kind%3DPod", None),
    ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dnobody%2Cstatus.phase!%3DSucceeded&limit=500", None),
    ("GET", "/api/v1/pods?fieldSelector=spec.nothing%3Dnobody", None),
    ("GET", "/apis/apps/v1/namespaces/shop/deployments/web/scale", None),
    ("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web/scale", {"spec": {"replicas": 1}}),
    ("GET", "/api/v1/namespaces/shop/pods/nobody/log?container=web&tailLines=100&timestamps=true&follow=true", None),
    ("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nothing.example.com", None),
    ("GET", "/apis/nothing.example.com/v1/namespaces/shop/things", None),
    ("GET", "/openapi/v3/apis/nothing.example.com/v1", None),
    ("GET", "/.well-known/openid-configuration", None),
]


def ask(api, method, path, body, accept="application/json"):
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    code, answer = api.exchange(method, path, body, kind, accept)
    if isinstance(answer, dict) and "items" in answer:
        answer["metadata"].pop("resourceVersion", None)
    if isinstance(answer, dict) and "metadata" in answer:
        answer["metadata"] = {key: value for key, value in answer["metadata"].items() if key not in ("uid", "resourceVersion", "creationTimestamp", "managedFields")}
    return [code, answer]


def columns(answer):
    return [[column["name"], column["type"], column["format"], column["priority"]] for column in answer.get("columnDefinitions", [])]


def play(server):
    server.kubectl("create", "namespace", "shop")
    server.apply(DEPLOYMENT, SERVICE)
    server.wait("the Deployment", lambda server: server.get("deployment", "-n", "shop", "web")["status"]["readyReplicas"] == 1)
    server.wait("the endpoints of the Service", lambda server: server.get("endpoints", "-n", "shop", "idle"))
    server.kubectl("scale", "deployment", "-n", "shop", "web", "--replicas=1")
    api = kubelet.Api(json.loads(server.kubectl("config", "view", "--raw", "--flatten", "-o", "json")), server.folder)
    said = {}
    for number, (method, path, body) in enumerate(ASKED):
        said[f"{number:02} {method} {path}"] = ask(api, method, path, body)
    # What differs for a reason: who it is, the order of rules, the administrator, the kind of key.
    answers = {title.split(" ", 1)[1]: answer[1] for title, answer in said.items()}
    answers["GET /version"].update({field: "" for field in answers["GET /version"]})
    rules = answers[f"POST {REVIEWS}/selfsubjectrulesreviews"]["status"]
    for field in ("nonResourceRules", "resourceRules"):
        rules[field].sort(key=json.dumps)
    answers["POST /apis/authentication.k8s.io/v1/selfsubjectreviews"]["status"]["userInfo"].update({"extra": "", "username": ""})
    answers["GET /.well-known/openid-configuration"]["id_token_signing_alg_values_supported"] = ""
    # Everything that can be listed is shown as a table, with its objects.
    discovery = {}
    for path in ("/api", "/apis"):
        _, groups = api.exchange("GET", path, None, "", AGGREGATED)
        for group in groups["items"]:
            for version in group["versions"]:
                prefix = f"/apis/{group['metadata']['name']}/{version['version']}" if group["metadata"].get("name") else f"/api/{version['version']}"
                for one in version["resources"]:
                    # Ways into pods are not listed by ours, which has nothing behind them.
                    one["subresources"] = [part for part in one.get("subresources", []) if part["subresource"] not in CONNECTS]
                    discovery[f"{prefix}/{one['resource']}"] = one
            said.setdefault("groups", []).append(group["metadata"].get("name", ""))
    said["groups"] = [group for group in said["groups"] if group not in OURS]
    for path, one in sorted(discovery.items()):
        if any(group in path for group in OURS):
            continue
        said[f"discovery of {path}"] = one
        if "list" in one["verbs"]:
            code, answer = api.exchange("GET", f"{path}?includeObject=Object&limit=2", None, "", TABLE)
            said[f"table of {path}"] = [code, answer["kind"], columns(answer)]
    return said
