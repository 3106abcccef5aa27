//! Keeps flow control equal to the schemas and levels that are stored, and says in each schema whether its level exists.

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::Value;
use watchkeeper_storage::{self as storage, Error, Followed, Page, Range, Storage};

use crate::api_services::set_condition;
use crate::flow_control::{CONSUMER, GROUP, Schema, condition};
use crate::object::meta;
use crate::resource::{ObjectRef, ROOT};
use crate::server::Server;
use crate::write::Subresource;

/// What the tasks are called: the one that follows, and the one that writes.
pub(super) const TASK: &str = "flow-control";
pub(super) const STATUS: &str = "flow-schemas";

/// What the keys of all schemas and levels begin with.
fn root() -> String {
    format!("{ROOT}{GROUP}/")
}

/// The schemas and the levels on a page, for one of the tasks.
fn read(server: &Server, task: &str, page: &Page) -> (Vec<Value>, Vec<Value>) {
    let registry = server.registry();
    let (mut schemas, mut levels) = (Vec::new(), Vec::new());
    for entry in &page.entries {
        let Some(resource) = registry.of_key(&entry.key) else { continue };
        let Some(Ok(object)) = server.supervisor.caught(task, &entry.key, || resource.read(entry)) else {
            continue;
        };
        match resource.plural.as_str() {
            "flowschemas" => schemas.push(object),
            _ => levels.push(object),
        }
    }
    (schemas, levels)
}

/// Follows what is stored, until the storage is closed.
pub(super) async fn follow(server: Arc<Server>) {
    let root = root();
    let mut following = storage::follow(&*server.storage, "flow control", &root);
    while let Some(followed) = following.next().await {
        match followed {
            Followed::Snapshot(page) => take(&server, &page),
            // All of it is read again: there is little, and a level matters to many schemas.
            Followed::Event(_) => following.again(),
            Followed::Progress(_) => {}
        }
    }
}

/// Takes in all schemas and levels.
pub(super) async fn load(server: &Server) -> Result<(), Error> {
    take(server, &server.storage.range(Range::prefix(&root())).await?);
    Ok(())
}

fn take(server: &Server, page: &Page) {
    let (schemas, levels) = read(server, TASK, page);
    let schemas = schemas.iter().filter_map(|schema| {
        server.supervisor.caught(TASK, &meta::name(schema), || Schema::read(schema, &levels))?
    });
    server.flow_control.replace(schemas.collect());
}

/// Keeps the statuses of schemas true, until the storage is closed.
pub(super) async fn keep_statuses(server: Arc<Server>) {
    let root = root();
    let mut following = storage::follow(&*server.storage, "FlowSchemas", &root);
    while let Some(followed) = following.next().await {
        match followed {
            Followed::Snapshot(page) => {
                let (schemas, levels) = read(&server, STATUS, &page);
                for schema in &schemas {
                    let said = say(&server, schema, &levels);
                    server.supervisor.caught_async(STATUS, &meta::name(schema), said).await;
                }
            }
            Followed::Event(_) => following.again(),
            Followed::Progress(_) => {}
        }
    }
}

/// Says in a schema whether its level exists, if it does not say so yet.
async fn say(server: &Server, schema: &Value, levels: &[Value]) {
    let wanted = condition(schema, levels);
    let mut known = schema["status"]["conditions"].as_array().into_iter().flatten();
    let is_said = |known: &Value| {
        ["type", "status", "reason", "message"].iter().all(|field| known[*field] == wanted[*field])
    };
    if known.any(is_said) {
        return;
    }
    let Some(resource) = server.registry().find(GROUP, "v1", "flowschemas") else { return };
    let place = ObjectRef { resource, namespace: None, name: meta::name(schema).to_owned() };
    let now = server.options.clock.stamp();
    let change = |schema: &mut Value| set_condition(schema, wanted.clone(), &now);
    // It is looked at again with the next change of any of them.
    if let Err(failure) = server.writer.modify_as(CONSUMER, &place, Subresource::Status, change).await {
        tracing::warn!(name = %place.name, failure = %failure.message, "status of a FlowSchema could not be written");
    }
}
