//! A server that is ready to be attacked: filled, with an attacker and an innocent client who are known to it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use watchkeeper_bench_target::{
    Access, Ask, Connection, DEFINITIONS, GROUP, Kind, OpenFiles, Program, Result, Target, refusal,
};

use crate::attack::{Filled, Who};

/// Where the attacker may do as they like, and what with.
pub(crate) const NAMESPACE: &str = "attack";
/// The custom resource, whose spec takes everything.
pub(crate) const PLURAL: &str = "bulks";
/// What the innocent client reads.
pub(crate) const CALM: &str = "/api/v1/namespaces/innocent/configmaps/calm";

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// How long a server may take until rights and definitions are in force.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running server with its users.
pub(crate) struct Site {
    /// The server.
    pub(crate) target: Target,
    directory: TempDir,
}

impl Site {
    /// Starts a server with nothing but what it has by itself.
    pub(crate) async fn bare(program: &Program, files: OpenFiles) -> Result<Self> {
        Ok(Self { target: Target::start(program.clone(), files).await?, directory: tempfile::tempdir()? })
    }

    /// Starts a server, fills it, and waits until it is calm.
    pub(crate) async fn prepare(
        program: &Program,
        files: OpenFiles,
        filled: Filled,
        who: Who,
    ) -> Result<Self> {
        let mut site = Self::bare(program, files).await?;
        site.namespace("innocent").await?;
        site.namespace(NAMESPACE).await?;
        let calm = json!({"metadata": {"name": "calm"}, "data": {"text": "as small as most of them are"}});
        site.post("/api/v1/namespaces/innocent/configmaps", &calm).await?;
        site.post(DEFINITIONS, &definition()).await?;
        site.grant(
            "innocent",
            "innocent",
            &json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]),
        )
        .await?;
        if who == Who::Editor {
            let rules = json!([
                {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]},
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
            ]);
            site.grant(NAMESPACE, "attacker", &rules).await?;
        } else {
            site.account(NAMESPACE, "attacker").await?;
        }
        site.until_found(&collection()).await?;
        site.fill(filled).await?;
        site.settle().await?;
        Ok(site)
    }

    async fn fill(&mut self, filled: Filled) -> Result<()> {
        let path = collection();
        match filled {
            Filled::Little => {}
            Filled::Definitions(count) => {
                for number in 0..count {
                    let definition = Kind::new(format!("kind{number}")).definition();
                    self.target.connection.call(Ask::post(DEFINITIONS, &definition)).await?;
                }
            }
            Filled::Objects(count, bytes) => {
                let text = "x".repeat(bytes.saturating_sub(300));
                let object = |number| {
                    json!({"apiVersion": format!("{GROUP}/v1"), "kind": PLURAL,
                        "metadata": {"name": format!("object-{number}")}, "spec": {"text": text}})
                    .to_string()
                };
                self.target.post(&path, 8, count, object).await?;
            }
            Filled::History(_) => {}
        }
        let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": PLURAL, "metadata": {"name": "large"}, "spec": {}});
        self.post(&path, &object).await?;
        if let Filled::History(count) = filled {
            let own = format!("{path}/large");
            for number in 0..count {
                let body = large(number);
                let ask = Ask::patch(&own, "application/merge-patch+json", &body);
                self.target.connection.call(ask).await?;
            }
        }
        Ok(())
    }

    /// Makes a namespace.
    pub(crate) async fn namespace(&mut self, name: &str) -> Result<()> {
        self.post("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await.map(drop)
    }

    /// Creates an object, and gives it as the server keeps it.
    pub(crate) async fn post(&mut self, path: &str, object: &Value) -> Result<Value> {
        self.target.renew().await?;
        let body = object.to_string();
        let answer = self.target.connection.call(Ask::post(path, &body)).await?;
        Ok(serde_json::from_slice(&answer.concat())?)
    }

    /// Makes an account with rights in a namespace, and gives the kubeconfig for it.
    pub(crate) async fn grant(&mut self, namespace: &str, name: &str, rules: &Value) -> Result<PathBuf> {
        let file = self.account(namespace, name).await?;
        let role = json!({"metadata": {"name": name}, "rules": rules});
        self.post(&format!("{RBAC}/namespaces/{namespace}/roles"), &role).await?;
        let binding = json!({"metadata": {"name": name}, "subjects": [subject(namespace, name)],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}});
        self.post(&format!("{RBAC}/namespaces/{namespace}/rolebindings"), &binding).await?;
        Ok(file)
    }

    /// The same in the whole cluster.
    pub(crate) async fn grant_all(&mut self, namespace: &str, name: &str, rules: &Value) -> Result<PathBuf> {
        let file = self.account(namespace, name).await?;
        let role = json!({"metadata": {"name": name}, "rules": rules});
        self.post(&format!("{RBAC}/clusterroles"), &role).await?;
        self.bind_all(namespace, name, name).await?;
        Ok(file)
    }

    /// Binds a ClusterRole to an account in the whole cluster.
    pub(crate) async fn bind_all(&mut self, namespace: &str, name: &str, role: &str) -> Result<()> {
        let binding = json!({"metadata": {"name": name}, "subjects": [subject(namespace, name)],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}});
        self.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.map(drop)
    }

    /// Makes an account without rights, and gives the kubeconfig for it.
    pub(crate) async fn account(&mut self, namespace: &str, name: &str) -> Result<PathBuf> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        self.post(&path, &json!({"metadata": {"name": name}})).await?;
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600}});
        let token = self.post(&format!("{path}/{name}/token"), &request).await?;
        let token = token["status"]["token"].as_str().ok_or("a TokenRequest was answered without a token")?;
        let file = self.kubeconfig(name);
        fs::write(&file, Access::kubeconfig_of(&fs::read(self.target.kubeconfig())?, token)?)?;
        Ok(file)
    }

    /// The kubeconfig of an account.
    pub(crate) fn kubeconfig(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A connection of an account.
    pub(crate) async fn connection(&self, name: &str) -> Result<Connection> {
        Connection::http2(&Arc::new(Access::of(&fs::read(self.kubeconfig(name))?)?)).await
    }

    /// Waits until an account may do something: the real server follows roles with a delay.
    pub(crate) async fn until_allowed(&self, name: &str, path: &str) -> Result<()> {
        self.until_allowed_to(name, Ask::get(path)).await
    }

    /// The same for any request, which is made.
    pub(crate) async fn until_allowed_to(&self, name: &str, ask: Ask<'_>) -> Result<()> {
        let mut connection = self.connection(name).await?;
        until(&mut connection, ask).await
    }

    async fn until_found(&mut self, path: &str) -> Result<()> {
        until(&mut self.target.connection, Ask::get(path)).await
    }

    /// Waits until the server computes next to nothing: less than 50 ms in a second.
    async fn settle(&self) -> Result<()> {
        let end = Instant::now() + TIMEOUT;
        let mut before = self.target.cpu()?;
        while Instant::now() < end {
            sleep(Duration::from_secs(1)).await;
            let now = self.target.cpu()?;
            if now - before < 0.05 {
                break;
            }
            before = now;
        }
        Ok(())
    }
}

/// Waits until a request succeeds. The real server says 403, 404 and 429 before that.
async fn until(connection: &mut Connection, ask: Ask<'_>) -> Result<()> {
    let end = Instant::now() + TIMEOUT;
    loop {
        match connection.answer(ask).await? {
            (status, _) if status.is_success() => return Ok(()),
            _ if Instant::now() < end => sleep(Duration::from_millis(50)).await,
            (status, pieces) => return Err(refusal(ask, status, &pieces)),
        }
    }
}

fn collection() -> String {
    format!("/apis/{GROUP}/v1/namespaces/{NAMESPACE}/{PLURAL}")
}

fn subject(namespace: &str, name: &str) -> Value {
    json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
}

/// A merge patch that makes an object 100 KB large, another one for each number.
pub(crate) fn large(number: usize) -> String {
    json!({"spec": {"number": number, "text": "x".repeat(100_000)}}).to_string()
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{PLURAL}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": PLURAL, "kind": PLURAL},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}
