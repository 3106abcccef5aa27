"""What admission webhooks are asked, and what becomes of their answers: the same cases on any API server.

    python cases.py record    writes what the server of $KUBECONFIG does into recorded.json
    python cases.py compare   says where it does something else; exits with 1 then

Each case has a namespace of its own, hooks for it alone, and a few requests. Of each request, the answer is noted, and what the hooks were
asked. What differs from run to run (ids, times, ports) is left out.
"""

import base64
import http.client
import http.server
import json
import os
import pathlib
import re
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse

import yaml

HERE = pathlib.Path(__file__).parent
KEYS = HERE / "keys"
GROUP = "admissionregistration.k8s.io"
THINGS = "things.webhooks.watchkeeper.dev"


class Hooks:
    """Answers reviews by the last part of the path, and notes what it was asked by the first."""

    def __init__(self, behaviours=None):
        hooks = self
        self.asked, self.lock = {}, threading.Lock()
        behaviours = behaviours or BEHAVIOURS

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                path = urllib.parse.urlsplit(self.path)
                case, hook, behaviour = path.path.strip("/").split("/")
                review = json.loads(body)
                with hooks.lock:
                    hooks.asked.setdefault(case, []).append((hook, review, path.query))
                code, answer = behaviours[behaviour](review)
                answer = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
                try:
                    self.send_response(code)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    pass

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(KEYS / "server.crt", KEYS / "server.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.server.handle_error = lambda *_: None
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.port = self.server.server_address[1]

    def taken(self, case):
        with self.lock:
            return self.asked.pop(case, [])


class Faults:
    """Servers with which something is wrong on the way to an answer, each at a port of its own."""

    def __init__(self):
        self.ports = {name: self.serve(fault) for name, fault in FAULTS.items()}

    @staticmethod
    def serve(fault):
        listener = socket.create_server(("127.0.0.1", 0))

        def accept():
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=handle, args=(connection,), daemon=True).start()

        def handle(connection):
            try:
                fault(connection)
            except OSError:
                pass
            finally:
                connection.close()

        threading.Thread(target=accept, daemon=True).start()
        return listener.getsockname()[1]


def secured(connection, certificate="server", **settings):
    """Speaks TLS with a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(KEYS / f"{certificate}.crt", KEYS / "server.key")
    for name, value in settings.items():
        setattr(context, name, value)
    return context.wrap_socket(connection, server_side=True)


def read_request(connection):
    read = b""
    while b"\r\n\r\n" not in read:
        read += connection.recv(65536)
    head, body = read.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"content-length: *(\d+)", head, re.IGNORECASE).group(1))
    while len(body) < length:
        body += connection.recv(65536)


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def until_closed(connection):
    while connection.recv(65536):
        pass


def shows(certificate):
    return lambda connection: until_closed(secured(connection, certificate))


def says(text):
    """Answers the first bytes, whatever they are, with a text."""
    def fault(connection):
        connection.recv(65536)
        connection.sendall(text)
        until_closed(connection)
    return fault


def breaks_off(connection):
    connection.recv(65536)
    reset(connection)


def hangs_up(connection):
    connection.recv(65536)


def breaks_off_later(connection):
    connection = secured(connection)
    read_request(connection)
    reset(connection)


def hangs_up_later(connection):
    connection = secured(connection)
    read_request(connection)
    connection.unwrap()


HALF = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"apiVersion": '


def answers_half(connection):
    connection = secured(connection)
    read_request(connection)
    connection.sendall(HALF)
    connection.close()


def answers_half_and_hangs(connection):
    connection = secured(connection)
    read_request(connection)
    connection.sendall(HALF)
    time.sleep(4)
    connection.close()


FAULTS = {
    "fine": shows("fine"), "expired": shows("expired"), "too-early": shows("too-early"), "nameless": shows("nameless"),
    "other-names": shows("other-names"), "other-addresses": shows("other-addresses"),
    "plain": says(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"), "no-tls": says(b"220 mail.example ESMTP\r\n"),
    "old-tls": lambda connection: until_closed(secured(connection, minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1)),
    "breaks-off": breaks_off, "hangs-up": hangs_up, "breaks-off-later": breaks_off_later, "hangs-up-later": hangs_up_later,
    "half": answers_half, "half-and-hangs": answers_half_and_hangs,
}


def review(request, **response):
    version = request["apiVersion"]
    return 200, {"apiVersion": version, "kind": "AdmissionReview", "response": {"uid": request["request"]["uid"], **response}}


def patch(*operations):
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def add(path, value):
    return {"op": "add", "path": path, "value": value}


def counting(name):
    def answer(request):
        data = (request["request"].get("object") or {}).get("data") or {}
        return review(request, **patch(add(f"/data/{name}", str(int(data.get(name, 0)) + 1))))
    return answer


def hang(request):
    time.sleep(4)
    return review(request, allowed=True)


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "00000000-0000-0000-0000-000000000001"}
OWNERS = [OWNER, {**OWNER, "name": "other"}, OWNER, {**OWNER, "uid": "00000000-0000-0000-0000-000000000002"}, OWNER]

# What is asked of special cases, and not of each phase and failure policy.
SPECIAL = ("first", "second", "third", "hang", "unknown-spec", "owners", "other-manager", "no-managers", "wrong-managers", "wrong-fields-type")

BEHAVIOURS = {
    "allow": lambda request: review(request, allowed=True),
    "warn": lambda request: review(request, allowed=True, warnings=["first", 'with "quotes"']),
    "deny": lambda request: review(request, allowed=False),
    "deny-message": lambda request: review(request, allowed=False, status={"message": "because"}),
    "deny-reason": lambda request: review(request, allowed=False, status={"reason": "Forbidden"}),
    "deny-odd-reason": lambda request: review(request, allowed=False, status={"reason": "Odd", "message": "odd", "code": 418}),
    "deny-200": lambda request: review(request, allowed=False, status={"code": 200, "message": "fine"}),
    "deny-403": lambda request: review(request, allowed=False, status={"code": 403, "reason": "Forbidden", "message": "no"}),
    "deny-details": lambda request: review(request, allowed=False, status={"code": 422, "reason": "Invalid", "message": "bad", "details": {
        "causes": [{"reason": "FieldValueInvalid", "message": "bad", "field": "data.a"}]}}),
    "deny-warn": lambda request: review(request, allowed=False, warnings=["careful"], status={"message": "no"}),
    "label": lambda request: review(request, **patch(add("/metadata/labels", {"seen": "yes"}))),
    "data": lambda request: review(request, **patch(add("/data/b", "2"))),
    "no-change": lambda request: review(request, **patch(add("/data/a", "1"))),
    "remove": lambda request: review(request, **patch({"op": "remove", "path": "/data"})),
    "empty-patch": lambda request: review(request, **patch()),
    "unfit": lambda request: review(request, **patch({"op": "remove", "path": "/no/such"})),
    "failed-test": lambda request: review(request, **patch({"op": "test", "path": "/data/a", "value": "9"})),
    "invalid-object": lambda request: review(request, **patch(add("/data/bad key", "1"))),
    "wrong-type": lambda request: review(request, **patch(add("/data", ["a"]))),
    "unknown-field": lambda request: review(request, **patch(add("/unknown", 1))),
    "unknown-spec": lambda request: review(request, **patch(add("/spec/unknown", 1), add("/spec/size", 7))),
    "rename": lambda request: review(request, **patch(add("/metadata/name", "other"))),
    "no-type": lambda request: review(request, allowed=True, patch=base64.b64encode(b"[]").decode()),
    "no-patch": lambda request: review(request, allowed=True, patchType="JSONPatch"),
    "merge-type": lambda request: review(request, allowed=True, patchType="Merge", patch=base64.b64encode(b"{}").decode()),
    "empty-type": lambda request: review(request, allowed=True, patchType="", patch=base64.b64encode(b"[]").decode()),
    "object-patch": lambda request: review(request, allowed=True, patchType="JSONPatch", patch=base64.b64encode(b"{}").decode()),
    "wrong-uid": lambda request: (200, {"apiVersion": request["apiVersion"], "kind": "AdmissionReview", "response": {"uid": "other", "allowed": True}}),
    "no-uid": lambda request: (200, {"apiVersion": request["apiVersion"], "kind": "AdmissionReview", "response": {"allowed": True}}),
    "no-response": lambda request: (200, {"apiVersion": request["apiVersion"], "kind": "AdmissionReview"}),
    "other-version": lambda request: (200, {"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "response": {"uid": request["request"]["uid"], "allowed": True}}),
    "404": lambda request: (404, "not here"),
    "400": lambda request: (400, "bad"),
    "500": lambda request: (500, "oops"),
    "503": lambda request: (503, "later"),
    "redirect": lambda request: (302, ""),
    "html": lambda request: (200, "<html>oops</html>"),
    "empty": lambda request: (200, ""),
    "cut": lambda request: (200, '{"apiVersion": "admission.k8s.io/v1", "kind":'),
    "list": lambda request: (200, "[]"),
    "owners": lambda request: review(request, **patch(add("/metadata/ownerReferences", OWNERS))),
    "other-manager": lambda request: review(request, **patch(
        {"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "somebody"})),
    "no-managers": lambda request: review(request, **patch({"op": "remove", "path": "/metadata/managedFields"})),
    "wrong-managers": lambda request: review(request, **patch(add("/metadata/managedFields", [{"manager": "somebody"}]))),
    "wrong-fields-type": lambda request: review(request, **patch(
        {"op": "replace", "path": "/metadata/managedFields/0/fieldsType", "value": "FieldsV2"})),
    "hang": hang,
    "first": counting("first"),
    "second": counting("second"),
    "third": counting("third"),
}

MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}}
MAPS = "/api/v1/namespaces/{ns}/configmaps"
CORE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}


def create(**changes):
    return ("POST", MAPS, {**MAP, **changes})


def hook(behaviour, name=None, **fields):
    return {"behaviour": behaviour, "name": name or behaviour, "rules": [CORE], **fields}


def rule(**fields):
    return {"rules": [{**CORE, **fields}]}


def cases():
    """Name, mutating hooks, validating hooks, requests. A list of lists of hooks is several configurations."""
    crud = [create(), ("PUT", MAPS + "/m", {**MAP, "data": {"a": "2"}}),
            ("PATCH", MAPS + "/m", {"data": {"c": "3"}}), ("DELETE", MAPS + "/m", None)]
    for phase in ("mutating", "validating"):
        def case(name, hooks, requests=(create(),)):
            return (f"{phase}-{name}", [hooks] if phase == "mutating" else [], [hooks] if phase == "validating" else [], list(requests))
        for behaviour in BEHAVIOURS:
            if behaviour in SPECIAL:
                continue
            yield case(f"{behaviour}", [hook(behaviour)])
            if not behaviour.startswith("deny"):
                yield case(f"{behaviour}-ignored", [hook(behaviour, failurePolicy="Ignore")])
        yield case("hang", [hook("hang", timeoutSeconds=1)])
        yield case("hang-ignored", [hook("hang", timeoutSeconds=1, failurePolicy="Ignore")])
        yield case("every-write", [hook("allow")], crud)
        for operation in ("CREATE", "UPDATE", "DELETE", "CONNECT"):
            yield case(f"on-{operation.lower()}", [hook("allow", **rule(operations=[operation]))], crud)
        for name, fields in {
            "group": {"apiGroups": ["apps"]}, "any-group": {"apiGroups": ["*"]}, "version": {"apiVersions": ["v2"]},
            "any-resource": {"resources": ["*"]}, "subresources": {"resources": ["configmaps/*"]}, "only-status": {"resources": ["*/status"]},
            "everything": {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}, "namespaced": {"scope": "Namespaced"},
            "cluster": {"scope": "Cluster"},
        }.items():
            yield case(f"rule-{name}", [hook("allow", **rule(**fields))])
        labelled = create(metadata={"name": "m", "labels": {"app": "x"}})
        selector = {"objectSelector": {"matchLabels": {"app": "x"}}}
        yield case("selected", [hook("allow", **selector)], [labelled, ("PATCH", MAPS + "/m", {"metadata": {"labels": None}}), ("PATCH", MAPS + "/m", {"data": {"z": "1"}})])
        yield case("not-selected", [hook("allow", **selector)])
        dry = ("POST", MAPS + "?dryRun=All", MAP)
        yield case("dry-run", [hook("allow")], [dry])
        yield case("dry-run-on-dry-run", [hook("allow", sideEffects="NoneOnDryRun")], [dry])
        yield case("old-review", [hook("allow", admissionReviewVersions=["v1beta1"])])
        yield case("new-and-old-review", [hook("allow", admissionReviewVersions=["v3", "v1beta1", "v1"])])
        yield case("unknown-authority", [hook("allow", ca="other")])
        yield case("refused", [hook("allow", port=1)])
        yield case("service", [hook("allow", service="nobody")])
        yield case("request-timeout", [hook("allow")], [("POST", MAPS + "?timeout=2s", MAP)])
        for policy in ("Fail", "Ignore"):
            yield case(f"hang-request-timeout-{policy.lower()}", [hook("hang", failurePolicy=policy)], [("POST", MAPS + "?timeout=1s", MAP)])
        yield case("generate-name", [hook("allow")], [create(metadata={"generateName": "m-"})])
        yield case("apply", [hook("allow")], [("APPLY", MAPS + "/m?fieldManager=me", MAP), ("APPLY", MAPS + "/m?fieldManager=me", {**MAP, "data": {"a": "2"}})])
        yield case("collection", [hook("allow")], [create(), ("DELETE", MAPS + "?fieldSelector=metadata.name=m", None)])
    def fault(name, server=None, requests=(create(),), **fields):
        return (f"fault-{name}", [], [[hook("allow", fault=server or name, **fields)]], list(requests))
    for name in ("expired", "too-early", "nameless", "other-addresses"):
        yield fault(name, ca="authority")
    for name in ("other-names", "nameless"):
        yield fault(f"{name}-at-localhost", name, ca="authority", host="localhost")
    yield fault("twin-authority", "fine", ca="twin")
    yield fault("twin-rsa-authority", "fine", ca="twin-rsa")
    yield fault("twin-no-authority", "fine", ca="twin-leaf")
    yield fault("expired-and-unknown", "expired", ca="other")
    yield fault("other-addresses-and-unknown", "other-addresses", ca="other")
    for name in ("plain", "no-tls", "old-tls", "breaks-off", "hangs-up", "breaks-off-later", "hangs-up-later", "half"):
        yield fault(name)
    yield fault("half-and-hangs", timeoutSeconds=1)
    # A name that no resolver has to be asked for.
    yield ("fault-unknown-host", [], [[hook("allow", host=f"{'a' * 64}.example", port=443)]], [create()])
    twice = {"metadata": {"name": "m", "ownerReferences": OWNERS}}
    yield ("owners-twice", [], [], [create(**twice), ("PUT", MAPS + "/m", {**MAP, **twice}), ("GET", MAPS + "/m", None)])
    yield ("owners-twice-patched", [], [], [create(), ("PATCH", MAPS + "/m", {"metadata": {"ownerReferences": OWNERS}})])
    yield ("owners-twice-applied", [], [], [("APPLY", MAPS + "/m?fieldManager=me", {**MAP, **twice})])
    yield ("owners-twice-by-hook", [[hook("owners")]], [], [create(), ("PUT", MAPS + "/m", MAP), ("PATCH", MAPS + "/m", {"data": {"z": "1"}})])
    for behaviour in ("other-manager", "no-managers", "wrong-managers", "wrong-fields-type"):
        yield (f"managed-{behaviour}", [[hook(behaviour)]], [], [
            ("POST", MAPS + "?fieldManager=me", MAP), ("PATCH", MAPS + "/m?fieldManager=you", {"data": {"z": "1"}}),
            ("PUT", MAPS + "/m?fieldManager=you", {**MAP, "data": {"y": "1"}})])
    deny = hook("deny-message", "judge")
    yield ("two-refuse", [[hook("deny-message", "one"), hook("deny-reason", "two")]], [], [create()])
    yield ("mutated-then-judged", [[hook("data")]], [[hook("allow", "judge")]], [create()])
    yield ("refused-after-mutation", [[hook("data")]], [[deny]], [create(), ("GET", MAPS + "/m", None)])
    yield ("in-order", [[hook("first"), hook("second")], [hook("third")]], [], [create()])
    again = {"reinvocationPolicy": "IfNeeded"}
    for name, hooks in {
        "first": [hook("first", **again), hook("second")], "second": [hook("first"), hook("second", **again)],
        "both": [hook("first", **again), hook("second", **again)], "three": [hook("first", **again), hook("second"), hook("third", **again)],
        "unneeded": [hook("allow", "quiet", **again), hook("no-change", **again)], "quiet": [hook("allow", "quiet", **again), hook("data")],
    }.items():
        yield (f"again-{name}", [hooks], [], [create()])
    yield ("patch-on-delete", [[hook("label", **rule(operations=["DELETE"]))]], [], [create(), ("DELETE", MAPS + "/m", None)])
    things = "/apis/webhooks.watchkeeper.dev/{version}/namespaces/{ns}/things"
    thing = lambda version: ("POST", things.replace("{version}", version), {
        "apiVersion": f"webhooks.watchkeeper.dev/{version}", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1}})
    custom = {"apiGroups": ["webhooks.watchkeeper.dev"], "resources": ["things"], "operations": ["*"]}
    for policy in ("Exact", "Equivalent"):
        for version in ("v1", "v2"):
            yield (f"things-{policy.lower()}-{version}", [[hook("unknown-spec", matchPolicy=policy, rules=[{**custom, "apiVersions": ["v1"]}])]],
                   [[hook("allow", matchPolicy=policy, rules=[{**custom, "apiVersions": ["v1"]}])]], [thing(version)])
    deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}
    deployments = "/apis/apps/v1/namespaces/{ns}/deployments"
    anything = {"rules": [{"apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}]}
    yield ("subresources", [], [[hook("allow", **anything)]], [
        ("POST", deployments, deployment), ("PATCH", deployments + "/d/scale", {"spec": {"replicas": 3}}),
        ("PATCH", deployments + "/d/status", {"status": {"observedGeneration": 1}})])


class Api:
    def __init__(self):
        config = yaml.safe_load(pathlib.Path(os.environ["KUBECONFIG"]).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        url = urllib.parse.urlsplit(cluster["server"])
        self.place, self.headers, self.context = (url.hostname, url.port), {}, None
        if url.scheme == "https":
            self.context = ssl.create_default_context()
            self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
            if "client-certificate-data" in user or "client-certificate" in user:
                self.context.load_cert_chain(self.file(user, "client-certificate"), self.file(user, "client-key"))
        if "token" in user:
            self.headers["authorization"] = "Bearer " + user["token"]

    @staticmethod
    def file(user, field):
        if field in user:
            return user[field]
        import tempfile
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(base64.b64decode(user[field + "-data"]))
        return file.name

    def connection(self):
        return (http.client.HTTPSConnection(*self.place, context=self.context, timeout=60) if self.context
                else http.client.HTTPConnection(*self.place, timeout=60))

    def stream(self, path):
        """The events of a watch, up to its end; code and answer if it was refused."""
        connection = self.connection()
        connection.request("GET", path, None, self.headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return [json.loads(line) for line in text.splitlines()] if answer.status == 200 else (answer.status, json.loads(text))

    def send(self, method, path, body=None, content_type="application/json", accept=None):
        connection = self.connection()
        headers = {**self.headers, "content-type": content_type, **({"accept": accept} if accept else {})}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        warnings = answer.headers.get_all("warning") or []
        connection.close()
        try:
            return answer.status, json.loads(text), warnings
        except json.JSONDecodeError:
            return answer.status, text.decode(), warnings


AUTHORITIES = ("ca", "other", "authority", "twin", "twin-rsa", "twin-leaf")


def configuration(case, phase, index, hooks, port, faults):
    bundle = {name: base64.b64encode((KEYS / f"{name}.crt").read_bytes()).decode() for name in AUTHORITIES}
    entries = []
    for one in hooks:
        fields = {key: value for key, value in one.items() if key not in ("behaviour", "ca", "port", "service", "fault", "host")}
        path = f"/{case}/{one['name']}/{one['behaviour']}"
        at = faults[one["fault"]] if "fault" in one else one.get("port", port)
        place = {"url": f"https://{one.get('host', '127.0.0.1')}:{at}{path}", "caBundle": bundle[one.get("ca", "ca")]}
        if "service" in one:
            place = {"service": {"namespace": "default", "name": one["service"], "path": path}, "caBundle": bundle["ca"]}
        entries.append({"sideEffects": "None", "admissionReviewVersions": ["v1"], **fields, "name": f"{one['name']}.{phase}.dev", "clientConfig": place,
                        "namespaceSelector": {"matchLabels": {"case": case}}})
    kind = phase.capitalize() + "WebhookConfiguration"
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": f"{case}-{index}"}, "webhooks": entries}


def shown(value, port):
    """Without what differs from run to run."""
    text = json.dumps(value, sort_keys=True)
    text = text.replace(f":{port}/", ":PORT/")
    text = re.sub(r"(127\.0\.0\.1|localhost):\d{4,5}\b", r"\1:PORT", text)
    # Which resolver was asked.
    text = re.sub(r"(lookup \S+) on \S+:", r"\1:", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME", text)
    text = re.sub(r'"m-[a-z0-9]{5}"', '"m-RANDOM"', text)
    return json.loads(text)


def pruned(value):
    """Objects without who owns which field, and without what is null."""
    if isinstance(value, dict):
        return {key: pruned(item) for key, item in value.items() if key not in ("managedFields", "creationTimestamp", "uid", "resourceVersion") and item is not None}
    return [pruned(item) for item in value] if isinstance(value, list) else value


def noted(asked, port):
    hook, asked_review, query = asked
    request = asked_review["request"]
    return shown({"hook": hook, "query": query, "apiVersion": asked_review["apiVersion"], "fields": sorted(request),
                  **{field: pruned(request.get(field)) for field in (
                      "kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource", "name", "namespace", "operation", "dryRun", "options", "object", "oldObject")},
                  "user": sorted(set(request.get("userInfo", {})) - {"extra"})}, port)


def answered(code, body, warnings, port, shows_managers=False):
    about = {"code": code, "warnings": warnings}
    if shows_managers:
        about["managers"] = body["metadata"].get("managedFields")
    if body.get("kind") == "Status":
        about |= {field: body.get(field) for field in ("status", "reason", "message", "details")}
    else:
        about["object"] = pruned({key: value for key, value in body.items()})
    return shown(about, port)


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": THINGS},
    "spec": {"group": "webhooks.watchkeeper.dev", "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}, "versions": [
        {"name": version, "served": True, "storage": version == "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}, "kept": {"type": "string", "default": "yes"}}}}}}}
        for version in ("v1", "v2")]},
}


def run():
    api, hooks, faults, found = Api(), Hooks(), Faults().ports, {}
    everything = list(cases())
    api.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    for name, mutating, validating, _ in everything:
        code, body, _ = api.send("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": {"case": name}}})
        assert code == 201, body
        for phase, configurations in (("mutating", mutating), ("validating", validating)):
            for index, one in enumerate(configurations):
                code, body, _ = api.send("POST", f"/apis/{GROUP}/v1/{phase}webhookconfigurations", configuration(name, phase, index, one, hooks.port, faults))
                assert code == 201, body
    # A real server takes a moment until definitions and configurations are in force.
    time.sleep(float(os.environ.get("SETTLE", "0")))
    for name, _, _, requests in everything:
        rounds = []
        for method, path, body in requests:
            content_type = {"PATCH": "application/merge-patch+json", "APPLY": "application/apply-patch+yaml"}.get(method, "application/json")
            answer = api.send(method.replace("APPLY", "PATCH"), path.replace("{ns}", name), body, content_type)
            asked = [noted(one, hooks.port) for one in hooks.taken(name)]
            rounds.append({"request": f"{method} {path}", "answer": answered(*answer, hooks.port, name.startswith("managed-")), "asked": asked})
        found[name] = rounds
    for name, mutating, validating, _ in everything:
        for phase, configurations in (("mutating", mutating), ("validating", validating)):
            for index in range(len(configurations)):
                api.send("DELETE", f"/apis/{GROUP}/v1/{phase}webhookconfigurations/{name}-{index}")
    return found


def main(run, file, known):
    """Records what a server does with cases, or compares it with the record but for known differences."""
    if sys.argv[1:] == ["record"]:
        found = run()
        file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        print(f"{len(found)} cases recorded")
        return
    recorded, found, known = json.loads(file.read_text()), run(), known_differences(known)
    wrong = 0
    for name in sorted(recorded.keys() | found.keys()):
        if recorded.get(name) == found.get(name):
            if name in known:
                print(f"{name}: known.txt says that it differs, and it does not")
                wrong += 1
            continue
        if name in known:
            print(f"{name}: differs as known: {known[name]}")
            continue
        wrong += 1
        for one, other in zip(recorded.get(name) or [{}], found.get(name) or [{}]):
            if one != other:
                print(f"{name}:\n  recorded {json.dumps(one, sort_keys=True)}\n  found    {json.dumps(other, sort_keys=True)}")
    print(f"{len(found)} cases, {len(known)} differ as known, {wrong} differ otherwise")
    sys.exit(1 if wrong or not found else 0)


def known_differences(file):
    lines = file.read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


if __name__ == "__main__":
    main(run, HERE / "recorded.json", HERE / "known.txt")
