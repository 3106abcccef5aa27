"""Gateways: how each is configured with N routes, started, and told of a change.

All of them listen on a port of the loopback address and send requests for /rN/ and below to one backend.
"""

import glob
import json
import os
import shutil
import signal
import subprocess
import time


def find(name, *folders):
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, name))):
            if os.access(path, os.X_OK):
                return path
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")


class Peer:
    """One gateway. A subclass writes the configuration and says how a change is brought to a process that runs."""

    name = ""
    mechanism = ""

    def __init__(self, folder, port, backend, program):
        self.folder, self.port, self.backend, self.program = folder, port, backend, program
        self.process = None
        os.makedirs(folder, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        """Writes a file at once: nobody sees half of it."""
        new = self.path("." + name + ".new")
        with open(new, "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(new, self.path(name))

    def start(self, routes):
        self.configure(routes)
        log = open(self.path("log"), "ab")
        self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.folder, start_new_session=True)

    def stop(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def processes(self):
        """Those of its session: all that it has started, too."""
        session, found = self.process.pid, []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    if os.getsid(int(entry)) == session:
                        found.append(int(entry))
                except (ProcessLookupError, PermissionError):
                    pass
        return found

    def add(self, routes):
        self.configure(routes)
        self.reload()

    def configure(self, routes):
        raise NotImplementedError

    def command(self):
        raise NotImplementedError

    def reload(self):
        """Brings the files to the process. By default it watches them."""

    def settle(self):
        """Waits until it does nothing any more that comes from its start. By default it is done when it serves."""


class Watchkeeper(Peer):
    name, mechanism = "watchkeeper", "files"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.written = 0

    def configure(self, routes):
        os.makedirs(self.path("routes"), exist_ok=True)
        if not self.written:
            self.write("routes/a.json", self.object("GatewayListener", "web", {"port": self.port}))
            self.write("routes/b.json", self.object("GatewayBackend", "mock", {"url": f"http://127.0.0.1:{self.backend}"}))
        # What is there is not written again: one route is one object.
        for number in range(self.written, routes):
            self.write(f"routes/r{number}.json", self.route(number))
        self.written = max(self.written, routes)

    def write(self, name, text):
        new = self.path(".new")
        with open(new, "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(new, self.path(name))

    def object(self, kind, name, spec):
        version = "gateway.watchkeeper.dev/v1alpha1"
        return json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})

    def route(self, number):
        rule = {"matches": [{"path": {"prefix": f"/r{number}"}}], "backends": [{"name": "mock"}]}
        return self.object("GatewayRoute", f"r{number}", {"rules": [rule]})

    def command(self):
        return [self.program, "gateway", "--from", "file:" + self.path("routes"), "--admin", "off", "--log", "warn"]


class WatchkeeperCluster(Watchkeeper):
    """The same with routes in an API server: what a person does with kubectl."""

    name, mechanism = "watchkeeper", "API server"

    def start(self, routes):
        log = open(self.path("server-log"), "ab")
        self.kubeconfig = self.path("kubeconfig")
        self.server = subprocess.Popen(
            [self.program, "serve", "--in-memory", "--listen", "127.0.0.1:0", "--kubeconfig", self.kubeconfig],
            stdout=log, stderr=log, start_new_session=True)
        end = time.monotonic() + 30
        while not os.path.exists(self.kubeconfig) and time.monotonic() < end:
            time.sleep(0.01)
        self.connect()
        definitions = subprocess.run([self.program, "gateway", "crds"], capture_output=True, text=True, check=True).stdout
        for definition in definitions.split("---\n")[1:]:
            self.send("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition, "application/yaml")
        super().start(routes)

    def connect(self):
        import base64
        import http.client
        import re
        import ssl
        import urllib.parse

        with open(self.kubeconfig, encoding="utf-8") as file:
            text = file.read()
        field = lambda name: re.search(rf'"?{name}"?: *"?([^"\s,]+)', text).group(1)
        context = ssl.create_default_context(cadata=base64.b64decode(field("certificate-authority-data")).decode())
        self.token = field("token")
        address = urllib.parse.urlparse(field("server"))
        self.api = http.client.HTTPSConnection(address.hostname, address.port, context=context)

    def send(self, path, text, kind="application/json"):
        end = time.monotonic() + 10
        while True:
            self.api.request("POST", path, text, {"Content-Type": kind, "Authorization": "Bearer " + self.token})
            answer = self.api.getresponse()
            said = answer.read()
            if answer.status in (200, 201, 409):
                return
            # A kind that was defined a moment ago may not be served yet.
            if answer.status != 404 or time.monotonic() > end:
                raise RuntimeError(f"{path}: {answer.status} {said[:200]}")

    def configure(self, routes):
        below = "/apis/gateway.watchkeeper.dev/v1alpha1/namespaces/default/gateway"
        if not self.written:
            self.send(below + "listeners", self.object("GatewayListener", "web", {"port": self.port}))
            self.send(below + "backends", self.object("GatewayBackend", "mock", {"url": f"http://127.0.0.1:{self.backend}"}))
        for number in range(self.written, routes):
            self.send(below + "routes", self.route(number))
        self.written = max(self.written, routes)

    def settle(self):
        """Waits until the statuses of all routes are written, and nothing is for a second: that of each route is a write, and comes back as a change."""
        end, before, since = time.monotonic() + 300, None, 0.0
        while True:
            routes = self.routes()
            now = time.monotonic()
            if any(not self.is_programmed(route) for route in routes):
                before = None
            else:
                versions = {route["metadata"]["name"]: route["metadata"]["resourceVersion"] for route in routes}
                if versions != before:
                    before, since = versions, now
                elif now - since >= 1:
                    return
            if now > end:
                raise RuntimeError("the statuses of the routes are not written")
            time.sleep(0.25)

    def routes(self):
        """All of them, as the API server has them."""
        path, routes, token = "/apis/gateway.watchkeeper.dev/v1alpha1/namespaces/default/gatewayroutes?limit=1000", [], ""
        while True:
            self.api.request("GET", path + token, headers={"Authorization": "Bearer " + self.token})
            answer = self.api.getresponse()
            said = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{path}: {answer.status} {said[:200]}")
            page = json.loads(said)
            routes += page["items"]
            if not page["metadata"].get("continue"):
                return routes
            token = "&continue=" + page["metadata"]["continue"]

    def is_programmed(self, route):
        conditions = route.get("status", {}).get("conditions", [])
        return any(condition["type"] == "Programmed" and condition["status"] == "True" for condition in conditions)

    def command(self):
        return [self.program, "gateway", "--from", "kubernetes", "--kubeconfig", self.kubeconfig, "--admin", "off", "--log", "warn"]

    def stop(self):
        super().stop()
        self.server.terminate()
        self.server.wait()


class Nginx(Peer):
    name, mechanism = "nginx", "SIGHUP"

    def configure(self, routes):
        locations = "".join(f"location /r{n}/ {{ proxy_pass http://mock; }}\n" for n in range(routes))
        self.write("nginx.conf", f"""
worker_processes auto; pid {self.path('pid')}; error_log {self.path('errors')}; daemon off;
events {{ worker_connections 4096; }}
http {{
  access_log off; server_tokens off; keepalive_requests 1000000;
  client_body_temp_path {self.path('t1')}; proxy_temp_path {self.path('t2')}; fastcgi_temp_path {self.path('t3')};
  uwsgi_temp_path {self.path('t4')}; scgi_temp_path {self.path('t5')};
  upstream mock {{ server 127.0.0.1:{self.backend}; keepalive 64; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{self.port};
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $remote_addr;
{locations}    location / {{ return 404; }}
  }}
}}""")

    def command(self):
        return [self.program, "-p", self.folder, "-c", self.path("nginx.conf")]

    def reload(self):
        os.kill(self.process.pid, signal.SIGHUP)


class Haproxy(Peer):
    name, mechanism = "haproxy", "SIGUSR2, sockets passed"

    def configure(self, routes):
        self.write("map", "".join(f"/r{n}/ mock\n" for n in range(routes)))
        self.write("haproxy.cfg", f"""
global
  maxconn 4096
  stats socket {self.path('sock')} mode 600 level admin expose-fd listeners
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option forwardfor
frontend web
  bind 127.0.0.1:{self.port}
  http-request return status 404 unless {{ path,map_beg({self.path('map')}) -m found }}
  default_backend mock
backend mock
  http-reuse always
  server one 127.0.0.1:{self.backend}
""")

    def command(self):
        return [self.program, "-W", "-f", self.path("haproxy.cfg")]

    def reload(self):
        os.kill(self.process.pid, signal.SIGUSR2)


class HaproxySocket(Haproxy):
    """The same with its map changed in memory: what HAProxy is best at. The file is not written, so that a restart forgets it."""

    mechanism = "add map by socket"

    def add(self, routes):
        import socket

        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.path("sock"))
            connection.sendall(f"add map {self.path('map')} /r{routes - 1}/ mock\n".encode())
            said = connection.recv(4096).strip()
            if said:
                raise RuntimeError(said.decode())


class Hyper(Peer):
    """The least that a proxy on hyper can be: it has no routes, and is there for its CPU time and its latency."""

    name, mechanism = "hyper", ""

    def configure(self, routes):
        pass

    def command(self):
        return [self.program, "proxy", f"127.0.0.1:{self.port}", f"127.0.0.1:{self.backend}"]


class Caddy(Peer):
    name, mechanism = "caddy", "admin API"

    def config(self, routes):
        proxy = {"handler": "reverse_proxy", "upstreams": [{"dial": f"127.0.0.1:{self.backend}"}]}
        table = [{"match": [{"path": [f"/r{n}/*"]}], "handle": [proxy], "terminal": True} for n in range(routes)]
        table.append({"handle": [{"handler": "static_response", "status_code": 404}]})
        server = {"listen": [f"127.0.0.1:{self.port}"], "routes": table, "automatic_https": {"disable": True}}
        return {
            "admin": {"listen": f"unix/{self.path('admin')}"},
            "apps": {"http": {"servers": {"web": server}}},
        }

    def configure(self, routes):
        self.write("caddy.json", json.dumps(self.config(routes)))

    def command(self):
        return [self.program, "run", "--config", self.path("caddy.json")]

    def reload(self):
        import http.client
        import socket

        connection = http.client.HTTPConnection("127.0.0.1")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.path("admin"))
        with open(self.path("caddy.json"), "rb") as file:
            connection.request("POST", "/load", file.read(), {"Content-Type": "application/json"})
        connection.getresponse().read()


class Envoy(Peer):
    name, mechanism = "envoy", "RDS file"

    def configure(self, routes):
        table = [{"match": {"path_separated_prefix": f"/r{n}"}, "route": {"cluster": "mock"}} for n in range(routes)]
        hosts = [{"name": "all", "domains": ["*"], "routes": table}]
        resource = {
            "@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
            "name": "routes",
            "virtual_hosts": hosts,
        }
        self.write("rds.json", json.dumps({"version_info": str(time.time_ns()), "resources": [resource]}))
        source = {"path_config_source": {"path": self.path("rds.json")}}
        manager = {
            "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "web",
            "rds": {"route_config_name": "routes", "config_source": source},
            "http_filters": [
                {
                    "name": "router",
                    "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
                }
            ],
        }
        address = lambda port: {"socket_address": {"address": "127.0.0.1", "port_value": port}}
        endpoint = {"endpoint": {"address": address(self.backend)}}
        self.write("envoy.json", json.dumps({
            "node": {"id": "bench", "cluster": "bench"},
            "static_resources": {
                "listeners": [{
                    "name": "web",
                    "address": address(self.port),
                    "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
                }],
                "clusters": [{
                    "name": "mock",
                    "load_assignment": {"cluster_name": "mock", "endpoints": [{"lb_endpoints": [endpoint]}]},
                }],
            },
        }))

    def command(self):
        return [self.program, "-c", self.path("envoy.json"), "--log-level", "error", "--use-dynamic-base-id"]


class Traefik(Peer):
    name, mechanism = "traefik", "files, throttled to 10 ms"

    def configure(self, routes):
        routers = {f"r{n}": {"rule": f"PathPrefix(`/r{n}/`)", "service": "mock"} for n in range(routes)}
        servers = [{"url": f"http://127.0.0.1:{self.backend}"}]
        services = {"mock": {"loadBalancer": {"servers": servers}}}
        os.makedirs(self.path("dynamic"), exist_ok=True)
        new = self.path("new")
        with open(new, "w", encoding="utf-8") as file:
            json.dump({"http": {"routers": routers, "services": services}}, file)
        os.rename(new, self.path("dynamic/routes.yaml"))
        self.write("traefik.yaml", json.dumps({
            "entryPoints": {"web": {"address": f"127.0.0.1:{self.port}"}},
            "providers": {
                "providersThrottleDuration": "10ms",
                "file": {"directory": self.path("dynamic"), "watch": True},
            },
            "log": {"level": "ERROR"},
        }))

    def command(self):
        return [self.program, "--configFile=" + self.path("traefik.yaml")]


def known(watchkeeper, hyper, installed):
    """The gateways that are there, as (class, program)."""
    bins = [os.path.join(installed, "bin"), os.path.join(installed, "lib", "*", "site-packages", "*"),
            os.path.join(installed, "lib", "*", "site-packages", "*", "*")]
    found = [(WatchkeeperCluster, watchkeeper), (Watchkeeper, watchkeeper), (Hyper, hyper)]
    for peer in (Nginx, Haproxy, HaproxySocket, Envoy, Caddy, Traefik):
        program = find(peer.name, *bins)
        if program:
            found.append((peer, program))
    return found
