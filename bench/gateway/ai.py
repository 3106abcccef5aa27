#!/usr/bin/env python3
"""Measures calls of models through the gateway beside LiteLLM and Portkey, in one run.

    bench/gateway/run ai [--quick]

The provider is nginx with an answer of 1 KB of each dialect. `wrk` with 32 connections posts a prompt of 1 KB, with a key. Our gateway checks the key, maps
the model, reserves and settles limits of requests, tokens and money, counts, and writes a record of each call to a file; once to a provider of the same dialect, once to one of another. LiteLLM has
its master key and one worker; Portkey passes on what a header says. The CPU time of all processes of a gateway, from /proc, by the number of requests; the
gateways take turns, three times; medians are told. Memory is that of a gateway that has started, been asked once, and been idle for two seconds.

`bench/gateway/install` installs what it takes. WATCHKEEPER names our program; without it, a release build is made. Exit code 1: a limit of ours is not kept, calls have
no records, or a peer is missing or does not answer, so that there is nothing to compare with; with --quick, that is only said.
"""

import argparse
import hashlib
import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
TARGET = os.path.realpath(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")))
INSTALLED = os.path.join(TARGET, "bench", "gateway-peers")
KEY = "sk-bench"
TEXT = "y" * 700
PROMPT = "x" * 900
# Of ours, in microseconds of CPU a request, and megabytes.
LIMITS = {"watchkeeper, same dialect": 120, "watchkeeper, across dialects": 250}
IDLE_MB = 30


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def find(name, *folders):
    for folder in folders:
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")


def ask(port, headers, model):
    """The code and the body of an answer; code 0 if there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": PROMPT}]})
    try:
        connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


def family(pid):
    """A process and all below it."""
    found, parents = [pid], {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8") as file:
                    parents.setdefault(int(file.read().rsplit(") ", 1)[1].split()[1]), []).append(int(entry))
            except (FileNotFoundError, ProcessLookupError):
                continue
    for each in found:
        found.extend(parents.get(each, []))
    return found


def cpu_and_memory(pid):
    """CPU seconds and resident MB of a process and all below it."""
    ticks, pages = 0, 0
    for each in family(pid):
        try:
            with open(f"/proc/{each}/stat", encoding="utf-8") as file:
                fields = file.read().rsplit(") ", 1)[1].split()
        except FileNotFoundError:
            continue
        ticks += int(fields[11]) + int(fields[12])
        pages += int(fields[21])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGESIZE") / 1e6


def provider(folder, program, port):
    """nginx with one worker that answers as OpenAI and Anthropic do."""
    usage = {"prompt_tokens": 300, "completion_tokens": 200, "total_tokens": 500}
    chat = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": usage,
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": TEXT}}]}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": TEXT}],
               "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 300, "output_tokens": 200}}
    os.makedirs(folder)
    configuration = os.path.join(folder, "mock.conf")
    with open(configuration, "w", encoding="utf-8") as file:
        file.write(f"""
worker_processes 1; pid {folder}/pid; error_log {folder}/errors; daemon off;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 10000000; client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2;
  fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5; default_type application/json;
  server {{ listen 127.0.0.1:{port};
    location /v1/chat/completions {{ return 200 '{json.dumps(chat)}'; }}
    location /chat/completions {{ return 200 '{json.dumps(chat)}'; }}
    location /v1/messages {{ return 200 '{json.dumps(message)}'; }} }} }}""")
    return [program, "-p", folder, "-c", configuration]


class Watchkeeper:
    name, dialect = "watchkeeper, same dialect", "OpenAI"
    headers = {"authorization": f"Bearer {KEY}"}

    def __init__(self, folder, port, backend, program):
        objects = os.path.join(folder, "objects")
        os.makedirs(objects)
        documents = [
            ("GatewayListener", "web", {"port": port, "address": "127.0.0.1"}),
            ("AIGatewayConfig", "models", {"providers": [
                {"name": "one", "dialect": self.dialect, "url": f"http://127.0.0.1:{backend}"}]}),
            ("ModelContextMapping", "m", {"model": "m", "targets": [{"provider": "one", "model": "n"}],
                                          "prices": {"input": "1.00", "output": "2.00"}}),
            ("LLMGatewayPolicy", "keys", {
                "models": ["m"], "keys": [{"name": "bench", "sha256": hashlib.sha256(KEY.encode()).hexdigest()}],
                "limits": [{"per": "Minute", "requests": 10**9}, {"per": "Day", "tokens": 10**12},
                           {"per": "Month", "cost": "1000000.00", "by": "Policy"}]}),
        ]
        with open(os.path.join(objects, "objects.json"), "w", encoding="utf-8") as file:
            for kind, name, spec in documents:
                version = "gateway.watchkeeper.dev/v1alpha1"
                file.write(json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}) + "\n---\n")
        os.rename(os.path.join(objects, "objects.json"), os.path.join(objects, "objects.yaml"))
        self.records = os.path.join(folder, "records")
        self.command = [program, "gateway", "--from", f"file:{objects}", "--admin", "off", "--records", self.records]
        self.environment = {}


class WatchkeeperAcross(Watchkeeper):
    name, dialect = "watchkeeper, across dialects", "Anthropic"


class LiteLLM:
    name = "LiteLLM"
    headers = {"authorization": f"Bearer {KEY}"}

    def __init__(self, folder, port, backend, program):
        configuration = os.path.join(folder, "config.yaml")
        with open(configuration, "w", encoding="utf-8") as file:
            json.dump({"model_list": [{"model_name": "m", "litellm_params": {
                "model": "openai/n", "api_base": f"http://127.0.0.1:{backend}/v1", "api_key": "none"}}],
                "general_settings": {"master_key": KEY}}, file)
        self.command = [program, "--config", configuration, "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
        self.environment = {"LITELLM_TELEMETRY": "False", "LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


class Portkey:
    name = "Portkey"

    def __init__(self, folder, port, backend, program):
        self.headers = {"authorization": f"Bearer {KEY}", "x-portkey-provider": "openai",
                        "x-portkey-custom-host": f"http://127.0.0.1:{backend}/v1"}
        self.command = ["node", program, f"--port={port}", "--headless"]
        self.environment = {"NODE_ENV": "production", "TRUSTED_CUSTOM_HOSTS": "127.0.0.1,localhost"}


def load(port, seconds, headers, folder):
    """Requests that wrk got answers to, and how many were errors."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": PROMPT}]})
    script = os.path.join(folder, "post.lua")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"wrk.method = 'POST'\nwrk.body = '{body}'\nwrk.headers['Content-Type'] = 'application/json'\n")
        for name, value in headers.items():
            file.write(f"wrk.headers['{name}'] = '{value}'\n")
        file.write("done = function(s, l, r) io.write(string.format('RESULT %d %d %d\\n', s.requests, s.duration, "
                   "s.errors.connect + s.errors.read + s.errors.write + s.errors.status + s.errors.timeout)) end\n")
    command = ["wrk", "-t1", "-c32", f"-d{seconds}s", "-s", script, f"http://127.0.0.1:{port}/v1/chat/completions"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    requests, microseconds, errors = (
        int(word) for word in next(line for line in said.splitlines() if line.startswith("RESULT")).split()[1:])
    return requests, microseconds / 1e6, errors


def measure(kind, program, backend, folder, seconds):
    """CPU microseconds a request, requests a second, idle MB, MB under load, errors."""
    os.makedirs(folder)
    port = free_port()
    peer = kind(folder, port, backend, program)
    with open(os.path.join(folder, "log"), "ab") as log:
        process = subprocess.Popen(peer.command, stdout=log, stderr=log, cwd=folder, start_new_session=True,
                                   env={**os.environ, **peer.environment})
    try:
        end = time.monotonic() + 120
        while True:
            code, body = ask(port, peer.headers, "m")
            if code == 200 and TEXT.encode() in body:
                break
            if time.monotonic() > end or process.poll() is not None:
                raise RuntimeError(f"does not answer: {code} {body[:200]!r}")
            time.sleep(0.05)
        time.sleep(2)
        _, idle = cpu_and_memory(process.pid)
        load(port, 1, peer.headers, folder)
        before, _ = cpu_and_memory(process.pid)
        requests, taken, errors = load(port, seconds, peer.headers, folder)
        after, memory = cpu_and_memory(process.pid)
        run = (after - before) / max(requests, 1) * 1e6, requests / taken, idle, memory, errors
    finally:
        # Its own session: nobody else is in it.
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    # Accounting is a part of what is measured: one that stops has written all records, but those of files that were removed.
    if hasattr(peer, "records") and not any(os.path.getsize(os.path.join(peer.records, name)) for name in os.listdir(peer.records)):
        raise RuntimeError("has written no records")
    return run


def said(*command):
    """The last line that a program says on its version."""
    try:
        lines = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    lines = (lines.stdout + lines.stderr).strip().splitlines()
    return lines[-1].strip() if lines else "unknown"


def versions(program, nginx, litellm, portkey):
    """What is measured, and by what."""
    yield "watchkeeper", said(program, "--version")
    yield "nginx", said(nginx, "-v")
    # wrk has no option for it that ends well.
    told = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False).stdout.splitlines()
    yield "wrk", told[0] if told else "unknown"
    if litellm:
        python = os.path.join(os.path.dirname(os.path.realpath(litellm)), "python")
        yield "LiteLLM", said(python, "-c", "from importlib.metadata import version; print(version('litellm'))")
    if portkey:
        with open(os.path.join(os.path.dirname(portkey), "..", "package.json"), encoding="utf-8") as file:
            yield "Portkey", json.load(file)["version"]
        yield "node", said("node", "--version")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="little of everything, to see that it works")
    arguments = arguments.parse_args()
    program = os.environ.get("WATCHKEEPER")
    if not program:
        subprocess.run([os.environ.get("CARGO", "cargo"), "build", "--release", "-p", "watchkeeper-cli"], cwd=ROOT, check=True)
        program = os.path.join(TARGET, "release", "watchkeeper")
    nginx = find("nginx", os.path.join(INSTALLED, "bin"))
    if not nginx or not shutil.which("wrk"):
        sys.exit("nginx and wrk are missing, which are needed for every row: bench/gateway/install")
    portkey = os.path.join(INSTALLED, "node_modules", "@portkey-ai", "gateway", "build", "start-server.js")
    portkey = portkey if os.path.exists(portkey) else None
    litellm = find("litellm", os.path.join(INSTALLED, "litellm", "bin"))
    for name, version in versions(program, nginx, litellm, portkey):
        print(f"{name}: {version}")
    found = [(Watchkeeper, program), (WatchkeeperAcross, program), (LiteLLM, litellm), (Portkey, portkey)]
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        backend = free_port()
        mock = subprocess.Popen(provider(os.path.join(folder, "mock"), nginx, backend), stderr=subprocess.DEVNULL)
        try:
            for turn in range(1 if arguments.quick else 3):
                for kind, path in found:
                    if not path:
                        rows.setdefault(kind.name, "is not installed: bench/gateway/install")
                        continue
                    try:
                        run = measure(kind, path, backend, os.path.join(folder, f"{kind.__name__}-{turn}"), 2 if arguments.quick else 10)
                        if not isinstance(rows.setdefault(kind.name, []), str):
                            rows[kind.name].append(run)
                    except RuntimeError as error:
                        rows[kind.name] = str(error)
        finally:
            mock.terminate()
            mock.wait()
    print("| gateway | CPU µs per call | calls/s | idle MB | MB under load | errors |\n|---|---|---|---|---|---|")
    broken = []
    for name, runs in rows.items():
        if isinstance(runs, str):
            print(f"| {name} | {runs} | | | | |")
            broken.append(f"{name}: {runs}")
            continue
        cpu, rate, idle, memory = (statistics.median(run[at] for run in runs) for at in range(4))
        errors = sum(run[4] for run in runs)
        print(f"| {name} | {cpu:,.0f} | {rate:,.0f} | {idle:.0f} | {memory:.0f} | {errors} |")
        if name in LIMITS:
            if cpu > LIMITS[name]:
                broken.append(f"{name}: {cpu:.0f} µs a call, not {LIMITS[name]}")
            if idle > IDLE_MB:
                broken.append(f"{name}: {idle:.0f} MB idle, not {IDLE_MB}")
            if errors:
                broken.append(f"{name}: {errors} errors")
    print("\n" + "\n".join(f"NOT KEPT: {what}" for what in broken) if broken else "\nall limits are kept")
    sys.exit(1 if broken and not arguments.quick else 0)


main()
