"""Argo Rollouts: installed by kustomize; a canary that pauses, is promoted and aborted, scaled, and an analysis by a Job; blue and green.

After "Getting started", "BlueGreen" and "Job metrics" of its documentation.
"""

import os

from look import events, named

PROGRAMS = ["rollouts-controller"]
SOURCES = {"ARGO_ROLLOUTS": "github.com/argoproj/argo-rollouts@v1.10.1"}


def rollout(name, strategy, replicas=5):
    return {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas, "revisionHistoryLimit": 2, "selector": {"matchLabels": {"app": name}}, "strategy": strategy,
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [{
                        "name": "rollouts-demo", "image": "argoproj/rollouts-demo:blue", "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                        "resources": {"requests": {"memory": "32Mi", "cpu": "5m"}},
                    }],
                },
            },
        },
    }


def service(name, app):
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"ports": [{"port": 80, "targetPort": "http", "protocol": "TCP", "name": "http"}], "selector": {"app": app}},
    }


ANALYSIS = {
    "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate", "metadata": {"name": "smoke", "namespace": "shop"},
    "spec": {"metrics": [{"name": "test", "provider": {"job": {"spec": {"backoffLimit": 1, "template": {"spec": {"containers": [{"name": "test", "image": "registry.example.com/test:1"}], "restartPolicy": "Never"}}}}}}]},
}
CANARY = {
    "canary": {
        "canaryService": "canary", "stableService": "stable",
        "steps": [{"setWeight": 20}, {"pause": {}}, {"analysis": {"templates": [{"templateName": "smoke"}]}}, {"setWeight": 60}, {"pause": {"duration": 2}}],
    },
}


def phase(name, wanted, **more):
    def holds(server):
        status = server.get("rollout", "-n", "shop", name)["status"]
        return status["phase"] == wanted and all(status.get(key) == value for key, value in more.items())
    return holds


def image(server, name, tag):
    patch = f'[{{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "argoproj/rollouts-demo:{tag}"}}]'
    server.kubectl("patch", "rollout", "-n", "shop", name, "--type=json", "-p", patch)


def play(server):
    server.kubectl("create", "namespace", "argo-rollouts")
    server.kubectl("create", "namespace", "shop")
    server.kubectl("apply", "--server-side", "-n", "argo-rollouts", "-k", os.environ["ARGO_ROLLOUTS"] + "/manifests/cluster-install")
    server.start("rollouts-controller", "--kubeconfig={kubeconfig}", "--namespace=argo-rollouts", "--logformat=text")
    server.apply(service("canary", "web"), service("stable", "web"), ANALYSIS, rollout("web", CANARY))
    server.wait("the rollout is healthy", phase("web", "Healthy"))
    image(server, "web", "yellow")
    server.wait("it pauses", phase("web", "Paused", currentStepIndex=1))
    said = {"while it pauses": server.get("rollout", "-n", "shop", "web", "--show-managed-fields")}
    said["sets while it pauses"] = sorted([one["metadata"]["name"], one["spec"]["replicas"]] for one in server.get("replicasets", "-n", "shop")["items"])
    # As the plug-in for kubectl promotes.
    server.kubectl("patch", "rollout", "-n", "shop", "web", "--subresource=status", "--type=merge", "-p", '{"status": {"pauseConditions": null}}')
    server.wait("the analysis and the rest", phase("web", "Healthy"))
    image(server, "web", "red")
    server.wait("it pauses again", phase("web", "Paused", currentStepIndex=1))
    server.kubectl("patch", "rollout", "-n", "shop", "web", "--subresource=status", "--type=merge", "-p", '{"status": {"abort": true}}')
    server.wait("it is aborted", phase("web", "Degraded"))
    image(server, "web", "yellow")
    server.wait("it is as it was", phase("web", "Healthy"))
    server.kubectl("scale", "rollout", "-n", "shop", "web", "--replicas=3")
    server.wait("three", lambda server: server.get("rollout", "-n", "shop", "web")["status"]["availableReplicas"] == 3)
    said["rollouts"] = [line.split()[:5] for line in server.kubectl("get", "rollouts", "-n", "shop", "--no-headers").splitlines()]

    blue_green = {"blueGreen": {"activeService": "active", "previewService": "preview", "autoPromotionEnabled": False, "scaleDownDelaySeconds": 1}}
    server.apply(service("active", "bg"), service("preview", "bg"), rollout("bg", blue_green, 2))
    server.wait("blue", phase("bg", "Healthy"))
    image(server, "bg", "green")
    server.wait("green waits", phase("bg", "Paused"))
    server.kubectl("patch", "rollout", "-n", "shop", "bg", "--subresource=status", "--type=merge", "-p", '{"status": {"pauseConditions": null}}')
    server.wait("green", phase("bg", "Healthy"))
    server.wait("blue goes", lambda server: sorted(one["spec"]["replicas"] for one in server.get("replicasets", "-n", "shop", "-l", "app=bg")["items"]) == [0, 2])

    for one in server.get("rollouts,replicasets,services,analysisruns,analysistemplates,jobs", "-n", "shop", "--show-managed-fields")["items"]:
        said[f"{one['kind']}/{one['metadata']['name']}"] = one
    said["events"] = events(server, "shop", of=["Rollout", "AnalysisRun"])
    server.kubectl("delete", "rollout", "-n", "shop", "web")
    server.wait("its sets go with it", lambda server: not named(server, "replicasets,pods", "-n", "shop", "-l", "app=web"))
    return said
