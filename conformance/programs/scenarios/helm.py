"""helm: a chart with hooks is installed, upgraded, refused, rolled back, tested with both outcomes, and taken away.

Whoever keeps a release in Secrets reads and writes them, waits for Jobs, pods and Deployments, and merges three states of each object.
"""

import os
import pathlib
import re

from look import named

PROGRAMS = ["helm"]
CHART = pathlib.Path(__file__).resolve().parent.parent / "chart"


def play(server):
    helm = pathlib.Path(os.environ["PROGRAMS"]) / "helm"
    server.kubectl("create", "namespace", "shop")
    said = {}

    def ask(title, *arguments):
        text = server.run(helm, *arguments, "-n", "shop", check=False)
        said[title] = [re.sub(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}", "<time>", line).rstrip() for line in text.splitlines()]

    def deployment(title):
        said[title] = server.get("deployment", "-n", "shop", "web", "--show-managed-fields")
        said[title].pop("status")  # written by other programs
        said[title]["metadata"]["managedFields"] = [one for one in said[title]["metadata"]["managedFields"] if one["manager"] == "helm"]

    wait = ["--wait", "--wait-for-jobs", "--timeout", "60s"]
    ask("install, as a dry run", "install", "web", CHART, "--dry-run=server")
    ask("install", "install", "web", CHART, *wait)
    deployment("the Deployment at first")
    ask("install again", "install", "web", CHART)
    ask("test", "test", "web", "--timeout", "60s")
    server.kubectl("annotate", "deployment", "-n", "shop", "web", "somebody=else")
    ask("upgrade", "upgrade", "web", CHART, "--set", "tag=2,replicas=3,testFails=true", *wait)
    deployment("the Deployment afterwards, and what others did to it")
    ask("a test that fails", "test", "web", "--timeout", "60s")
    ask("an upgrade whose hook fails", "upgrade", "web", CHART, "--set", "tag=3,migrationFails=true", *wait)
    ask("status", "status", "web")
    ask("roll back", "rollback", "web", "1", *wait)
    deployment("the Deployment that was rolled back")
    said["data"] = server.get("configmap", "-n", "shop", "web")["data"]
    ask("upgrade to what is not valid", "upgrade", "web", CHART, "--set", "replicas=-1", *wait)
    ask("upgrade or nothing", "upgrade", "web", CHART, "--set", "migrationFails=true", "--atomic", *wait)
    ask("history", "history", "web")
    ask("values", "get", "all", "web", "--template", "{{range .Release.Hooks}}{{.Name}} {{.LastRun.Phase}}\n{{end}}")
    said["secrets"] = sorted([one["metadata"]["name"], one["type"], one["metadata"]["labels"]["status"]] for one in server.get("secrets", "-n", "shop")["items"])
    ask("uninstall", "uninstall", "web", "--wait", "--keep-history", "--timeout", "60s")
    ask("history of what is gone", "history", "web")
    server.wait("everything goes", lambda server: not named(server, "deployments,replicasets,services", "-n", "shop"))
    said["what stays"] = sorted(named(server, "jobs,configmaps", "-n", "shop"))
    return said
