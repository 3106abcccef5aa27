"""What is different on every run taken out of what was seen, so that the rest can be compared."""

import json
import re

WORDS = [
    (re.compile(r"X509SHA256=[0-9a-f]{64}"), "X509SHA256=<certificate>"),
    (re.compile(r"\b10\.0\.\d+\.\d+\b"), "<cluster IP>"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| ?[+-]\d\d:?\d\d( UTC)?)?"), "<time>"),
    (re.compile(r"(127\.0\.0\.1|localhost):\d+"), "<address>"),
    (re.compile(r"\b\d+(\.\d+)?(ms|µs|ns|s)\b"), "<duration>"),
    (re.compile(r"\d{5,}"), "<number>"),
]
# The fields of metadata that no two servers have in common.
OWN = ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"]
# Who does the work of kube-controller-manager on either server.
CONTROLLERS = {"kube-controller-manager": "<controllers>", "watchkeeper-workloads": "<controllers>"}
# Conflicts are races of a program with itself; how often it loses them says little.
RACES = {409}
# The real server says so (429) to whoever is quick to watch a kind that is new.
TOO_EARLY = "storage is (re)initializing"


def words(text):
    for pattern, word in WORDS:
        text = pattern.sub(word, text)
    return text


def value(one):
    if isinstance(one, dict):
        return {words(key): value(inner) for key, inner in one.items()}
    if isinstance(one, list):
        return [value(inner) for inner in one]
    return words(one) if isinstance(one, str) else one


def managed(fields):
    """Who manages what; not when, nor in which order."""
    kept = [{**{key: inner for key, inner in entry.items() if key != "time"}, "manager": CONTROLLERS.get(entry["manager"], entry["manager"])} for entry in fields]
    return sorted((value(entry) for entry in kept), key=lambda entry: json.dumps(entry, sort_keys=True))


def objects(all):
    masked = {}
    for name, one in all.items():
        if isinstance(one, dict) and "metadata" in one:
            metadata = {key: inner for key, inner in one["metadata"].items() if key not in OWN}
            fields = managed(metadata.pop("managedFields", []))
            one = value({**one, "metadata": metadata})
            one["metadata"]["managedFields"] = fields
        else:
            one = value(one)
        masked[name] = one
    return masked


# How a line of a log says that it is an error or a warning: klog, logfmt, JSON.
COMPLAINT = re.compile(r'^[EWF]\d{4} |level="?(error|warn|warning|fatal)\b|"level": ?"(error|warn|warning|fatal)"', re.IGNORECASE)
KLOG = re.compile(r"^([EWF])\d{4} [\d:.]+ +\d+ ")


def complaints(logs):
    found = []
    for program, lines in logs.items():
        for line in lines:
            if COMPLAINT.search(line):
                line = KLOG.sub(r"\1 ", line)
                line = re.sub(r"\b(ts|time)=\S+ |\"(ts|time)\": ?\"[^\"]*\",?", "", line)
                found.append(f"{program}: {words(line)}")
    return sorted(set(found))


def message(body):
    """What an error says: the message of a Status, or what can be read of it if it is not JSON."""
    try:
        return json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        return " ".join(re.findall(r"[ -~]{6,}", body))


def place(request):
    path = re.sub(r"/[0-9a-z-]+-[a-z0-9]{5}(?=/|$)", "/<generated>", request["path"])
    watch = " (watch)" if "watch=" in request.get("query", "") else ""
    return f"{request['method']} {path}{watch}"


def refusals(requests):
    """Requests that were not answered as the program wished."""
    refused = [one for one in requests if one["code"] >= 400 and one["code"] not in RACES and TOO_EARLY not in one.get("error", "")]
    return sorted({words(f"{place(one)}: {one['code']} {message(one.get('error', ''))}") for one in refused})


def warnings(requests):
    return sorted({words(f"{place(one)}: {warning}") for one in requests for warning in one.get("warnings") or []})
