"""client-go's examples: a Deployment by typed and dynamic clients, a work queue that follows pods, two candidates for one lease."""

import pathlib
import os
import signal
import subprocess

from look import named

PROGRAMS = ["create-update-delete-deployment", "dynamic-create-update-delete-deployment", "out-of-cluster-client-configuration", "workqueue", "leader-election"]


def by_hand(server, name):
    """What an example says that waits for the return key between its steps."""
    program = pathlib.Path(os.environ["PROGRAMS"]) / name
    done = subprocess.run([program, f"--kubeconfig={server.recorded}"], input="\n" * 8, capture_output=True, text=True, timeout=60)
    return [*done.stdout.splitlines(), *done.stderr.splitlines(), done.returncode]


def said_by(server, name):
    return (server.folder / f"{name}.log").read_text()


def play(server):
    said = {}
    for name in ("create-update-delete-deployment", "dynamic-create-update-delete-deployment"):
        said[name] = by_hand(server, name)
        # It is deleted in the foreground: some controller has to come by.
        server.wait("the Deployment goes", lambda server: not named(server, "deployments"))
    kubeconfig = "-kubeconfig={kubeconfig}"
    # It counts pods until it is ended.
    server.start("out-of-cluster-client-configuration", kubeconfig)
    queue = server.start("workqueue", kubeconfig)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mypod", "namespace": "default"}, "spec": {"containers": [{"name": "one", "image": "registry.example.com/one:1"}]}}
    server.apply(pod)
    server.wait("the queue has the pod", lambda server: "Sync/Add/Update for Pod mypod" in said_by(server, "workqueue"))
    server.kubectl("delete", "pod", "mypod", "--wait")
    server.wait("the queue has its end", lambda server: "Pod default/mypod does not exist anymore" in said_by(server, "workqueue"))
    queue.send_signal(signal.SIGTERM)
    server.wait("pods are counted", lambda server: "in namespace default" in said_by(server, "out-of-cluster-client-configuration"))
    said["pods are counted"] = sorted({line for line in said_by(server, "out-of-cluster-client-configuration").splitlines() if "example-xxxxx" in line})

    lock = ["-lease-lock-name=example", "-lease-lock-namespace=default"]
    first = server.start("leader-election", kubeconfig, *lock, "-id=1")
    server.wait("a leader", lambda server: server.get("lease", "example")["spec"]["holderIdentity"] == "1")
    first.send_signal(signal.SIGTERM)
    server.wait("the lease is released", lambda server: not server.get("lease", "example")["spec"].get("holderIdentity"))
    server.start("leader-election", kubeconfig, *lock, "-id=2")
    server.wait("another leader", lambda server: server.get("lease", "example")["spec"]["holderIdentity"] == "2")
    said["lease"] = server.get("lease", "example", "--show-managed-fields")
    return said
