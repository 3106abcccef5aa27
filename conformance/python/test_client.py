"""The official Python client against an API server.

Run with KUBECONFIG set to the kubeconfig of the server: `python -m unittest discover -s conformance/python`.
Every test has a namespace of its own, every definition a group of its own, so a running server can be asked twice.
"""

import json
import threading
import unittest
import uuid

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException


def setUpModule():
    config.load_kube_config()


def unique(word):
    return f"{word}-{uuid.uuid4().hex[:8]}"


def config_map(name, labels=None, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data=data)


class WithNamespace(unittest.TestCase):
    """A test with a namespace."""

    def setUp(self):
        self.core = client.CoreV1Api()
        self.namespace = unique("python")
        self.core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=self.namespace)))

    def create(self, name, labels=None, **data):
        return self.core.create_namespaced_config_map(self.namespace, config_map(name, labels, **data))

    def names(self, **options):
        return [item.metadata.name for item in self.core.list_namespaced_config_map(self.namespace, **options).items]

    def fails(self, status, reason):
        return Fails(self, status, reason)


class Fails:
    """Expects an answer with a status and a reason, and keeps its body."""

    def __init__(self, test, status, reason):
        self.test, self.status, self.reason = test, status, reason

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        self.test.assertTrue(kind and issubclass(kind, ApiException), error)
        self.test.assertEqual(error.status, self.status, error.body)
        self.body = json.loads(error.body)
        self.test.assertEqual(self.body["kind"], "Status")
        self.test.assertEqual(self.body["status"], "Failure")
        self.test.assertEqual(self.body["code"], self.status)
        self.test.assertEqual(self.body["reason"], self.reason)
        return True


class ConfigMaps(WithNamespace):
    def test_what_is_created_is_read_changed_and_deleted(self):
        created = self.create("a", color="blue")
        self.assertEqual(created.metadata.namespace, self.namespace)
        self.assertTrue(created.metadata.uid)
        self.assertIsNotNone(created.metadata.creation_timestamp)
        read = self.core.read_namespaced_config_map("a", self.namespace)
        self.assertEqual(read.data, {"color": "blue"})
        self.assertEqual(read.metadata.resource_version, created.metadata.resource_version)
        read.data["color"] = "red"
        replaced = self.core.replace_namespaced_config_map("a", self.namespace, read)
        self.assertNotEqual(replaced.metadata.resource_version, created.metadata.resource_version)
        self.assertEqual(replaced.metadata.uid, created.metadata.uid)
        self.core.delete_namespaced_config_map("a", self.namespace)
        with self.fails(404, "NotFound"):
            self.core.read_namespaced_config_map("a", self.namespace)

    def test_a_replacement_that_changes_nothing_keeps_the_version(self):
        created = self.create("a", color="blue")
        again = self.core.replace_namespaced_config_map("a", self.namespace, created)
        self.assertEqual(again.metadata.resource_version, created.metadata.resource_version)

    def test_a_stale_replacement_is_a_conflict(self):
        stale = self.create("a", color="blue")
        self.core.patch_namespaced_config_map("a", self.namespace, {"data": {"color": "red"}})
        stale.data["color"] = "green"
        with self.fails(409, "Conflict") as failure:
            self.core.replace_namespaced_config_map("a", self.namespace, stale)
        self.assertEqual(failure.body["details"], {"name": "a", "kind": "configmaps"})
        self.assertIn("the object has been modified", failure.body["message"])

    def test_a_second_one_of_the_same_name_already_exists(self):
        self.create("a")
        with self.fails(409, "AlreadyExists") as failure:
            self.create("a")
        self.assertEqual(failure.body["message"], 'configmaps "a" already exists')

    def test_an_invalid_name_is_named(self):
        with self.fails(422, "Invalid") as failure:
            self.create("Not_Valid")
        cause = failure.body["details"]["causes"][0]
        self.assertEqual((cause["field"], cause["reason"]), ("metadata.name", "FieldValueInvalid"))

    def test_a_missing_one_is_not_found(self):
        with self.fails(404, "NotFound") as failure:
            self.core.delete_namespaced_config_map("missing", self.namespace)
        self.assertEqual(failure.body["details"], {"name": "missing", "kind": "configmaps"})

    def test_a_missing_namespace_is_not_found(self):
        with self.fails(404, "NotFound") as failure:
            self.core.create_namespaced_config_map("no-such-namespace", config_map("a"))
        self.assertEqual(failure.body["details"], {"name": "no-such-namespace", "kind": "namespaces"})

    def test_names_can_be_generated(self):
        names = set()
        for _ in range(3):
            made = client.V1ConfigMap(metadata=client.V1ObjectMeta(generate_name="made-"))
            names.add(self.core.create_namespaced_config_map(self.namespace, made).metadata.name)
        self.assertEqual(len(names), 3)
        self.assertTrue(all(name.startswith("made-") and len(name) == 10 for name in names), names)

    def test_a_dry_run_leaves_nothing(self):
        answer = self.core.create_namespaced_config_map(self.namespace, config_map("dry"), dry_run="All")
        self.assertTrue(answer.metadata.uid)
        with self.fails(404, "NotFound"):
            self.core.read_namespaced_config_map("dry", self.namespace)

    def test_a_precondition_that_does_not_hold_keeps_the_object(self):
        self.create("a")
        wrong = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="someone-else"))
        with self.fails(409, "Conflict"):
            self.core.delete_namespaced_config_map("a", self.namespace, body=wrong)
        self.assertIn("a", self.names())


class Lists(WithNamespace):
    def test_pages_hold_everything_once(self):
        expected = [f"n{number:02}" for number in range(23)]
        for name in expected:
            self.create(name, labels={"numbered": "yes"})
        found, pages, token, versions = [], 0, None, set()
        while True:
            page = self.core.list_namespaced_config_map(
                self.namespace, limit=5, _continue=token, label_selector="numbered=yes"
            )
            found += [item.metadata.name for item in page.items]
            versions.add(page.metadata.resource_version)
            pages += 1
            token = page.metadata._continue
            if not token:
                break
        self.assertEqual(found, expected)
        self.assertEqual((pages, len(versions)), (5, 1))

    def test_pages_show_one_moment(self):
        for number in range(4):
            self.create(f"n{number}", labels={"numbered": "yes"})
        options = {"label_selector": "numbered=yes"}
        first = self.core.list_namespaced_config_map(self.namespace, limit=2, **options)
        self.core.delete_namespaced_config_map("n3", self.namespace)
        self.create("n2a", labels={"numbered": "yes"})
        second = self.core.list_namespaced_config_map(
            self.namespace, limit=2, _continue=first.metadata._continue, **options
        )
        self.assertEqual([item.metadata.name for item in second.items], ["n2", "n3"])

    def test_selectors_choose(self):
        for number in range(4):
            self.create(f"n{number}", labels={"odd": str(number % 2)})
        self.assertEqual(self.names(label_selector="odd=1"), ["n1", "n3"])
        self.assertEqual(self.names(label_selector="odd in (0)"), ["n0", "n2"])
        self.assertEqual(self.names(field_selector="metadata.name=n2"), ["n2"])
        with self.fails(400, "BadRequest"):
            self.names(field_selector="data.x=1")
        with self.fails(400, "BadRequest"):
            self.names(label_selector="a in (")

    def test_a_collection_is_deleted_by_selector(self):
        for number in range(4):
            self.create(f"n{number}", labels={"odd": str(number % 2)})
        self.core.delete_collection_namespaced_config_map(self.namespace, label_selector="odd=1")
        self.assertEqual(self.names(label_selector="odd"), ["n0", "n2"])

    def test_all_namespaces_are_listed_at_once(self):
        label = unique("label")
        self.create("a", labels={"only": label})
        found = self.core.list_config_map_for_all_namespaces(label_selector=f"only={label}")
        self.assertEqual([item.metadata.namespace for item in found.items], [self.namespace])

    def test_a_nonsense_token_is_a_bad_request(self):
        with self.fails(400, "BadRequest"):
            self.names(_continue="nonsense")


class Watches(WithNamespace):
    def events(self, **options):
        stream = watch.Watch().stream(self.core.list_namespaced_config_map, self.namespace, **options)
        return [(event["type"], event["object"].metadata.name) for event in stream]

    def version(self):
        return self.core.list_namespaced_config_map(self.namespace).metadata.resource_version

    def test_everything_since_a_version_comes_in_order(self):
        since = self.version()
        self.create("a")
        self.core.patch_namespaced_config_map("a", self.namespace, {"data": {"x": "1"}})
        self.create("b")
        self.core.delete_namespaced_config_map("a", self.namespace)
        self.assertEqual(
            [event for event in self.events(resource_version=since, timeout_seconds=1) if event[1] in ("a", "b")],
            [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")],
        )

    def test_without_a_version_the_state_comes_first(self):
        self.create("a")
        self.create("b")
        events = self.events(timeout_seconds=1)
        self.assertEqual([event for event in events if event[1] in ("a", "b")], [("ADDED", "a"), ("ADDED", "b")])

    def test_leaving_a_selector_is_a_deletion(self):
        since = self.version()
        self.create("a", labels={"on": "yes"})
        self.core.patch_namespaced_config_map("a", self.namespace, {"metadata": {"labels": {"on": None}}})
        self.assertEqual(
            self.events(resource_version=since, timeout_seconds=1, label_selector="on=yes"),
            [("ADDED", "a"), ("DELETED", "a")],
        )

    def test_a_change_reaches_a_watch_that_is_open(self):
        started = self.create("first")
        seen, opened = [], threading.Event()

        def follow():
            watcher = watch.Watch()
            for event in watcher.stream(self.core.list_namespaced_config_map, self.namespace, timeout_seconds=20):
                seen.append((event["type"], event["object"].metadata.name))
                opened.set()
                if event["object"].metadata.name == "last":
                    watcher.stop()

        thread = threading.Thread(target=follow)
        thread.start()
        self.assertTrue(opened.wait(20))
        self.create("last")
        thread.join(20)
        self.assertFalse(thread.is_alive())
        self.assertIn(("ADDED", started.metadata.name), seen)
        self.assertEqual(seen[-1], ("ADDED", "last"))

    def test_one_object_is_watched_by_name(self):
        self.create("a")
        self.create("b")
        events = self.events(timeout_seconds=1, field_selector="metadata.name=b")
        self.assertEqual(events, [("ADDED", "b")])


class Patches(WithNamespace):
    def setUp(self):
        super().setUp()
        self.create("a", x="1", y="2")

    def data(self):
        return self.core.read_namespaced_config_map("a", self.namespace).data

    def test_a_json_patch_is_a_list_of_steps(self):
        steps = [{"op": "replace", "path": "/data/x", "value": "3"}, {"op": "remove", "path": "/data/y"}]
        self.core.patch_namespaced_config_map("a", self.namespace, steps)
        self.assertEqual(self.data(), {"x": "3"})

    def test_a_test_that_fails_changes_nothing(self):
        steps = [{"op": "remove", "path": "/data/y"}, {"op": "test", "path": "/data/x", "value": "9"}]
        with self.fails(422, "Invalid"):
            self.core.patch_namespaced_config_map("a", self.namespace, steps)
        self.assertEqual(self.data(), {"x": "1", "y": "2"})

    def test_a_merge_patch_removes_with_null(self):
        self.core.patch_namespaced_config_map(
            "a", self.namespace, {"data": {"x": None, "z": "4"}}, _content_type="application/merge-patch+json"
        )
        self.assertEqual(self.data(), {"y": "2", "z": "4"})

    def test_a_strategic_patch_merges_lists_by_key(self):
        apps = client.AppsV1Api()
        container = {"name": "one", "image": "registry.example.com/one:1"}
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        apps.create_namespaced_deployment(self.namespace, {"metadata": {"name": "web"}, "spec": spec})
        more = {"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "registry.example.com/two:1"}]}}}}
        patched = apps.patch_namespaced_deployment(
            "web", self.namespace, more, _content_type="application/strategic-merge-patch+json"
        )
        self.assertEqual({c.name for c in patched.spec.template.spec.containers}, {"one", "two"})
        scaled = apps.patch_namespaced_deployment_scale("web", self.namespace, {"spec": {"replicas": 3}})
        self.assertEqual(scaled.spec.replicas, 3)
        self.assertEqual(apps.read_namespaced_deployment("web", self.namespace).spec.replicas, 3)

    def test_an_unknown_kind_of_patch_is_unsupported(self):
        with self.fails(415, "UnsupportedMediaType"):
            self.core.patch_namespaced_config_map("a", self.namespace, {}, _content_type="application/json")


class CustomObjects(WithNamespace):
    def setUp(self):
        super().setUp()
        self.group = f"{unique('python')}.example.com"
        self.definitions = client.ApiextensionsV1Api()
        self.custom = client.CustomObjectsApi()
        self.define()
        self.place = (self.group, "v1", self.namespace, "widgets")

    def define(self):
        size = client.V1JSONSchemaProps(type="integer", minimum=1, default=2)
        replicas = client.V1JSONSchemaProps(type="integer")
        state = client.V1JSONSchemaProps(type="string")
        schema = client.V1JSONSchemaProps(
            type="object",
            properties={
                "spec": client.V1JSONSchemaProps(type="object", properties={"size": size, "replicas": replicas}),
                "status": client.V1JSONSchemaProps(type="object", properties={"state": state, "replicas": replicas}),
            },
        )
        scale = client.V1CustomResourceSubresourceScale(
            spec_replicas_path=".spec.replicas", status_replicas_path=".status.replicas"
        )
        version = client.V1CustomResourceDefinitionVersion(
            name="v1",
            served=True,
            storage=True,
            schema=client.V1CustomResourceValidation(open_apiv3_schema=schema),
            subresources=client.V1CustomResourceSubresources(status={}, scale=scale),
        )
        name = f"widgets.{self.group}"
        spec = client.V1CustomResourceDefinitionSpec(
            group=self.group,
            names=client.V1CustomResourceDefinitionNames(plural="widgets", kind="Widget"),
            scope="Namespaced",
            versions=[version],
        )
        definition = client.V1CustomResourceDefinition(metadata=client.V1ObjectMeta(name=name), spec=spec)
        self.definitions.create_custom_resource_definition(definition)
        self.addCleanup(self.definitions.delete_custom_resource_definition, name)
        changes = watch.Watch()
        select = f"metadata.name={name}"
        listing = self.definitions.list_custom_resource_definition
        for event in changes.stream(listing, field_selector=select, timeout_seconds=30):
            conditions = (event["object"].status and event["object"].status.conditions) or []
            if any(c.type == "Established" and c.status == "True" for c in conditions):
                changes.stop()

    def body(self, name, **spec):
        return {
            "apiVersion": f"{self.group}/v1",
            "kind": "Widget",
            "metadata": {"name": name},
            "spec": spec,
        }

    def test_custom_objects_are_created_defaulted_changed_and_deleted(self):
        created = self.custom.create_namespaced_custom_object(*self.place, self.body("a"))
        self.assertEqual(created["spec"], {"size": 2})
        self.assertEqual(created["metadata"]["generation"], 1)
        created["spec"]["size"] = 3
        replaced = self.custom.replace_namespaced_custom_object(*self.place, "a", created)
        self.assertEqual(replaced["metadata"]["generation"], 2)
        patched = self.custom.patch_namespaced_custom_object(*self.place, "a", {"spec": {"size": 4}})
        self.assertEqual(patched["spec"]["size"], 4)
        listed = self.custom.list_namespaced_custom_object(*self.place)
        self.assertEqual((listed["kind"], len(listed["items"])), ("WidgetList", 1))
        self.custom.delete_namespaced_custom_object(*self.place, "a")
        with self.fails(404, "NotFound"):
            self.custom.get_namespaced_custom_object(*self.place, "a")

    def test_an_invalid_object_has_its_causes(self):
        with self.fails(422, "Invalid") as failure:
            self.custom.create_namespaced_custom_object(*self.place, self.body("a", size=0))
        self.assertEqual(failure.body["details"]["kind"], "Widget")
        self.assertEqual(failure.body["details"]["causes"][0]["field"], "spec.size")

    def test_unknown_fields_are_refused_only_when_asked(self):
        body = self.body("a", color="red")
        with self.fails(400, "BadRequest") as failure:
            self.custom.create_namespaced_custom_object(*self.place, body, field_validation="Strict")
        self.assertIn('unknown field "spec.color"', failure.body["message"])
        created = self.custom.create_namespaced_custom_object(*self.place, body, field_validation="Ignore")
        self.assertNotIn("color", created["spec"])

    def test_an_update_without_a_version_is_invalid(self):
        self.custom.create_namespaced_custom_object(*self.place, self.body("a"))
        with self.fails(422, "Invalid") as failure:
            self.custom.replace_namespaced_custom_object(*self.place, "a", self.body("a", size=5))
        self.assertIn("must be specified for an update", failure.body["message"])

    def test_status_and_scale_are_apart(self):
        self.custom.create_namespaced_custom_object(*self.place, self.body("a", replicas=1))
        self.custom.patch_namespaced_custom_object_status(
            *self.place, "a", {"status": {"state": "ready", "replicas": 1}, "spec": {"size": 9}}
        )
        read = self.custom.get_namespaced_custom_object(*self.place, "a")
        self.assertEqual((read["status"]["state"], read["spec"]["size"]), ("ready", 2))
        self.assertEqual(read["metadata"]["generation"], 1)
        self.custom.patch_namespaced_custom_object_scale(*self.place, "a", {"spec": {"replicas": 5}})
        scale = self.custom.get_namespaced_custom_object_scale(*self.place, "a")
        self.assertEqual((scale["kind"], scale["spec"]["replicas"]), ("Scale", 5))

    def test_custom_objects_are_watched(self):
        listing = self.custom.list_namespaced_custom_object
        since = listing(*self.place)["metadata"]["resourceVersion"]
        self.custom.create_namespaced_custom_object(*self.place, self.body("a"))
        self.custom.delete_namespaced_custom_object(*self.place, "a")
        events = watch.Watch().stream(listing, *self.place, resource_version=since, timeout_seconds=1)
        seen = [(event["type"], event["object"]["metadata"]["name"]) for event in events]
        self.assertEqual(seen, [("ADDED", "a"), ("DELETED", "a")])

    def test_the_dynamic_client_finds_the_kind(self):
        everything = dynamic.DynamicClient(client.ApiClient())
        widgets = everything.resources.get(api_version=f"{self.group}/v1", kind="Widget")
        self.assertTrue(widgets.namespaced)
        created = widgets.create(namespace=self.namespace, body=self.body("a", size=7))
        self.assertEqual(created.spec.size, 7)
        patch = {"metadata": {"labels": {"x": "y"}}}
        kind = "application/merge-patch+json"
        widgets.patch(namespace=self.namespace, name="a", body=patch, content_type=kind)
        found = widgets.get(namespace=self.namespace, label_selector="x=y")
        self.assertEqual([item.metadata.name for item in found.items], ["a"])
        self.assertEqual(widgets.status.get(namespace=self.namespace, name="a").metadata.name, "a")
        for event in widgets.watch(namespace=self.namespace, timeout=1):
            self.assertEqual((event["type"], event["object"].metadata.name), ("ADDED", "a"))
        widgets.delete(namespace=self.namespace, name="a")
        self.assertEqual(widgets.get(namespace=self.namespace).items, [])


class OtherKinds(WithNamespace):
    def test_objects_are_created_from_dictionaries(self):
        meta = {"name": "web"}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": [{"port": 80}]}}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
        for body in (service, account):
            utils.create_from_dict(client.ApiClient(), body, namespace=self.namespace)
        made = self.core.read_namespaced_service("web", self.namespace)
        self.assertEqual((made.spec.type, made.spec.ports[0].target_port), ("ClusterIP", 80))
        self.assertTrue(made.spec.cluster_ip)

    def test_secrets_keep_their_bytes(self):
        secret = client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"word": "made-up"})
        made = self.core.create_namespaced_secret(self.namespace, secret)
        self.assertEqual((made.data, made.type), ({"word": "bWFkZS11cA=="}, "Opaque"))

    def test_leases_keep_microseconds(self):
        leases = client.CoordinationV1Api()
        spec = {"holderIdentity": "me", "renewTime": "2026-01-02T03:04:05.678901Z"}
        leases.create_namespaced_lease(self.namespace, {"metadata": {"name": "l"}, "spec": spec})
        self.assertEqual(leases.read_namespaced_lease("l", self.namespace).spec.renew_time.microsecond, 678901)

    def test_pods_have_a_status_of_their_own(self):
        spec = client.V1PodSpec(containers=[client.V1Container(name="c", image="registry.example.com/c:1")])
        pod = client.V1Pod(metadata=client.V1ObjectMeta(name="p"), spec=spec)
        made = self.core.create_namespaced_pod(self.namespace, pod)
        self.assertEqual((made.status.phase, made.spec.restart_policy), ("Pending", "Always"))
        self.core.patch_namespaced_pod_status("p", self.namespace, {"status": {"phase": "Running"}})
        found = self.core.list_namespaced_pod(self.namespace, field_selector="status.phase=Running")
        self.assertEqual([item.metadata.name for item in found.items], ["p"])

    def test_the_server_says_what_it_serves(self):
        self.assertIn("v1", client.CoreApi().get_api_versions().versions)
        self.assertIn("apps", [group.name for group in client.ApisApi().get_api_versions().groups])
        kinds = {resource.kind for resource in self.core.get_api_resources().resources}
        self.assertLessEqual({"ConfigMap", "Secret", "Pod", "Namespace"}, kinds)
        self.assertEqual(client.VersionApi().get_code().major, "1")

    def test_finalizers_hold_an_object(self):
        held = config_map("held")
        held.metadata.finalizers = ["example.com/hold"]
        self.core.create_namespaced_config_map(self.namespace, held)
        self.core.delete_namespaced_config_map("held", self.namespace)
        read = self.core.read_namespaced_config_map("held", self.namespace)
        self.assertIsNotNone(read.metadata.deletion_timestamp)
        read.metadata.finalizers = []
        self.core.replace_namespaced_config_map("held", self.namespace, read)
        with self.fails(404, "NotFound"):
            self.core.read_namespaced_config_map("held", self.namespace)


if __name__ == "__main__":
    unittest.main()
