"""The two servers that programs are run on, with the same surroundings."""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import kubelet

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# How long a scenario waits for one thing.
TIMEOUT = 90


class Failed(Exception):
    """Something that a scenario needs did not happen."""


class Server:
    """A running server and the programs that work on it, from `with` to its end.

    Programs reach it through the recorder; what a scenario asks for itself does not count.
    """

    def __init__(self, folder):
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.recorded = folder / "recorded.kubeconfig"
        self.processes = []

    def __enter__(self):
        self.begin()
        plain = self.folder / "kubeconfig.json"
        plain.write_text(self.kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
        program = pathlib.Path(os.environ["PROGRAMS"]) / "recorder"
        recorder = subprocess.Popen([program, plain, self.recorded, self.folder / "requests"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.processes.append(recorder)
        recorder.stdout.readline()
        return self

    def __exit__(self, *_):
        # The server goes last: what a program says of a server that is gone is no complaint.
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.end()

    def begin(self):
        raise NotImplementedError

    def end(self):
        pass

    def start(self, name, *arguments, **environment):
        """Starts a program of others, told to use the server by KUBECONFIG; its log is `name`.log."""
        program = pathlib.Path(os.environ["PROGRAMS"]) / name
        log = open(self.folder / f"{name}.log", "a")
        arguments = [str(word).replace("{kubeconfig}", str(self.recorded)) for word in arguments]
        environment = {**os.environ, "KUBECONFIG": str(self.recorded), **environment}
        process = subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.folder)
        self.processes.append(process)
        return process

    def run(self, *command, check=True, recorded=True, **environment):
        """What a command says that ends by itself."""
        kubeconfig = self.recorded if recorded else self.kubeconfig
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(self.folder), **environment}
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment, cwd=self.folder)
        if check and done.returncode:
            raise Failed(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
        return done.stdout + ("" if check else done.stderr)

    def kubectl(self, *arguments, **more):
        return self.run("kubectl", *arguments, recorded=False, **more)

    def apply(self, *documents):
        """Applies objects, given as dictionaries."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})
        done = subprocess.run(["kubectl", "apply", "--server-side", "-f", "-"], input=text, capture_output=True, text=True, env={**os.environ, "KUBECONFIG": str(self.kubeconfig)})
        if done.returncode:
            raise Failed(done.stderr)

    def get(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def wait(self, what, condition):
        """Waits until a condition holds, which gets the server. What it raises is as if it did not hold."""
        end = time.monotonic() + TIMEOUT
        problem = "it does not hold"
        while time.monotonic() < end:
            try:
                if condition(self):
                    return
            except (Failed, KeyError, IndexError, TypeError) as error:
                problem = repr(error)
            time.sleep(0.3)
        raise Failed(f"waited {TIMEOUT} s for: {what}; {problem}")

    def logs(self):
        return {file.stem: file.read_text(errors="replace").splitlines() for file in self.folder.glob("*.log") if file.stem not in self.OWN_LOGS}

    def requests(self):
        return [json.loads(line) for line in open(self.folder / "requests")]


class Ours(Server):
    """`watchkeeper up`: the server, with its own controllers and simulated workloads."""

    OWN_LOGS = ["up"]

    def begin(self):
        log = open(self.folder / "up.log", "w")
        command = [os.environ["WATCHKEEPER"], "up", "--no-gateway", "--port", "0", "--metrics-port", "0", "--data-dir", self.folder / "data"]
        self.processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        self.kubeconfig = self.folder / "data" / "kubeconfig"
        self.wait("our server", lambda _: "Ctrl-C" in (self.folder / "up.log").read_text())


class Real(Server):
    """kube-apiserver with etcd and kube-controller-manager, and pods that are said to run."""

    OWN_LOGS = []

    def begin(self):
        environment = {**os.environ, "PEERS_CONTROLLERS": "*", "PEERS_DISABLED": ""}
        # Not a pipe: what it starts would keep it open.
        log = open(self.folder / "start", "w")
        if subprocess.run([ROOT / "bench/peers/start", self.kubeconfig, self.folder / "peers"], env=environment, stdout=log, stderr=log).returncode:
            raise Failed((self.folder / "start").read_text())
        self.wait("the account of pods", lambda _: self.get("serviceaccount", "default"))
        self.stop = threading.Event()
        self.pods = threading.Thread(target=kubelet.run, args=(json.loads(self.kubectl("config", "view", "--raw", "--flatten", "-o", "json")), self.folder, self.stop))
        self.pods.start()

    def end(self):
        self.stop.set()
        self.pods.join()
        subprocess.run([ROOT / "bench/peers/stop", self.folder / "peers"], check=True)


KINDS = {"ours": Ours, "real": Real}
