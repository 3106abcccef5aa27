"""What scenarios look at."""


def condition(one, kind):
    """The status of a condition of an object, or none."""
    return next((each["status"] for each in one.get("status", {}).get("conditions", []) if each["type"] == kind), None)


def named(server, *arguments):
    """The names of the objects that there are."""
    return server.kubectl("get", *arguments, "--ignore-not-found", "-o", "name").split()


def events(server, namespace, of=None):
    """What was told about objects of these kinds: each thing once."""
    found = set()
    for one in server.get("events", "-n", namespace)["items"]:
        about = one["involvedObject"]
        if of is None or about["kind"] in of:
            found.add(f"{one['type']} {one['reason']} {about['kind']}/{about.get('name')}: {one.get('message')}")
    return sorted(found)
