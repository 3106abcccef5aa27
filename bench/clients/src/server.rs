//! A server that clients are measured with, filled once for all rows.

use std::path::Path;
use std::time::Duration;

use http::{Method, StatusCode};
use watchkeeper_bench_target::{Ask, DEFINITIONS, Peer, Result, Target, by_clients, refusal};

use crate::objects::{Weight, name, pod, pod_status};
use crate::size::Size;

/// How many clients fill it.
const CLIENTS: usize = 32;
/// How a merge patch is called.
pub(crate) const MERGE: &str = "application/merge-patch+json";

/// Which server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Ours,
    Real,
}

impl Which {
    /// What it is called in rows.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "our API server",
            Self::Real => "kube-apiserver",
        }
    }
}

/// A running server with everything in it.
pub(crate) struct Server {
    pub(crate) target: Target,
    /// Numbers of changes, so that each is one.
    pub(crate) changed: usize,
}

/// Objects that are watched together.
#[derive(Clone, Debug)]
pub(crate) struct Population {
    pub(crate) what: String,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    /// Nothing for all namespaces.
    pub(crate) namespace: &'static str,
    pub(crate) count: usize,
}

impl Population {
    /// Custom resources of 1 kB in one namespace.
    pub(crate) fn some(size: Size) -> Self {
        Self::light("some", size.some)
    }

    /// Custom resources of 1 kB: the first, the second and the third step of growth. The third is all of them.
    pub(crate) fn step(size: Size, number: usize) -> Self {
        Self::light(["first", "second", ""][number], size.steps()[number])
    }

    fn light(namespace: &'static str, count: usize) -> Self {
        let what = format!("{count} custom resources of 1.1 kB");
        Self { what, kind: Weight::Light.kind(), plural: Weight::Light.plural(), namespace, count }
    }

    /// Custom resources of 5 kB.
    pub(crate) fn heavy(size: Size) -> Self {
        let what = format!("{} custom resources of 5 kB", size.some);
        let (kind, plural) = (Weight::Heavy.kind(), Weight::Heavy.plural());
        Self { what, kind, plural, namespace: "", count: size.some }
    }

    /// Pods.
    pub(crate) fn pods(size: Size) -> Self {
        let what = format!("{} Pods", size.some);
        Self { what, kind: "Pod", plural: "pods", namespace: "", count: size.some }
    }

    /// The flags with which a program watches them.
    pub(crate) fn flags(&self, kubeconfig: &Path) -> Vec<(&'static str, String)> {
        vec![
            ("kubeconfig", kubeconfig.display().to_string()),
            ("kind", self.kind.into()),
            ("plural", self.plural.into()),
            ("namespace", self.namespace.into()),
            ("expect", self.count.to_string()),
        ]
    }
}

impl Server {
    /// Starts ours and fills it.
    pub(crate) async fn ours(binary: &Path, size: Size) -> Result<Self> {
        Self::fill(Which::Ours, Target::ours(binary).await?, size).await
    }

    /// Starts the real one and fills it. Its etcd does not sync, for nothing of it is measured.
    pub(crate) async fn real(size: Size) -> Result<Self> {
        Self::fill(Which::Real, Target::peer(&Peer::find()?.relaxed()).await?, size).await
    }

    async fn fill(which: Which, target: Target, size: Size) -> Result<Self> {
        eprintln!("filling {}", which.name());
        let mut server = Self { target, changed: 0 };
        let [first, second, all] = size.steps();
        let rest = all.checked_sub(first + second + size.some).ok_or("there are not enough of many")?;
        for namespace in ["first", "second", "some", "rest"] {
            let body =
                format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{namespace}"}}}}"#);
            server.target.connection.call(Ask::post("/api/v1/namespaces", &body)).await?;
        }
        for weight in [Weight::Light, Weight::Heavy] {
            server.target.connection.call(Ask::post(DEFINITIONS, &weight.definition())).await?;
        }
        for (namespace, count) in [("first", first), ("second", second), ("some", size.some), ("rest", rest)]
        {
            server.create(Weight::Light, namespace, count).await?;
        }
        server.create(Weight::Heavy, "some", size.some).await?;
        server.create_pods(size.some).await?;
        Ok(server)
    }

    async fn create(&mut self, weight: Weight, namespace: &str, count: usize) -> Result<()> {
        let path = weight.path(namespace);
        // The first one, until the kind is there.
        self.target.renew().await?;
        let object = weight.object(0);
        loop {
            let ask = Ask::post(&path, &object);
            match self.target.connection.answer(ask).await? {
                (StatusCode::CREATED, _) => break,
                (StatusCode::NOT_FOUND, _) => tokio::time::sleep(Duration::from_millis(10)).await,
                (status, pieces) => return Err(refusal(ask, status, &pieces)),
            }
        }
        by_clients(&self.target.access, CLIENTS, 1..count, async |connection, number| {
            connection.call(Ask::post(&path, &weight.object(number))).await.map(drop)
        })
        .await
        .map(drop)
    }

    async fn create_pods(&mut self, count: usize) -> Result<()> {
        let path = "/api/v1/namespaces/some/pods";
        by_clients(&self.target.access, CLIENTS, 0..count, async |connection, number| {
            connection.call(Ask::post(path, &pod(number))).await?;
            let status = format!("{path}/{}/status", name(number));
            let body = pod_status(number);
            let ask = Ask { method: &Method::PATCH, content_type: MERGE, ..Ask::post(&status, &body) };
            connection.call(ask).await.map(drop)
        })
        .await
        .map(drop)
    }
}
