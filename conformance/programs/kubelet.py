"""What a scheduler and a kubelet would do on the real server, as far as controllers look at it: a node, and pods that become ready, end or go."""

import base64
import datetime
import http.client
import json
import ssl
import urllib.parse

# Seconds between two looks at all pods.
INTERVAL = 0.5


class Api:
    """Requests with the administrator's certificate."""

    def __init__(self, kubeconfig, folder):
        cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        files = {"ca": cluster["certificate-authority-data"], "crt": user["client-certificate-data"], "key": user["client-key-data"]}
        for name, data in files.items():
            (folder / f"kubelet.{name}").write_bytes(base64.b64decode(data))
        context = ssl.create_default_context(cafile=folder / "kubelet.ca")
        context.load_cert_chain(folder / "kubelet.crt", folder / "kubelet.key")
        self.address = urllib.parse.urlparse(cluster["server"]).netloc
        self.context = context

    def ask(self, method, path, body=None, kind="application/json"):
        return self.exchange(method, path, body, kind)[1]

    def exchange(self, method, path, body, kind, accept="application/json"):
        """The code of an answer, and what it says: a document, or a text if it is none."""
        connection = http.client.HTTPSConnection(self.address, context=self.context, timeout=10)
        headers = {"Accept": accept, **({"Content-Type": kind} if body is not None else {})}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def status(pod):
    """The status that a pod gets next, or none."""
    phase = pod["status"].get("phase")
    if phase in ("Succeeded", "Failed"):
        return None
    template = pod["spec"]
    ends = template.get("restartPolicy", "Always") != "Always"
    fails = pod["metadata"].get("annotations", {}).get("simulate.watchkeeper.dev/fails") == "true"
    if phase == "Running" and not ends:
        return None
    phase = "Running" if phase != "Running" else "Failed" if fails else "Succeeded"
    ready = phase == "Running"
    state = {"running": {"startedAt": now()}} if ready else {"terminated": {"exitCode": 1 if fails else 0, "finishedAt": now(), "startedAt": now()}}
    return {
        "phase": phase,
        "startTime": now(),
        "podIP": "10.244.0.2",
        "podIPs": [{"ip": "10.244.0.2"}],
        "conditions": [{"type": kind, "status": str(ready), "lastTransitionTime": now()} for kind in ("Ready", "ContainersReady", "PodScheduled", "Initialized")],
        "containerStatuses": [
            {"name": one["name"], "image": one["image"], "imageID": "", "ready": ready, "started": ready, "restartCount": 0, "state": state} for one in template["containers"]
        ],
    }


def run(kubeconfig, folder, stop):
    """Looks at all pods until told to stop."""
    api = Api(kubeconfig, folder)
    api.ask("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "simulated", "labels": {"kubernetes.io/hostname": "simulated"}}})
    while not stop.wait(INTERVAL):
        beat = {"status": {"allocatable": {"pods": "110"}, "capacity": {"pods": "110"}, "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": now()}]}}
        api.ask("PATCH", "/api/v1/nodes/simulated/status", beat, "application/merge-patch+json")
        for pod in api.ask("GET", "/api/v1/pods").get("items", []):
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            if "deletionTimestamp" in pod["metadata"]:
                api.ask("DELETE", path, {"gracePeriodSeconds": 0})
                continue
            if "nodeName" not in pod["spec"]:
                api.ask("POST", f"{path}/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]}, "target": {"kind": "Node", "name": "simulated"}})
            new = status(pod)
            if new:
                api.ask("PATCH", f"{path}/status", {"status": new}, "application/merge-patch+json")
