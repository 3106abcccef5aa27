//! ComponentStatuses: the parts of a control plane that kube-apiserver asks after their health. Here, the storage is a part of the server;
//! the others are asked for where they usually are on the same machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::net::TcpStream;
use watchkeeper_table::{Partial, Table};

use crate::handlers::call::Call;
use crate::handlers::reply::Reply;
use crate::read::render::{Form, Shape};
use crate::request::media::{self, Endpoint};
use crate::resource::Resource;
use crate::server::Server;
use crate::status_error::{StatusError, Subject};

/// The parts that are other programs, and the ports where they say how they are.
const PROGRAMS: [(&str, u16); 2] = [("controller-manager", 10257), ("scheduler", 10259)];

/// The part that is the storage.
const STORAGE: &str = "etcd-0";

/// How long a part may take to be there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Answers for one part, or for all of them.
pub(super) async fn answer(
    server: &Server,
    call: &Call,
    resource: &Arc<Resource>,
    name: Option<&str>,
) -> Result<Reply, StatusError> {
    let accepted = media::accept(&call.headers, Endpoint::Objects)?;
    let Form { shape, format } = Form::new(&accepted, &call.query)?;
    let Some(name) = name else {
        let all = futures_util::future::join_all(
            PROGRAMS.into_iter().map(|program| program.0).chain([STORAGE]).map(|name| look(server, name)),
        );
        let all: Vec<Value> = all.await.into_iter().flatten().collect();
        return Ok(Reply::object(200, &list(resource, shape, all), format));
    };
    let found = look(server, name).await;
    let object =
        found.ok_or_else(|| StatusError::not_found(Subject { group: "", name: &resource.singular }, name))?;
    Ok(Reply::object(200, &shape.of_one(resource, object), format))
}

/// What a part says; `None` if there is no such part.
async fn look(server: &Server, name: &str) -> Option<Value> {
    let (status, message) = match PROGRAMS.into_iter().find(|(known, _)| *known == name) {
        Some((_, port)) => match is_there(port).await {
            Ok(()) => ("True", "ok".to_owned()),
            Err(why) => ("False", format!("Get \"https://127.0.0.1:{port}/healthz\": {why}")),
        },
        None if name == STORAGE => match server.storage.stats().halted {
            None => ("True", "ok".to_owned()),
            Some(why) => ("False", why),
        },
        None => return None,
    };
    Some(json!({
        "kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": status, "message": message}],
    }))
}

/// Whether somebody listens on a port of this machine.
async fn is_there(port: u16) -> Result<(), String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            Err(format!("dial tcp {address}: connect: connection refused"))
        }
        Ok(Err(error)) => Err(format!("dial tcp {address}: {error}")),
        Err(_) => Err("context deadline exceeded".to_owned()),
    }
}

fn list(resource: &Resource, shape: Shape, objects: Vec<Value>) -> Value {
    let metadata = json!({});
    match shape {
        Shape::Table(include) => {
            let (printer, objects, now) = (resource.printer(), objects.as_slice(), SystemTime::now());
            let table = Table { printer, objects, metadata: &metadata, include, headers: true, now };
            // All keys are strings, so nothing can fail.
            serde_json::to_value(table).unwrap_or_default()
        }
        Shape::Partial => {
            let items: Vec<Value> = objects
                .iter()
                .map(|object| serde_json::to_value(Partial(object)).unwrap_or_default())
                .collect();
            json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items})
        }
        Shape::Object => {
            let untyped = objects.into_iter().map(|mut object| {
                let fields = crate::object::meta::fields(&mut object);
                fields.remove("kind");
                fields.remove("apiVersion");
                object
            });
            let items: Vec<Value> = untyped.collect();
            json!({"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": metadata, "items": items})
        }
    }
}
