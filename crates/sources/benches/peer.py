"""The peer of the benchmark of files: watchdog tells of writes, PyYAML reads them.

    python peer.py DIRECTORY WRITES

DIRECTORY has YAML files. Prints JSON: seconds to read and parse all of them, and the seconds from the close of each of so many writes to the
handler, sorted: when watchdog says so, and when the document was read and parsed after that.
"""

import json
import os
import queue
import sys
import time

import yaml
from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer


def parse(path):
    with open(path, "rb") as file:
        return list(yaml.load_all(file, Loader=yaml.CSafeLoader))


def scan(directory):
    start = time.perf_counter()
    documents = 0
    for root, _, names in os.walk(directory):
        for name in names:
            documents += len(parse(os.path.join(root, name)))
    return documents, time.perf_counter() - start


class Handler(FileSystemEventHandler):
    def __init__(self):
        self.told = queue.SimpleQueue()

    def on_closed(self, event):
        heard = time.perf_counter()
        self.told.put((heard, parse(event.src_path)[0], time.perf_counter()))


def latencies(directory, writes):
    names = sorted(os.listdir(directory))[:100]
    texts = {name: open(os.path.join(directory, name)).read() for name in names}
    handler, observer = Handler(), Observer()
    observer.schedule(handler, directory, recursive=True)
    observer.start()
    heard, parsed = [], []
    for value in range(writes):
        name, weight = names[value % len(names)], 1_000_000 + value
        lines = ["  weight: %d" % weight if line.startswith("  weight: ") else line for line in texts[name].split("\n")]
        with open(os.path.join(directory, name), "w") as file:
            file.write("\n".join(lines))
        closed = time.perf_counter()
        while True:
            at, document, done = handler.told.get(timeout=60)
            if document["spec"]["weight"] == weight:
                break
        heard.append(at - closed)
        parsed.append(done - closed)
    observer.stop()
    return sorted(heard), sorted(parsed)


documents, seconds = scan(sys.argv[1])
heard, parsed = latencies(sys.argv[1], int(sys.argv[2])) if int(sys.argv[2]) else ([], [])
print(json.dumps({"documents": documents, "seconds": seconds, "heard": heard, "parsed": parsed}))
