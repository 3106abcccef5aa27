"""cert-manager: its chart, a self-signed authority, certificates signed by it, one for an Ingress, one that is refused, one that is issued again.

After "Bootstrapping CA Issuers" and "Annotated Ingress resource" of its documentation. The chart makes Deployments, whose pods are simulated; the
programs themselves run beside them.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess

from look import condition, events, named

PROGRAMS = ["cert-manager-controller", "cert-manager-cainjector", "cert-manager-webhook", "helm"]
SOURCES = {"CERT_MANAGER": "github.com/cert-manager/cert-manager@v1.11.5"}
WEBHOOK = "localhost:10260"


def resource(kind, name, namespace=None, **more):
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": metadata, **more}


def issuer(kind, name):
    return {"name": name, "kind": kind, "group": "cert-manager.io"}


AUTHORITY = resource(
    "Certificate", "my-selfsigned-ca", "sandbox",
    spec={
        "isCA": True, "commonName": "my-selfsigned-ca", "secretName": "root-secret", "privateKey": {"algorithm": "ECDSA", "size": 256},
        "issuerRef": issuer("ClusterIssuer", "selfsigned-issuer"),
    },
)
EXAMPLE = resource(
    "Certificate", "example-com", "sandbox",
    spec={
        "secretName": "example-com-tls", "duration": "2160h", "renewBefore": "360h", "subject": {"organizations": ["jetstack"]},
        "usages": ["server auth", "client auth"], "dnsNames": ["example.com", "www.example.com"],
        "issuerRef": issuer("Issuer", "my-ca-issuer"), "secretTemplate": {"labels": {"shop": "one"}},
    },
)
INGRESS = {
    "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
    "metadata": {"name": "shop", "namespace": "sandbox", "annotations": {"cert-manager.io/issuer": "my-ca-issuer"}},
    "spec": {
        "rules": [{"host": "shop.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "shop", "port": {"number": 80}}}}]}}],
        "tls": [{"hosts": ["shop.example.com"], "secretName": "shop-tls"}],
    },
}


def release(source, chart):
    """A chart as a release has it: the definitions are in it, and what is filled in when it is made."""
    shutil.copytree(source / "deploy/charts/cert-manager", chart)
    for file in (source / "deploy/crds").glob("*.yaml"):
        shutil.copy(file, chart / "templates")
    text = (chart / "Chart.template.yaml").read_text()
    (chart / "Chart.yaml").write_text(re.sub(r"^(version|appVersion): .*", r"\1: v1.11.5", text, flags=re.MULTILINE))


def install(server):
    chart = server.folder / "cert-manager"
    release(pathlib.Path(os.environ["CERT_MANAGER"]), chart)
    helm = pathlib.Path(os.environ["PROGRAMS"]) / "helm"
    server.run(
        helm, "install", "cert-manager", chart, "--namespace", "cert-manager", "--create-namespace",
        "--set", f"webhook.url.host={WEBHOOK}", "--wait", "--timeout", "2m",
    )
    common = ["--kubeconfig={kubeconfig}", "--v=2"]
    server.start(
        "cert-manager-webhook", *common, "--secure-port=10260", "--healthz-port=6080",
        "--dynamic-serving-ca-secret-namespace=cert-manager", "--dynamic-serving-ca-secret-name=cert-manager-webhook-ca", "--dynamic-serving-dns-names=localhost",
    )
    server.start("cert-manager-cainjector", *common, "--leader-election-namespace=cert-manager")
    server.start(
        "cert-manager-controller", *common, "--leader-election-namespace=cert-manager", "--cluster-resource-namespace=cert-manager",
        "--metrics-listen-address=127.0.0.1:9402",
    )
    server.wait(
        "the authority of the webhook is injected",
        lambda server: all("caBundle" in server.get(f"{kind}webhookconfiguration", "cert-manager-webhook")["webhooks"][0]["clientConfig"] for kind in ("validating", "mutating")),
    )
    server.kubectl("create", "namespace", "sandbox")
    server.wait("the webhook answers", lambda server: server.apply(resource("ClusterIssuer", "selfsigned-issuer", spec={"selfSigned": {}})) is None)


def ready(*arguments):
    return lambda server: condition(server.get(*arguments), "Ready") == "True"


def certificate(server, secret):
    """What is in a certificate, but for keys and times."""
    data = server.kubectl("get", "secret", "-n", "sandbox", secret, "-o", r"go-template={{index .data `tls.crt` | base64decode}}")
    names = "subjectAltName,keyUsage,extendedKeyUsage,basicConstraints"
    return subprocess.run(["openssl", "x509", "-noout", "-subject", "-issuer", "-ext", names], input=data, capture_output=True, text=True, check=True).stdout


def generated(text):
    """A text without the ends of names that the server made up."""
    return re.sub(r"\b(example-com|my-selfsigned-ca|shop-tls)-[a-z0-9]{5}\b", r"\1-<generated>", text)


def unraced(entries):
    """Leaves out who began the status and its conditions: two of the controllers race for that."""
    for entry in list(entries):
        status = entry["fieldsV1"].get("f:status", {})
        conditions = status.get("f:conditions", {})
        status.pop(".", None)
        conditions.pop(".", None)
        if not conditions:
            status.pop("f:conditions", None)
        if entry.get("subresource") == "status" and not status:
            entries.remove(entry)


def play(server):
    install(server)
    server.apply(AUTHORITY)
    server.wait("the authority", ready("certificate", "-n", "sandbox", "my-selfsigned-ca"))
    server.apply(resource("Issuer", "my-ca-issuer", "sandbox", spec={"ca": {"secretName": "root-secret"}}))
    server.wait("the issuer", ready("issuer", "-n", "sandbox", "my-ca-issuer"))
    server.apply(EXAMPLE, INGRESS)
    server.wait("the certificate", ready("certificate", "-n", "sandbox", "example-com"))
    server.wait("the certificate of the Ingress", ready("certificate", "-n", "sandbox", "shop-tls"))
    said = {}
    bad = resource("Certificate", "bad", "sandbox", spec={**EXAMPLE["spec"], "renewBefore": "9999h"})
    (server.folder / "bad.json").write_text(json.dumps(bad))
    said["a certificate that is refused"] = server.kubectl("create", "-f", "bad.json", check=False)
    said["certificates"] = [line.split()[:3] for line in server.kubectl("get", "certificates", "-n", "sandbox", "--no-headers").splitlines()]
    # What was issued is issued again when its Secret is gone.
    before = server.get("secret", "-n", "sandbox", "example-com-tls")["metadata"]["uid"]
    server.kubectl("delete", "secret", "-n", "sandbox", "example-com-tls")
    server.wait("another Secret", lambda server: server.get("secret", "-n", "sandbox", "example-com-tls")["metadata"]["uid"] != before)
    server.wait("the second revision", lambda server: server.get("certificate", "-n", "sandbox", "example-com")["status"]["revision"] == 2)
    server.wait("the certificate again", ready("certificate", "-n", "sandbox", "example-com"))
    server.kubectl("delete", "ingress", "-n", "sandbox", "shop")
    server.wait("the certificate of the Ingress goes with it", lambda server: not named(server, "certificate/shop-tls", "-n", "sandbox"))
    said |= {f"certificate in {secret}": certificate(server, secret) for secret in ("root-secret", "example-com-tls", "shop-tls")}
    said["events"] = sorted({generated(line) for line in events(server, "sandbox")})
    kinds = "issuers,certificates,certificaterequests,secrets,leases"
    for namespace, wanted in (("sandbox", kinds), ("cert-manager", "secrets,leases,services,serviceaccounts,roles,rolebindings")):
        for one in server.get(wanted, "-n", namespace, "--show-managed-fields")["items"]:
            if one["kind"] == "Secret":
                one["data"] = sorted(one.get("data", {}))
            if one["kind"] == "Lease":
                one["spec"] = sorted(one["spec"])
            name = one["metadata"]["name"]
            if one["kind"] == "CertificateRequest":
                one["spec"]["request"] = one["status"]["certificate"] = one["status"]["ca"] = "<pem>"
                one = json.loads(generated(json.dumps(one)))
                name = f"{generated(name)} {one['metadata']['annotations']['cert-manager.io/certificate-revision']}"
            if one["kind"] == "Certificate":
                unraced(one["metadata"]["managedFields"])
            said[f"{namespace}: {one['kind']}/{name}"] = one
    said["ClusterIssuer"] = server.get("clusterissuer", "selfsigned-issuer", "--show-managed-fields")
    for kind in ("validating", "mutating"):
        one = server.get(f"{kind}webhookconfiguration", "cert-manager-webhook", "--show-managed-fields")
        one["webhooks"][0]["clientConfig"]["caBundle"] = "<pem>"
        said[one["kind"]] = one
    return said
