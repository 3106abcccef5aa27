"""An operator written with kopf against an API server.

Run with KUBECONFIG set to the kubeconfig of the server: `python -m unittest discover -s conformance/python`.
The operator runs in a thread of this process; its handlers leave what they saw in `seen`.
"""

import asyncio
import pathlib
import subprocess
import tempfile
import threading
import time
import unittest
import uuid

import kopf
from kubernetes import client, config
from kubernetes.client.rest import ApiException

GROUP = f"kopf-{uuid.uuid4().hex[:8]}.watchkeeper.dev"
PATIENCE = 60

seen = []
# For the certificate of the webhooks.
FOLDER = tempfile.TemporaryDirectory()


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.peering.standalone = True
    settings.persistence.finalizer = f"{GROUP}/finalizer"
    settings.admission.managed = f"hooks.{GROUP}"
    certificate, key = (pathlib.Path(FOLDER.name, name) for name in ("tls.crt", "tls.key"))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "1",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1", host="127.0.0.1", certfile=certificate, pkeyfile=key, cafile=certificate,
    )


@kopf.on.validate(GROUP, "v1", "gardens", id="flowers")
def judged(spec, old, warnings, dryrun, **_):
    if not isinstance(spec.get("flowers"), int) or spec["flowers"] < 0:
        raise kopf.AdmissionError("there are no negative flowers", code=422)
    if spec["flowers"] > 1000:
        warnings.append("that is a large garden")
    seen.append(("judged", spec["flowers"], bool(old), dryrun))


@kopf.on.mutate(GROUP, "v1", "gardens", id="labels", operations=["CREATE"])
def labelled(spec, patch, **_):
    patch.metadata.labels["size"] = "large" if spec.get("flowers", 0) > 1000 else "small"


@kopf.on.create(GROUP, "v1", "gardens")
def created(spec, name, namespace, patch, **_):
    seen.append(("created", name, spec["flowers"]))
    page = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-page"},
        "data": {"flowers": str(spec["flowers"])},
    }
    kopf.adopt(page)
    client.CoreV1Api().create_namespaced_config_map(namespace, page)
    patch.status["flowers"] = spec["flowers"]
    return {"page": f"{name}-page"}


@kopf.on.update(GROUP, "v1", "gardens", field="spec.flowers")
def updated(old, new, name, patch, **_):
    seen.append(("updated", name, old, new))
    patch.status["flowers"] = new


@kopf.on.delete(GROUP, "v1", "gardens")
def deleted(name, retry, **_):
    if retry == 0:
        raise kopf.TemporaryError("not at the first attempt", delay=0.1)
    seen.append(("deleted", name))


@kopf.timer(GROUP, "v1", "gardens", interval=0.2, initial_delay=0.1)
def watered(name, patch, status, **_):
    if status.get("watered", 0) < 3:
        patch.status["watered"] = status.get("watered", 0) + 1


@kopf.daemon(GROUP, "v1", "gardens", cancellation_timeout=5)
async def guarded(name, stopped, **_):
    seen.append(("guard comes", name))
    await stopped.wait()
    seen.append(("guard goes", name))


class AnOperator(unittest.TestCase):
    """One that runs while the tests do."""

    @classmethod
    def setUpClass(cls):
        config.load_kube_config()
        cls.core = client.CoreV1Api()
        cls.custom = client.CustomObjectsApi()
        cls.definitions = client.ApiextensionsV1Api()
        cls.namespace = f"kopf-{uuid.uuid4().hex[:8]}"
        cls.core.create_namespace({"metadata": {"name": cls.namespace}})
        cls.definitions.create_custom_resource_definition(definition())
        cls.eventually("the definition is established", cls.is_established)
        cls.stop = threading.Event()
        ready = threading.Event()
        cls.operator = threading.Thread(
            target=lambda: asyncio.run(kopf.operator(namespaces=[cls.namespace], stop_flag=cls.stop, ready_flag=ready))
        )
        cls.operator.start()
        cls.addClassCleanup(cls.end)
        assert ready.wait(PATIENCE), "the operator does not begin"

    @classmethod
    def end(cls):
        cls.stop.set()
        cls.operator.join(PATIENCE)
        assert not cls.operator.is_alive(), "the operator does not end"
        cls.definitions.delete_custom_resource_definition(f"gardens.{GROUP}")

    @classmethod
    def is_established(cls):
        found = cls.definitions.read_custom_resource_definition(f"gardens.{GROUP}")
        return any(
            condition.type == "Established" and condition.status == "True"
            for condition in found.status.conditions or []
        )

    @classmethod
    def eventually(cls, what, holds):
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, f"not after {PATIENCE} seconds: {what}"
            time.sleep(0.02)

    def garden(self, name):
        return self.custom.get_namespaced_custom_object(GROUP, "v1", self.namespace, "gardens", name)

    def test_a_garden_is_created_changed_and_deleted(self):
        self.custom.create_namespaced_custom_object(GROUP, "v1", self.namespace, "gardens", {
            "apiVersion": f"{GROUP}/v1", "kind": "Garden", "metadata": {"name": "rose"}, "spec": {"flowers": 3},
        })
        self.eventually("the handler was called", lambda: ("created", "rose", 3) in seen)
        self.eventually("the status says so", lambda: self.garden("rose").get("status", {}).get("flowers") == 3)
        self.assertIn(f"{GROUP}/finalizer", self.garden("rose")["metadata"]["finalizers"])
        self.eventually("the result is kept", lambda: self.garden("rose")["status"].get("created") == {"page": "rose-page"})
        page = self.core.read_namespaced_config_map("rose-page", self.namespace)
        self.assertEqual(page.data, {"flowers": "3"})
        self.assertEqual(page.metadata.owner_references[0].uid, self.garden("rose")["metadata"]["uid"])

        self.eventually("the timer ticks", lambda: self.garden("rose")["status"].get("watered") == 3)
        self.eventually("the daemon is there", lambda: ("guard comes", "rose") in seen)

        self.custom.patch_namespaced_custom_object(
            GROUP, "v1", self.namespace, "gardens", "rose", {"spec": {"flowers": 5}}
        )
        self.eventually("the change was handled", lambda: ("updated", "rose", 3, 5) in seen)
        self.eventually("the status follows", lambda: self.garden("rose")["status"].get("flowers") == 5)

        self.custom.delete_namespaced_custom_object(GROUP, "v1", self.namespace, "gardens", "rose")
        self.eventually("the second attempt succeeds", lambda: ("deleted", "rose") in seen)
        self.eventually("the garden is gone", lambda: self.is_gone("rose"))
        self.assertIn(("guard goes", "rose"), seen)

    def make(self, name, flowers, **options):
        garden = {"apiVersion": f"{GROUP}/v1", "kind": "Garden", "metadata": {"name": name}, "spec": {"flowers": flowers}}
        return self.custom.create_namespaced_custom_object_with_http_info(
            GROUP, "v1", self.namespace, "gardens", garden, **options,
        )

    def are_hooks_asked(self):
        """Whether both are: kopf applies the configurations one after the other, some time after it has begun."""
        labels = self.make("probe", 1, dry_run="All")[0]["metadata"].get("labels", {})
        return labels.get("size") == "small" and ("judged", 1, False, True) in seen

    def test_its_webhooks_are_asked(self):
        self.eventually("the webhooks are asked", self.are_hooks_asked)
        with self.assertRaises(ApiException) as refused:
            self.make("weeds", -1)
        self.assertEqual(refused.exception.status, 422)
        self.assertIn("there are no negative flowers", refused.exception.body)
        self.assertTrue(self.is_gone("weeds"))

        made, status, headers = self.make("park", 2000)
        self.assertEqual(status, 201)
        self.assertEqual(made["metadata"]["labels"], {"size": "large"})
        self.assertIn("that is a large garden", headers.get("Warning", ""))
        self.assertIn(("judged", 2000, False, False), seen)

        with self.assertRaises(ApiException) as refused:
            self.custom.patch_namespaced_custom_object(
                GROUP, "v1", self.namespace, "gardens", "park", {"spec": {"flowers": -2}}
            )
        self.assertEqual(refused.exception.status, 422)
        self.assertEqual(self.garden("park")["spec"]["flowers"], 2000)
        self.custom.delete_namespaced_custom_object(GROUP, "v1", self.namespace, "gardens", "park")
        self.eventually("the park is gone", lambda: self.is_gone("park"))

    def is_gone(self, name):
        try:
            self.garden(name)
            return False
        except ApiException as error:
            self.assertEqual(error.status, 404)
            return True


def definition():
    properties = {
        "spec": {"type": "object", "required": ["flowers"], "properties": {"flowers": {"type": "integer"}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gardens.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Garden", "plural": "gardens", "singular": "garden"},
            "versions": [{
                "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
            }],
        },
    }


if __name__ == "__main__":
    unittest.main()
