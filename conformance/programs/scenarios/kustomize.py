"""kustomize: `kubectl apply -k` of a base and an overlay, by either side of an apply; compared, changed, pruned and deleted again."""

import pathlib

from look import named

PROGRAMS = []
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "kustomization"


def play(server):
    server.kubectl("create", "namespace", "shop")
    said = {}

    def ask(title, *arguments):
        said[title] = server.run("kubectl", *arguments, "-n", "shop", check=False).splitlines()

    overlay, base = FOLDER / "overlay", FOLDER / "base"
    ask("a dry run", "apply", "-k", base, "--dry-run=server")
    ask("the base", "apply", "-k", base)
    ask("the base again", "apply", "-k", base)
    ask("the overlay beside it", "apply", "-k", overlay)
    server.wait("both", lambda server: [one["status"].get("readyReplicas") for one in server.get("deployments", "-n", "shop")["items"]] == [2, 1])
    ask("nothing differs", "diff", "-k", overlay)
    ask("the overlay by the server", "apply", "-k", overlay, "--server-side")
    ask("the overlay by the server, by force", "apply", "-k", overlay, "--server-side", "--force-conflicts")
    ask("what there is", "get", "-k", overlay, "-o", "name")
    for one in server.get("deployments,services,configmaps,secrets", "-n", "shop", "--show-managed-fields")["items"]:
        # What controllers write is theirs.
        one["metadata"]["managedFields"] = [entry for entry in one["metadata"]["managedFields"] if entry["manager"].startswith("kubectl")]
        for field in ("status", "clusterIP", "clusterIPs"):
            one.pop(field, None)
            one.get("spec", {}).pop(field, None)
        one["metadata"].get("annotations", {}).pop("deployment.kubernetes.io/revision", None)
        if one["metadata"]["name"] != "kube-root-ca.crt":
            said[f"{one['kind']}/{one['metadata']['name']}"] = one
    ask("what nobody wants any more goes", "apply", "-k", base, "--prune", "-l", "app.kubernetes.io/name=shop", "--prune-allowlist=core/v1/ConfigMap")
    ask("the overlay goes", "delete", "-k", overlay, "--ignore-not-found")
    ask("the base goes", "delete", "-k", base, "--ignore-not-found")
    server.wait("everything goes", lambda server: not named(server, "deployments,replicasets,pods", "-n", "shop"))
    return said
