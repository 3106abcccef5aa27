//! What clients ask of pods besides the objects: to be bound, to be evicted, what they wrote.

use serde_json::Value;

use super::accepted_untabled;
use crate::access::denial;
use crate::handlers::call::Call;
use crate::handlers::reply::Reply;
use crate::object::meta;
use crate::request::media::{self, Accepted};
use crate::request::write_options::WriteOptions;
use crate::resource::ObjectRef;
use crate::server::Server;
use crate::status_error::{self, StatusError};
use crate::write::{
    Eviction, Incoming, Operation, Subresource, WriteContext, WriteRequest, check_name, decode_as,
};

impl Server {
    /// Puts a pod on a node.
    pub(super) async fn bind(&self, call: &Call, place: &ObjectRef) -> Result<Reply, StatusError> {
        let options = WriteOptions::of_create(&call.query)?;
        let accepted = accepted_untabled(call)?;
        let format = media::body_format(&call.headers, true)?;
        let Some(bindings) = self.registry().find("", "v1", "bindings") else {
            return Err(StatusError::internal("bindings are not served"));
        };
        let context = &call.context(&options);
        let binding = Incoming::read(&bindings, &call.body, format, context.field_validation)?;
        check_name(place, &binding.object, "Binding")?;
        self.bind_to(place, &binding, context, &accepted).await
    }

    /// The same by a Binding that is not sent to the pod, but names it. Which pod of that name it means does not matter.
    pub(super) async fn bind_named(
        &self,
        mut binding: Incoming,
        namespace: Option<String>,
        context: &WriteContext,
        accepted: &Accepted,
    ) -> Result<Reply, StatusError> {
        let Some(resource) = self.registry().find("", "v1", "pods") else {
            return Err(StatusError::internal("pods are not served"));
        };
        let said = meta::text(&binding.object, "namespace");
        if !said.is_empty() && Some(said) != namespace.as_deref() {
            let message =
                "the namespace of the provided object does not match the namespace sent on the request";
            return Err(StatusError::bad_request(message));
        }
        ["uid", "resourceVersion"].into_iter().for_each(|field| meta::remove(&mut binding.object, field));
        let place = ObjectRef { resource, namespace, name: meta::name(&binding.object).to_owned() };
        self.bind_to(&place, &binding, context, accepted).await
    }

    async fn bind_to(
        &self,
        pod: &ObjectRef,
        binding: &Incoming,
        context: &WriteContext,
        accepted: &Accepted,
    ) -> Result<Reply, StatusError> {
        let (target, operation) = (pod.clone(), Operation::Bind(&binding.object));
        let request = WriteRequest { target, subresource: Subresource::Binding, operation, context };
        let written = self.writer.write(request).await;
        let written = written.map_err(|failure| failure.with_more_warnings(&binding.warnings))?;
        let reply = Reply::object(201, &status_error::success(201), accepted.format);
        Ok(reply.warnings(&binding.warnings).warnings(&written.warnings))
    }

    /// What a pod wrote, of which there is nothing as long as it is on no node.
    pub(super) async fn logged(&self, call: &Call, place: &ObjectRef) -> Result<Reply, StatusError> {
        let entry = self.get(&place.resource, place.namespace.as_deref(), &place.name, None).await?;
        let pod = place.resource.read(&entry)?;
        check_container(&pod, call.query.get("container").unwrap_or_default())?;
        if pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty) {
            return Ok(Reply::no_content());
        }
        Err(denial::no_node(place, "log"))
    }

    /// Deletes a pod in a polite way.
    pub(super) async fn evict(&self, call: &Call, place: &ObjectRef) -> Result<Reply, StatusError> {
        let accepted = accepted_untabled(call)?;
        let format = media::body_format(&call.headers, true)?;
        let eviction = decode_as(&call.body, format, "Eviction", &["policy/v1", "policy/v1beta1"])?;
        check_name(place, &eviction, "Eviction")?;
        let create = WriteOptions::of_create(&call.query)?;
        let eviction = Eviction::new(eviction, call.query.clone(), create.dry_run);
        let dry_run = eviction.sent_options()?.dry_run;
        let context = &WriteContext { dry_run, ..call.context(&create) };
        let request = WriteRequest::new(place.clone(), Operation::Evict(&eviction), context);
        let written = self.writer.write(request).await?;
        let reply = Reply::object(201, &status_error::success(201), accepted.format);
        Ok(reply.warnings(&written.warnings))
    }
}

/// Refuses to show what a container wrote that a pod does not have, or of several without saying of which.
pub(super) fn check_container(pod: &Value, asked: &str) -> Result<(), StatusError> {
    let name = meta::name(pod);
    let names = |list: &str| pod["spec"][list].as_array().into_iter().flatten().map(|found| &found["name"]);
    let mut all = names("initContainers").chain(names("containers")).chain(names("ephemeralContainers"));
    match (asked, names("containers").count()) {
        ("", 1) => Ok(()),
        ("", 0) => {
            Err(StatusError::bad_request(format!("a container name must be specified for pod {name}")))
        }
        ("", _) => {
            let all: Vec<&str> = all.filter_map(Value::as_str).collect();
            let all = all.join(" ");
            Err(StatusError::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{all}]"
            )))
        }
        (asked, _) if all.any(|found| found == asked) => Ok(()),
        _ => Err(StatusError::bad_request(format!("container {asked} is not valid for pod {name}"))),
    }
}
