"""What becomes of custom resources that a webhook converts: the same cases on any API server.

    python conversion.py record    writes what the server of $KUBECONFIG does into conversion.json
    python conversion.py compare   says where it does something else; exits with 1 then

Each case has a definition of its own, whose webhook behaves in one way, and a few requests. Of each request, the answer is noted. How often
a webhook is asked is not: a server may keep what it was told. One case notes what it was asked first.
"""

import copy
import http.client
import json
import os
import threading
import time

import cases
from cases import HERE, KEYS, Api, Hooks, shown

BUSY = "storage is (re)initializing: failed to list"
SUFFIX = "conversion.watchkeeper.dev"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def swapped(thing, version):
    """A thing in another version: `size` is `amount`, and `host:port` are two fields."""
    thing = copy.deepcopy(thing)
    spec = thing.get("spec")
    if thing["apiVersion"] != version and isinstance(spec, dict):
        if version.endswith("/v2"):
            if "size" in spec:
                spec["amount"] = spec.pop("size")
            if "hostPort" in spec:
                spec["host"], spec["port"] = spec.pop("hostPort").split(":")
        else:
            if "amount" in spec:
                spec["size"] = spec.pop("amount")
            if "host" in spec:
                spec["hostPort"] = f'{spec.pop("host")}:{spec.pop("port", "")}'
    thing["apiVersion"] = version
    return thing


def answer(review, objects, **response):
    response = {"uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": objects, **response}
    return 200, {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}


def converting(change=lambda thing: None, **response):
    """Converts, and changes each object afterwards."""
    def behaviour(review):
        objects = []
        for thing in review["request"]["objects"]:
            thing = swapped(thing, review["request"]["desiredAPIVersion"])
            changed = change(thing)
            objects.append(thing if changed is None else changed)
        return answer(review, objects, **response)
    return behaviour


def hang(review):
    time.sleep(8)
    return converting()(review)


def setting(*path_and_value):
    *path, last, value = path_and_value

    def change(thing):
        for part in path:
            thing = thing.setdefault(part, {})
        if value is DROP:
            thing.pop(last, None)
        else:
            thing[last] = value
    return converting(change)


DROP = object()
FAILED = {"status": "Failure"}
GOOD = {
    "convert": converting(),
    "relabel": setting("metadata", "labels", {"converted": "yes"}),
    "annotate": setting("metadata", "annotations", {"a/b": "c"}),
    "unlabel": setting("metadata", "labels", DROP),
    "null-labels": setting("metadata", "labels", None),
    "finalizers": setting("metadata", "finalizers", ["a/b"]),
    "generation": setting("metadata", "generation", 77),
    "resource-version": setting("metadata", "resourceVersion", "77"),
    "owners": setting("metadata", "ownerReferences", [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}]),
    "unknown-field": setting("spec", "unknown", 1),
    "unknown-root": setting("unknown", 1),
    "null-field": setting("spec", "note", None),
    "wrong-type": setting("spec", "note", 5),
    "no-spec": setting("spec", DROP),
    "extra-response": converting(extra=1),
}
BAD = {
    "wrong-uid": lambda review: answer(review, [], uid="other"),
    "no-uid": converting(uid=None),
    "failed": converting(result=FAILED),
    "failed-message": converting(result={"status": "Failure", "message": "cannot do it"}),
    "no-result": converting(result=None),
    "odd-result": converting(result={"status": "Odd"}),
    "no-response": lambda review: (200, {"apiVersion": review["apiVersion"], "kind": "ConversionReview"}),
    "no-kind": lambda review: (200, {key: value for key, value in converting()(review)[1].items() if key == "response"}),
    "other-kind": lambda review: (200, {**converting()(review)[1], "kind": "Status"}),
    "other-version": lambda review: (200, {**converting()(review)[1], "apiVersion": "apiextensions.k8s.io/v1beta1"}),
    "too-few": lambda review: answer(review, []),
    "no-objects": converting(convertedObjects=None),
    "too-many": lambda review: answer(review, [swapped(review["request"]["objects"][0], review["request"]["desiredAPIVersion"])] * 2),
    "renamed": setting("metadata", "name", "other"),
    "no-name": setting("metadata", "name", DROP),
    "moved": setting("metadata", "namespace", "other"),
    "uid": setting("metadata", "uid", "other"),
    "no-object-uid": setting("metadata", "uid", DROP),
    "object-kind": setting("kind", "Other"),
    "no-object-kind": setting("kind", DROP),
    "unconverted": lambda review: answer(review, review["request"]["objects"]),
    "no-api-version": setting("apiVersion", DROP),
    "no-metadata": setting("metadata", DROP),
    "null-metadata": setting("metadata", None),
    "text-metadata": setting("metadata", "text"),
    "list-labels": setting("metadata", "labels", ["a"]),
    "number-label": setting("metadata", "labels", {"a": 1}),
    "bad-label": setting("metadata", "labels", {"a b": "c"}),
    "bad-label-value": setting("metadata", "labels", {"a": "c d"}),
    "bad-annotation": setting("metadata", "annotations", {"a b": "c"}),
    "text-object": converting(lambda thing: "text"),
    "list-object": converting(lambda thing: []),
    "number-object": converting(lambda thing: 5),
    "null-object": lambda review: answer(review, [None]),
    "404": lambda review: (404, "not here"),
    "400": lambda review: (400, "bad"),
    "500": lambda review: (500, "oops"),
    "500-html": lambda review: (500, "<html>oops</html>"),
    "503": lambda review: (503, "later"),
    "redirect": lambda review: (302, ""),
    "html": lambda review: (200, "<html>oops</html>"),
    "empty": lambda review: (200, ""),
    "list": lambda review: (200, "[]"),
    "cut": lambda review: (200, '{"apiVersion": "apiextensions.k8s.io/v1", "kind":'),
    "number-uid": lambda review: answer(review, [], uid=5),
    "text-objects": lambda review: answer(review, "text"),
    "text-result": lambda review: answer(review, [], result="text"),
}

THINGS = "/apis/{group}/%s/namespaces/{ns}/things"
V1, V2 = THINGS % "v1", THINGS % "v2"


def thing(version, name="t", metadata=None, **spec):
    spec = spec or ({"size": 1, "hostPort": "h:80"} if version == "v1" else {"amount": 1, "host": "h", "port": "80"})
    return {"apiVersion": "{group}/" + version, "kind": "Thing", "metadata": {"name": name, **(metadata or {})}, "spec": spec}


def cases_of_conversion():
    """Name, behaviour, options, requests. A request is a method, a path, a body; {rv} is the version of the object that was answered last."""
    yield "asked", "convert", {"asked": True}, [("POST", V1, thing("v1")), ("GET", V2 + "/t", None)]
    yield "asked-old-review", "convert", {"asked": True, "conversionReviewVersions": ["v1beta1"]}, [("POST", V1, thing("v1")), ("GET", V2 + "/t", None)]
    yield "asked-unknown-review", "convert", {"asked": True, "conversionReviewVersions": ["v7", "v1beta1", "v1"]}, [("POST", V1, thing("v1")), ("GET", V2 + "/t", None)]
    for made, path in (("v1", V1), ("v2", V2)):
        other = V2 if made == "v1" else V1
        field, otherField = ("size", "amount") if made == "v1" else ("amount", "size")
        reads = [("GET", V1 + "/t", None), ("GET", V2 + "/t", None)]
        yield f"create-{made}", "convert", {}, [("POST", path, thing(made)), *reads]
        yield f"create-{made}-dry", "convert", {}, [("POST", path + "?dryRun=All", thing(made))]
        yield f"create-{made}-empty", "convert", {}, [("POST", path, {**thing(made), "spec": {}}), *reads]
        yield f"create-{made}-unknown", "convert", {}, [("POST", path, thing(made, **{field: 3, "unknown": 1})), *reads]
        yield f"create-{made}-invalid", "convert", {}, [("POST", path, thing(made, **{field: -1}))]
        yield f"create-{made}-twice", "convert", {}, [("POST", path, thing(made)), ("POST", other, thing("v2" if made == "v1" else "v1"))]
        yield f"list-{made}", "convert", {}, [("POST", V1, thing("v1", "a")), ("POST", V2, thing("v2", "b")), ("LIST", path, None), ("LIST", path + "?limit=1", None)]
        yield f"update-{made}", "convert", {}, [("POST", other, thing("v2" if made == "v1" else "v1")), ("GET", path + "/t", None), ("PUT", path + "/t", thing(made, "t", {"resourceVersion": "{rv}"}, **{field: 5})), *reads]
        yield f"update-{made}-same", "convert", {}, [("POST", other, thing("v2" if made == "v1" else "v1")), ("GET", path + "/t", None), ("PUT-LAST", path + "/t", None)]
        yield f"update-{made}-stale", "convert", {}, [("POST", path, thing(made)), ("PUT", path + "/t", thing(made, "t", {"resourceVersion": "1"}))]
        yield f"patch-{made}", "convert", {}, [("POST", other, thing("v2" if made == "v1" else "v1")), ("PATCH", path + "/t", {"spec": {field: 7}}), *reads]
        yield f"patch-{made}-other-field", "convert", {}, [("POST", path, thing(made)), ("PATCH", path + "/t", {"spec": {otherField: 7}}), *reads]
        yield f"json-patch-{made}", "convert", {}, [("POST", other, thing("v2" if made == "v1" else "v1")), ("JSON-PATCH", path + "/t", [{"op": "replace", "path": f"/spec/{field}", "value": 9}]), *reads]
        yield f"apply-{made}", "convert", {"owners": True}, [("APPLY", path + "/t?fieldManager=me", thing(made)), *reads]
        yield f"apply-{made}-then-other", "convert", {"owners": True}, [
            ("APPLY", path + "/t?fieldManager=me", thing(made, **{field: 1})),
            ("APPLY", other + "/t?fieldManager=you", thing("v2" if made == "v1" else "v1", **{otherField: 2})),
            ("APPLY", other + "/t?fieldManager=you&force=true", thing("v2" if made == "v1" else "v1", **{otherField: 2})), *reads]
        yield f"apply-{made}-by-one", "convert", {"owners": True}, [
            ("APPLY", path + "/t?fieldManager=me", thing(made, **{field: 1, "note": "n"})),
            ("APPLY", other + "/t?fieldManager=me", thing("v2" if made == "v1" else "v1", **{otherField: 2})), *reads]
        yield f"apply-{made}-after-update", "convert", {"owners": True}, [
            ("POST", other + "?fieldManager=first", thing("v2" if made == "v1" else "v1", **{otherField: 1, "note": "n"})),
            ("APPLY", path + "/t?fieldManager=me", thing(made, **{field: 4})),
            ("APPLY", path + "/t?fieldManager=me&force=true", thing(made, **{field: 4})),
            ("PATCH", other + "/t?fieldManager=third", {"spec": {otherField: 6}}), *reads]
        yield f"status-{made}", "convert", {}, [("POST", other, thing("v2" if made == "v1" else "v1")), ("PATCH", path + "/t/status", {"status": {"ready": 1}}), ("GET", other + "/t/status", None), *reads]
        yield f"status-put-{made}", "convert", {}, [("POST", other, thing("v2" if made == "v1" else "v1")), ("GET", path + "/t", None), ("PUT", path + "/t/status", {**thing(made, "t", {"resourceVersion": "{rv}"}), "status": {"ready": 2}}), *reads]
        yield f"scale-{made}", "convert", {}, [("POST", other, thing("v2" if made == "v1" else "v1")), ("GET", path + "/t/scale", None), ("PATCH", path + "/t/scale", {"spec": {"replicas": 4}}), *reads]
        yield f"delete-{made}", "convert", {}, [("POST", other, thing("v2" if made == "v1" else "v1")), ("DELETE", path + "/t", None), ("GET", path + "/t", None)]
        yield f"delete-held-{made}", "convert", {}, [("POST", other, thing("v2" if made == "v1" else "v1", "t", {"finalizers": ["a.b/c"]})), ("DELETE", path + "/t", None), ("GET", other + "/t", None), ("PATCH", path + "/t", {"metadata": {"finalizers": []}}), ("GET", path + "/t", None)]
        yield f"delete-collection-{made}", "convert", {}, [("POST", V1, thing("v1", "a")), ("POST", V2, thing("v2", "b")), ("DELETE", path, None), ("LIST", path, None)]
        yield f"watch-{made}", "convert", {}, [("LIST", path, None), ("POST", other, thing("v2" if made == "v1" else "v1")), ("PATCH", path + "/t", {"spec": {field: 7}}), ("DELETE", other + "/t", None), ("WATCH", path, None)]
        yield f"watch-state-{made}", "convert", {}, [("POST", V1, thing("v1", "a")), ("POST", V2, thing("v2", "b")), ("WATCH-STATE", path, None)]
        yield f"selected-{made}", "convert", {}, [("POST", V1, thing("v1", "a", size=1)), ("POST", V2, thing("v2", "b", amount=2)), ("LIST", path + f"?fieldSelector=spec.{field}%3D2", None), ("LIST", path + f"?fieldSelector=spec.{otherField}%3D2", None)]
        yield f"table-{made}", "convert", {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}, [("POST", other, thing("v2" if made == "v1" else "v1")), ("LIST", path, None)]
        yield f"partial-{made}", "convert", {"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}, [("POST", other, thing("v2" if made == "v1" else "v1", "t", {"labels": {"a": "b"}})), ("LIST", path, None)]
        yield f"none-{made}", "convert", {"strategy": "None"}, [("POST", path, thing(made)), *reads, ("PATCH", other + "/t", {"metadata": {"labels": {"a": "b"}}}), *reads]
        yield f"labels-{made}", "relabel", {}, [("POST", path, thing(made, "t", {"labels": {"own": "x"}})), *reads, ("LIST", V2 + "?labelSelector=converted%3Dyes", None), ("LIST", V1 + "?labelSelector=own", None)]
    for name in GOOD:
        if name not in ("convert", "relabel"):
            labelled = thing("v1", "t", {"labels": {"own": "x"}, "annotations": {"own": "x"}})
            yield f"good-{name}", name, {}, [("POST", V1, labelled), ("GET", V2 + "/t", None), ("LIST", V2, None), ("PATCH", V2 + "/t", {"spec": {"amount": 6}}), ("GET", V1 + "/t", None)]
    for strategy in ("Webhook", "None"):
        name = strategy.lower()
        yield f"migrate-{name}", "convert", {"strategy": strategy}, [
            ("POST", V1, thing("v1")), ("STORE", "v2", None), ("STORED", "", None), ("GET", V1 + "/t", None), ("PUT-LAST", V1 + "/t", None),
            ("PUT-LAST", V1 + "/t", None), ("FORGET", "v1", None), ("STORED", "", None), ("DROP", "v1", None), ("GET", V2 + "/t", None), ("GET", V1 + "/t", None)]
        yield f"migrate-by-patch-{name}", "convert", {"strategy": strategy}, [
            ("POST", V1, thing("v1")), ("STORE", "v2", None), ("PATCH", V2 + "/t", {}), ("PATCH", V2 + "/t", {}), ("GET", V2 + "/t", None)]
        yield f"drop-too-early-{name}", "convert", {"strategy": strategy}, [("POST", V1, thing("v1")), ("STORE", "v2", None), ("DROP", "v1", None)]
    failing = [("POST", V1, thing("v1")), ("GET", V2 + "/t", None), ("LIST", V2, None), ("POST", V2, thing("v2", "u")), ("PATCH", V2 + "/t", {"spec": {"amount": 6}}),
               ("PATCH", V2 + "/t/status", {"status": {"ready": 1}}), ("APPLY", V2 + "/t?fieldManager=me&force=true", thing("v2")), ("DELETE", V2 + "/t", None), ("GET", V1 + "/t", None), ("LIST", V1, None)]
    for name in BAD:
        yield f"bad-{name}", name, {}, failing
    yield "bad-old-review-uid", "wrong-uid", {"conversionReviewVersions": ["v1beta1"]}, failing[:2]
    yield "bad-old-review-failed", "failed", {"conversionReviewVersions": ["v1beta1"]}, failing[:2]
    yield "bad-hang", "hang", {}, [failing[0], ("GET", V2 + "/t?timeout=1s", None), ("POST", V2 + "?timeout=1s", thing("v2", "u")), ("GET", V1 + "/t", None)]
    yield "bad-refused", "convert", {"port": 1}, failing
    yield "bad-authority", "convert", {"ca": "other"}, failing
    yield "bad-service", "convert", {"service": "nobody"}, failing
    yield "bad-delete-collection", "500", {}, [failing[0], ("DELETE", V2, None), ("LIST", V1, None), ("DELETE", V1, None), ("LIST", V1, None)]
    yield "bad-scale", "500", {}, [failing[0], ("GET", V2 + "/t/scale", None)]
    yield "bad-definition-delete", "500", {}, [failing[0], ("UNDEFINE", "", None)]


def properties(version):
    field = "size" if version == "v1" else "amount"
    others = {"hostPort": {"type": "string"}} if version == "v1" else {"host": {"type": "string"}, "port": {"type": "string"}}
    return {"type": "object", "properties": {field: {"type": "integer", "minimum": 0}, "note": {"type": "string"}, "replicas": {"type": "integer"},
                                             f"kept{version}": {"type": "string", "default": f"by {version}"}, **others}}


def definition(group, case, behaviour, options, port):
    import base64
    bundle = base64.b64encode((KEYS / f"{options.get('ca', 'ca')}.crt").read_bytes()).decode()
    path = f"/{case}/hook/{behaviour}"
    place = {"url": f"https://127.0.0.1:{options.get('port', port)}{path}", "caBundle": bundle}
    if "service" in options:
        place = {"service": {"namespace": "default", "name": options["service"], "path": path}, "caBundle": bundle}
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": place, "conversionReviewVersions": options.get("conversionReviewVersions", ["v1"])}}
    if options.get("strategy") == "None":
        conversion = {"strategy": "None"}
    versions = [{
        "name": version, "served": True, "storage": version == "v1",
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": properties(version), "status": {"type": "object", "properties": {"ready": {"type": "integer"}}}}}},
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.ready"}},
        "selectableFields": [{"jsonPath": ".spec.size" if version == "v1" else ".spec.amount"}],
        "additionalPrinterColumns": [{"name": "Number", "type": "integer", "jsonPath": ".spec.size" if version == "v1" else ".spec.amount"}],
    } for version in ("v1", "v2")]
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"things.{group}"}, "spec": {
        "group": group, "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "conversion": conversion, "versions": versions}}


def pruned(value, owners):
    left_out = {"creationTimestamp", "deletionTimestamp", "uid", "resourceVersion", "time", "continue", "description"} | (set() if owners else {"managedFields"})
    if isinstance(value, dict):
        return {key: pruned(item, owners) for key, item in value.items() if key not in left_out and item is not None}
    if isinstance(value, list):
        value = [pruned(item, owners) for item in value]
        if owners and value and all(isinstance(item, dict) and "manager" in item for item in value):
            value.sort(key=lambda item: json.dumps(item, sort_keys=True))
    return value


class Case:
    def __init__(self, api, hooks, name, behaviour, options, requests):
        self.api, self.hooks, self.name, self.options, self.requests = api, hooks, name, options, requests
        self.group = f"{name}.{SUFFIX}"
        self.definition = definition(self.group, name, behaviour, options, hooks.port)
        self.place = f"{DEFINITIONS}/things.{self.group}"
        self.last, self.version, self.listed, self.rounds = None, "", "", []

    def fill(self, value):
        text = json.dumps(value).replace("{group}", self.group).replace("{ns}", "default").replace("{rv}", self.version)
        return json.loads(text)

    def send(self, *request):
        """Sends a request, again and again while the server says that it is busy."""
        for _ in range(40):
            try:
                answer = self.api.send(*request)
            except http.client.RemoteDisconnected:
                return 0, "the connection was closed", []
            if answer[0] != 429 or BUSY in answer[1]["message"]:
                break
            time.sleep(0.5)
        return answer

    def note(self, request, code, body, warnings=()):
        about = {"code": code, "warnings": list(warnings)}
        if code == 429 and BUSY in body["message"]:
            # Whether the cache of the real server is asked or its storage is a matter of time. The failure is the same.
            code, body = 500, {"kind": "Status", "status": "Failure", "message": body["message"].split(", Kind=Thing: ", 1)[1]}
            about["code"] = code
        if isinstance(body, dict) and body.get("kind") == "Status":
            about |= {field: body.get(field) for field in ("status", "reason", "message", "details")}
        else:
            about["object"] = pruned(body, self.options.get("owners"))
        self.rounds.append({"request": request, "answer": shown(about, self.hooks.port)})

    def change_definition(self, change, subresource=""):
        code, body, _ = self.api.send("GET", self.place + subresource)
        assert code == 200, body
        change(body)
        code, body, warnings = self.api.send("PUT", self.place + subresource, body)
        settle()
        return code, body, warnings

    def special(self, method, what):
        def stored(body):
            return body["status"]["storedVersions"] if "storedVersions" in body.get("status", {}) else body

        def store(body):
            for version in body["spec"]["versions"]:
                version["storage"] = version["name"] == what

        def forget(body):
            body["status"]["storedVersions"].remove(what)

        def drop(body):
            body["spec"]["versions"] = [version for version in body["spec"]["versions"] if version["name"] != what]
        if method == "STORED":
            _, body, _ = self.api.send("GET", self.place)
            self.rounds.append({"request": "STORED", "answer": stored(body)})
        elif method == "UNDEFINE":
            code, _, _ = self.api.send("DELETE", self.place)
            deadline = time.time() + 20
            while time.time() < deadline and self.api.send("GET", self.place)[0] != 404:
                time.sleep(0.2)
            self.rounds.append({"request": "UNDEFINE", "answer": [code, self.api.send("GET", self.place)[0]]})
        else:
            change, subresource = {"STORE": (store, ""), "FORGET": (forget, "/status"), "DROP": (drop, "")}[method]
            code, body, warnings = self.change_definition(change, subresource)
            if code == 200:
                self.rounds.append({"request": f"{method} {what}", "answer": stored(body)})
            else:
                self.note(f"{method} {what}", code, body, warnings)

    def watch(self, path, query):
        events = self.api.stream(self.fill(path) + "?watch=1&timeoutSeconds=2" + query)
        if isinstance(events, tuple):
            return self.note(f"WATCH {path}", *events)
        noted = [{"type": event["type"], "object": pruned(event["object"], False)} for event in events]
        self.rounds.append({"request": f"WATCH {path}", "answer": shown(noted, self.hooks.port)})

    def run(self):
        for method, path, body in self.requests:
            if method in ("STORE", "STORED", "FORGET", "DROP", "UNDEFINE"):
                self.special(method, path)
                continue
            if method == "WATCH":
                self.watch(path, f"&resourceVersion={self.listed}")
                continue
            if method == "WATCH-STATE":
                self.watch(path, "&resourceVersion=")
                continue
            before = self.version
            if method == "PUT-LAST":
                body = self.last
            content_type = {"PATCH": "application/merge-patch+json", "JSON-PATCH": "application/json-patch+json",
                            "APPLY": "application/apply-patch+yaml"}.get(method, "application/json")
            real = {"LIST": "GET", "PUT-LAST": "PUT", "JSON-PATCH": "PATCH", "APPLY": "PATCH"}.get(method, method)
            accept = self.options.get("accept") if method == "LIST" else None
            code, answered, warnings = self.send(real, self.fill(path), self.fill(body) if method != "PUT-LAST" else body, content_type, accept)
            if method == "LIST" and code == 200:
                self.listed = answered["metadata"]["resourceVersion"]
            elif code in (200, 201) and answered.get("kind") == "Thing":
                self.last, self.version = answered, answered["metadata"].get("resourceVersion", "")
            self.note(f"{method} {path}", code, answered, warnings)
            if method in ("PUT-LAST", "PATCH") and code == 200:
                self.rounds[-1]["written"] = before != self.version
            if method != "GET":
                settle()
        if self.options.get("asked"):
            asked = self.hooks.taken(self.name)
            _, review, query = asked[0]
            request = review["request"]
            self.rounds.append(shown({"apiVersion": review["apiVersion"], "kind": review["kind"], "fields": sorted(review), "query": query, "requestFields": sorted(request),
                                      "desired": request["desiredAPIVersion"], "objects": pruned(request["objects"], False)}, self.hooks.port))
        return self.rounds


def settle():
    """A real server takes a moment until what was written is in force in every version."""
    time.sleep(float(os.environ.get("SETTLE", "0")) / 10)


def run():
    api, hooks, found = Api(), Hooks({**GOOD, **BAD, "hang": hang}), {}
    everything = [Case(api, hooks, *case) for case in cases_of_conversion()]
    for case in everything:
        code, body, _ = api.send("POST", DEFINITIONS, case.definition)
        assert code == 201, body
    time.sleep(float(os.environ.get("SETTLE", "0")))

    def some(share):
        for case in share:
            found[case.name] = case.run()
    threads = [threading.Thread(target=some, args=(everything[start::8],)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(everything), sorted({case.name for case in everything} - found.keys())
    for case in everything:
        api.send("DELETE", case.place)
    return found


if __name__ == "__main__":
    cases.main(run, HERE / "conversion.json", HERE / "known-conversion.txt")
