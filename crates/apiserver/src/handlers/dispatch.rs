//! From requests to what is done about them.

mod catching_up;
mod connect;
mod deadline;
mod pods;
mod token_request;

use std::pin::pin;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use tokio::time::Instant;
use watchkeeper_rbac::About;

use crate::access::{Authorized, Split};
use crate::authentication::Identity;
use crate::documents::Name;
use crate::flow_control::Flow;
use crate::front::{Body, BodyError, Request, Response};
use crate::handlers::call::Call;
use crate::handlers::reply::Reply;
use crate::handlers::route::{self, Collection, Route, Unrouted};
use crate::handlers::websocket::{self, Handshake, Refused};
use crate::handlers::{components, discovery, health, openapi, remote, reviews};
use crate::in_flight::Class;
use crate::object::meta;
use crate::read::filter::Filter;
use crate::read::list::Listed;
use crate::read::render::{Form, Shape};
use crate::request::action::{Action, PageAction, Verb};
use crate::request::is_public;
use crate::request::list_options::ListOptions;
use crate::request::media::{self, Accepted, Endpoint, Format, PatchFormat, Transform};
use crate::request::path::Target;
use crate::request::query::Query;
use crate::request::write_options::WriteOptions;
use crate::resource::{ObjectRef, Resource};
use crate::server::Server;
use crate::status_error::{self, StatusError};
use crate::write::{
    Applying, Incoming, Operation, Patch, ScaleChange, Subresource, WriteRequest, Written, admission,
    decode_as,
};
use crate::{access, aggregation, gzip};

/// Whether a path is about the server itself, and answered until the end.
fn is_about_the_server(path: &str) -> bool {
    is_public(path) || path.trim_end_matches('/') == "/metrics"
}

/// Whether a request would change something that is stored, if it were granted.
fn changes_something(request: &watchkeeper_rbac::Request<'_>) -> bool {
    let About::Resource { group, resource, .. } = request.about else { return false };
    let is_question =
        matches!(group, "authorization.k8s.io" | "authentication.k8s.io") && resource.ends_with("reviews");
    !matches!(request.verb, "get" | "list" | "watch") && !is_question
}

impl Server {
    /// Answers a request.
    pub(crate) async fn answer(self: Arc<Self>, request: Request, identity: Identity) -> Response {
        let started = std::time::Instant::now();
        let _running = self.run();
        let (Parts { method, uri, headers, .. }, body) = request.into_parts();
        let query = Query::parse(uri.query().unwrap_or_default());
        let verb = verb(&method, &query);
        let action = Action::of(&method, uri.path(), &query);
        let call = Call::new(headers, query, identity);
        let (mut audit, pretty) = (call.headers.get("audit-id").cloned(), call.pretty);
        let annotations = call.annotations.clone();
        let (format, gzip) = (failure_format(&call.headers), gzip::is_wanted(&call.headers));
        let mut flow = None;
        let is_refused = self.is_refusing() && !is_about_the_server(uri.path());
        let answer = async {
            if is_refused {
                return Ok(Reply::shutting_down());
            }
            let action = action?;
            // Said before anything else, of whatever is asked for.
            if !action.is_watch() {
                call.query.timeout()?;
            }
            self.authorize_and_serve(call, action, body, &mut flow).await
        };
        let reply = match answer.await {
            Ok(reply) => reply,
            Err(failure) => Reply::failure(&failure, format),
        };
        self.metrics.answered(verb, reply.code(), started.elapsed());
        if !annotations.is_empty() {
            audit = audit.or_else(|| HeaderValue::from_str(&crate::object::random::uid()).ok());
            annotations.log(audit.as_ref(), verb, uri.path());
        }
        reply.of_flow(flow).into_response(audit, pretty, gzip)
    }

    /// Reads the body of a request, once it is known that its sender may send it.
    async fn authorize_and_serve(
        self: &Arc<Self>,
        mut call: Call,
        action: Action,
        body: Body,
        flow: &mut Option<Flow>,
    ) -> Result<Reply, StatusError> {
        // Of those who may not, too.
        *flow = self.flow_control.classify(&call.identity, &access::request(&action));
        let again = self.may_learn_roles(&call.identity).then(|| Box::new(action.clone()));
        let mut authorized = self.access.authorize(&call.headers, Arc::clone(&call.identity), action);
        if authorized.is_err()
            && let Some(action) = again
            && Box::pin(self.learn_roles(&call.identity)).await?
        {
            authorized = self.access.authorize(&call.headers, Arc::clone(&call.identity), *action);
        }
        let action = match authorized {
            Ok((identity, action)) => {
                if !Arc::ptr_eq(&identity, &call.identity) {
                    *flow = self.flow_control.classify(&identity, &access::request(&action));
                }
                call.identity = identity;
                action
            }
            Err(failure) => {
                let reply = Reply::failure(&failure, failure_format(&call.headers));
                return Ok(reply.header("x-content-type-options", "nosniff"));
            }
        };
        let class = Class::of(&access::request(&action));
        if self.options.read_only && changes_something(&access::request(&action)) {
            return Err(StatusError::read_only());
        }
        let permit = match self.in_flight.enter(class, &call.identity) {
            Ok(permit) => permit,
            Err(rejected) => {
                self.metrics.rejected(class, rejected);
                return Ok(Reply::too_many_requests());
            }
        };
        let limit = self.limit(&call, &action);
        call.deadline = limit.map(|limit| Instant::now() + limit);
        // Futures that are handed on by value are copied, and have room for each copy: one is boxed, the other is pinned here.
        let answer = pin!(async {
            if action.has_body() {
                call.body =
                    self.budget.read(&call.identity.user, body).await.map_err(|error| match error {
                        BodyError::TooLarge { limit } => StatusError::too_large(&format!("limit is {limit}")),
                        error => StatusError::bad_request(format!("the body could not be read: {error}")),
                    })?;
            }
            let claim = self.budget.body(&call.identity.user, &call.body).await?;
            let server = Arc::clone(self);
            self.budget.run(claim, Box::pin(async move { server.serve(call, action).await })).await
        });
        Ok(deadline::within(limit, answer).await?.until_sent(permit))
    }

    async fn serve(self: &Arc<Self>, call: Call, action: Authorized<Action>) -> Result<Reply, StatusError> {
        match action.split() {
            Split::Resource(action) => self.resource(call, action).await,
            Split::Page(page) => Box::pin(self.answer_page(&call, page)).await,
        }
    }

    /// Answers what is not about objects: discovery, documents, health.
    async fn answer_page(
        self: &Arc<Self>,
        call: &Call,
        page: Authorized<PageAction>,
    ) -> Result<Reply, StatusError> {
        let PageAction { verb, path, target } = page.into_inner();
        let mut registry = self.registry();
        let is_missing = match &target {
            Target::Group(group) => registry.group(group).is_none(),
            Target::Version { group, version } => {
                let mut versions = registry.group(group).into_iter().flat_map(|group| &group.versions);
                !versions.any(|served| served.version == *version)
                    && registry.remote(group, version).is_none()
            }
            _ => false,
        };
        if is_missing && Box::pin(self.learn_definitions()).await? {
            registry = self.registry();
        }
        // Some pages of kube-apiserver look at no method. The others know GET and nothing else.
        let knows_get_only = match &target {
            Target::Core => true,
            Target::Version { group, .. } => registry.group(group).is_some_and(|group| group.is_builtin()),
            Target::Other(path) => {
                path.trim_end_matches('/') == "/version" || self.accounts.tokens.serves(path)
            }
            _ => false,
        };
        if knows_get_only && verb != "get" {
            return Err(StatusError::unknown_method());
        }
        if matches!(target, Target::Core | Target::Groups)
            && let Some(format) = media::aggregated_discovery(&call.headers)
        {
            return self.discovered(call, target == Target::Core, format).await;
        }
        let format = match target {
            Target::Other(_) => Format::Json,
            _ => media::accept(&call.headers, Endpoint::Untabled)?.format,
        };
        match target {
            Target::Core => {
                let address = self.address.lock().filter(|address| !address.ip().is_unspecified());
                Ok(Reply::object(200, &discovery::core_versions(&registry, address), format))
            }
            Target::Groups => {
                let made = Arc::clone(&registry);
                let make = move || Reply::encode(&discovery::groups(&made), format).unwrap_or_default();
                let document =
                    registry.documents.get(Name::Groups { format }, &self.documenting, make).await?;
                Ok(Reply::new(200, document).typed(format.media_type()))
            }
            Target::Group(group) => match discovery::group(&registry, &group) {
                Some(group) => Ok(Reply::object(200, &group, format)),
                None => Ok(Reply::no_such_page()),
            },
            Target::Version { group, version } => {
                let found = registry.group(&group).and_then(|group| {
                    let version = group.versions.iter().find(|found| found.version == version)?;
                    Some(discovery::resources(&group.name, version))
                });
                match found {
                    Some(list) => Ok(Reply::object(200, &list, format)),
                    None if registry.remote(&group, &version).is_some() => {
                        let target = aggregation::Target::page(&path, &call.query);
                        match registry.remote(&group, &version).filter(|_| verb == "get") {
                            Some(remote) => remote::answer(self, call, remote, target).await,
                            None => Err(StatusError::unknown_method()),
                        }
                    }
                    // Of a group that is there, a version is missing; of others, nothing is known.
                    None if registry.group(&group).is_some_and(|group| group.is_builtin()) => {
                        Err(StatusError::no_such_path())
                    }
                    None => Ok(Reply::no_such_page()),
                }
            }
            Target::Root => Ok(Reply::json(200, &health::paths(&registry))),
            Target::Other(_) | Target::Resource(_) => match path.strip_prefix("/openapi/") {
                Some(document) => openapi::answer(self, call, document).await,
                None if self.accounts.tokens.serves(&path) => {
                    let (document, media_type) = self.accounts.tokens.document(&path, *self.address.lock());
                    Ok(Reply::json(200, &document)
                        .typed(media_type)
                        .header("cache-control", "public, max-age=3600"))
                }
                None => Ok(health::answer(self, call, &path)),
            },
        }
    }

    /// Everything that is served, in one answer that clients keep.
    async fn discovered(&self, call: &Call, core: bool, format: Format) -> Result<Reply, StatusError> {
        let registry = self.registry();
        let made = Arc::clone(&registry);
        let make = move || Reply::encode(&discovery::aggregated(&made, core), format).unwrap_or_default();
        let name = Name::Discovery { core, format };
        let document = registry.documents.get(name, &self.documenting, make).await?;
        let said = format!("{};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", format.media_type());
        Ok(Reply::document(document, &call.headers).typed(&said).header("vary", "Accept"))
    }

    /// Does something with objects.
    async fn resource(self: &Arc<Self>, call: Call, action: Authorized) -> Result<Reply, StatusError> {
        let registry = self.registry();
        let about = action.action();
        if let Some(remote) = registry.remote(&about.group, &about.version) {
            let target = aggregation::Target::of(about, &call.query)?;
            return Box::pin(remote::answer(self, &call, remote, target)).await;
        }
        let mut resource = registry.resource_of(about);
        if resource.is_err() && Box::pin(self.learn_definitions()).await? {
            resource = self.registry().resource_of(about);
        }
        let found = resource.and_then(|resource| {
            if resource.builtin_kind().is_some() && !media::is_routed(&call.headers) {
                let is_list = matches!(action.action().verb, Verb::List | Verb::Watch);
                return Err(StatusError::not_routed(is_list).into());
            }
            Route::find(action, resource)
        });
        let Route { resource, operation } = match found {
            Ok(route) => route,
            Err(Unrouted::NoSuchPage) => return Ok(Reply::no_such_page()),
            Err(Unrouted::StatusError(failure)) => return Err(failure),
        };
        let reply = self.operate(&call, &resource, operation).await;
        let deprecated = match resource.custom_version() {
            Some((_, version)) => version.warning.clone(),
            None => resource.deprecation().map(str::to_owned),
        };
        let Some(warning) = deprecated else { return reply };
        let reply = reply.unwrap_or_else(|failure| Reply::failure(&failure, failure_format(&call.headers)));
        Ok(reply.warning_first(&warning))
    }

    async fn operate(
        self: &Arc<Self>,
        call: &Call,
        resource: &Arc<Resource>,
        operation: route::Operation,
    ) -> Result<Reply, StatusError> {
        match operation {
            route::Operation::Get(place) => self.got(call, &place).await,
            route::Operation::Components(name) => {
                Box::pin(components::answer(self, call, resource, name.as_deref())).await
            }
            route::Operation::List(of) => self.listed(call, resource, &of).await,
            route::Operation::Watch(of) => self.watched(call, resource, &of).await,
            route::Operation::NoWatch => Err(StatusError::method_not_allowed(resource.subject(), "watch")),
            // The others are boxed: the future of a request is moved about, and that of a read would have to have room for a write.
            route::Operation::DeleteCollection(of) => {
                Box::pin(self.collection_deleted(call, resource, &of)).await
            }
            route::Operation::Create(of) => Box::pin(self.posted(call, resource, of.namespace)).await,
            route::Operation::Update(place, part) => Box::pin(self.put(call, &place, part)).await,
            route::Operation::Patch(place, part) => Box::pin(self.patched(call, &place, part)).await,
            route::Operation::Delete(place) => Box::pin(self.deleted(call, &place)).await,
            route::Operation::GetScale(place) => Box::pin(self.got_scale(call, &place)).await,
            route::Operation::UpdateScale(place) => Box::pin(self.put_scale(call, &place)).await,
            route::Operation::PatchScale(place) => Box::pin(self.patched_scale(call, &place)).await,
            route::Operation::Bind(place) => Box::pin(self.bind(call, &place)).await,
            route::Operation::Evict(place) => Box::pin(self.evict(call, &place)).await,
            route::Operation::IssueToken(place) => Box::pin(self.issue_token(call, &place)).await,
            route::Operation::Connect(place, subresource) if subresource == "log" => {
                Box::pin(self.logged(call, &place)).await
            }
            route::Operation::Connect(place, subresource) => {
                Box::pin(self.connected(call, &place, &subresource)).await
            }
        }
    }

    /// Has admission judge a request that is handed on to a Pod or a Node. Returns its warnings.
    async fn admit_connect(
        &self,
        call: &Call,
        target: &ObjectRef,
        subresource: &str,
    ) -> Result<Vec<String>, StatusError> {
        let context = &call.context(&WriteOptions::default());
        let admitted =
            self.writer.admit(admission::Verb::Connect, target, subresource, context, Value::Null).await;
        admitted.map(|draft| draft.warnings)
    }

    async fn listed(
        &self,
        call: &Call,
        resource: &Arc<Resource>,
        of: &Collection,
    ) -> Result<Reply, StatusError> {
        let options = ListOptions::from_query(&call.query)?;
        let accepted = accepted(call, resource)?;
        if accepted.transform == Transform::Partial && !accepted.is_partial_list {
            return Err(StatusError::not_one(&resource.go_list_type()));
        }
        let filter = Filter::new(resource, &options)?.restricted_to(of.only.as_deref());
        let listed = self.list(resource, of.namespace.as_deref(), &filter, &options).await?;
        list_reply(call, resource, listed, &accepted).await
    }

    async fn collection_deleted(
        self: &Arc<Self>,
        call: &Call,
        resource: &Arc<Resource>,
        of: &Collection,
    ) -> Result<Reply, StatusError> {
        let options = call.delete_options()?;
        let list = ListOptions::from_query(&call.query)?;
        let filter = Filter::new(resource, &list)?;
        let accepted = accepted(call, resource)?;
        let listed = self.list(resource, of.namespace.as_deref(), &filter, &list).await?;
        let targets = listed.entries.iter().map(|entry| ObjectRef::of(resource, &entry.key)).collect();
        let warnings = self.writer.delete_all(targets, &options, &call.delete_context(&options)).await?;
        Ok(list_reply(call, resource, listed, &accepted).await?.warnings(&warnings))
    }

    async fn posted(
        self: &Arc<Self>,
        call: &Call,
        resource: &Arc<Resource>,
        namespace: Option<String>,
    ) -> Result<Reply, StatusError> {
        let options = WriteOptions::of_create(&call.query)?;
        let accepted = accepted(call, resource)?;
        let format = media::body_format(&call.headers, resource.builtin_kind().is_some())?;
        let context = &call.context(&options);
        let incoming = Incoming::read(resource, &call.body, format, context.field_validation)?;
        if resource.is_core("bindings") {
            return self.bind_named(incoming, namespace, context, &accepted).await;
        }
        let target = ObjectRef { resource: Arc::clone(resource), namespace, name: String::new() };
        if !resource.is_stored() {
            let verb = admission::Verb::Create;
            let admitted = self.writer.admit(verb, &target, "", context, incoming.object).await?;
            let warnings = [incoming.warnings, admitted.warnings].concat();
            let incoming = Incoming { object: admitted.object, warnings };
            return reviews::answer(self, call, &target, incoming, context, accepted.format).await;
        }
        let request = WriteRequest::new(target, Operation::Create(incoming), context);
        let written = self.writer.write(request).await?;
        self.written(call, resource, written, &accepted)
    }

    async fn deleted(self: &Arc<Self>, call: &Call, place: &ObjectRef) -> Result<Reply, StatusError> {
        let resource = &place.resource;
        let options = call.delete_options()?;
        let accepted = accepted(call, resource)?;
        let context = &call.delete_context(&options);
        let request = WriteRequest::new(place.clone(), Operation::Delete(&options), context);
        let Written { object, removed, warnings, .. } = self.writer.write(request).await?;
        let reply = if removed && !resource.returns_deleted() {
            let status = status_error::deleted(resource.subject(), meta::name(&object), meta::uid(&object));
            Reply::object(200, &status, accepted.format)
        } else {
            object_reply(200, resource, object, Form::new(&accepted, &call.query)?)
        };
        let reply = reply.warnings(&warnings);
        let is_asked = options.propagation_policy.is_some() || options.orphan_dependents.is_some();
        Ok(match resource.usual_propagation() {
            Some(_) if !is_asked && resource.group == "batch" => reply.warning(ORPHANED_PODS),
            _ => reply,
        })
    }

    async fn got(&self, call: &Call, place: &ObjectRef) -> Result<Reply, StatusError> {
        let resource = &place.resource;
        let accepted = accepted(call, resource)?;
        let version = call.query.get("resourceVersion").unwrap_or_default();
        let not_older = crate::read::list::revision_of_one(resource, version)?;
        let entry = self.get(resource, place.namespace.as_deref(), &place.name, not_older).await?;
        let form = Form::new(&accepted, &call.query)?;
        if form == (Form { shape: Shape::Object, format: Format::Json }) {
            let mut json = Vec::with_capacity(entry.value.len() + 64);
            resource.write_json(&entry, entry.modified, &mut json)?;
            json.push(b'\n');
            return Ok(Reply::new(200, json));
        }
        Ok(object_reply(200, resource, resource.read(&entry)?, form))
    }

    async fn put(
        &self,
        call: &Call,
        place: &ObjectRef,
        subresource: Subresource,
    ) -> Result<Reply, StatusError> {
        let options = WriteOptions::of_update(&call.query)?;
        let accepted = accepted(call, &place.resource)?;
        let format = media::body_format(&call.headers, place.resource.builtin_kind().is_some())?;
        let context = &call.context(&options);
        let incoming = Incoming::read(&place.resource, &call.body, format, context.field_validation)?;
        let (target, operation) = (place.clone(), Operation::Replace(incoming));
        let written = self.writer.write(WriteRequest { target, subresource, operation, context }).await?;
        self.written(call, &place.resource, written, &accepted)
    }

    async fn patched(
        &self,
        call: &Call,
        place: &ObjectRef,
        subresource: Subresource,
    ) -> Result<Reply, StatusError> {
        let format = patch_format(call, &place.resource)?;
        let options = WriteOptions::of_patch(&call.query, format == PatchFormat::Apply)?;
        let accepted = accepted(call, &place.resource)?;
        let (context, target) = (&call.context(&options), place.clone());
        let write = |operation| WriteRequest { target, subresource, operation, context };
        let written = if format == PatchFormat::Apply {
            let applying = Applying::read(&place.resource, &call.body, options.force.unwrap_or_default())?;
            self.writer.write(write(Operation::Apply(&applying))).await?
        } else {
            let patch = Patch::read(&call.body, format)?;
            self.writer.write(write(Operation::Patch(&patch))).await?
        };
        self.written(call, &place.resource, written, &accepted)
    }

    async fn got_scale(&self, call: &Call, place: &ObjectRef) -> Result<Reply, StatusError> {
        let resource = &place.resource;
        let accepted = accepted(call, resource)?;
        let entry = self.get(resource, place.namespace.as_deref(), &place.name, None).await?;
        let scale = resource.scale(&resource.read(&entry)?)?;
        let shown = Form::new(&accepted, &call.query)?.shape.of_scale(scale);
        Ok(Reply::object(200, &shown, accepted.format))
    }

    async fn put_scale(&self, call: &Call, place: &ObjectRef) -> Result<Reply, StatusError> {
        let accepted = accepted(call, &place.resource)?;
        let options = WriteOptions::of_update(&call.query)?;
        let format = media::body_format(&call.headers, true)?;
        let change = ScaleChange::Replace(decode_as(&call.body, format, "Scale", &SCALES)?);
        self.rescaled(call, place, &change, &options, &accepted).await
    }

    async fn patched_scale(&self, call: &Call, place: &ObjectRef) -> Result<Reply, StatusError> {
        let accepted = accepted(call, &place.resource)?;
        let format = patch_format(call, &place.resource)?;
        let options = WriteOptions::of_patch(&call.query, format == PatchFormat::Apply)?;
        let change = match format {
            PatchFormat::Apply => {
                ScaleChange::Apply(Applying::read_scale(&call.body, options.force.unwrap_or_default())?)
            }
            format => ScaleChange::Patch(Patch::read(&call.body, format)?),
        };
        self.rescaled(call, place, &change, &options, &accepted).await
    }

    async fn rescaled(
        &self,
        call: &Call,
        place: &ObjectRef,
        change: &ScaleChange,
        options: &WriteOptions,
        accepted: &Accepted,
    ) -> Result<Reply, StatusError> {
        let context = &call.context(options);
        let request = WriteRequest::new(place.clone(), Operation::Scale(change), context);
        let written = self.writer.write(request).await?;
        let scale = place.resource.written_scale(&written.object)?;
        let shown = Form::new(accepted, &call.query)?.shape.of_scale(scale);
        Ok(Reply::object(200, &shown, accepted.format).warnings(&written.warnings))
    }

    async fn watched(
        &self,
        call: &Call,
        resource: &Arc<Resource>,
        of: &Collection,
    ) -> Result<Reply, StatusError> {
        let options = ListOptions::from_query(&call.query)?;
        let accepted = media::accept_stream(&call.headers, endpoint(resource))?;
        let filter = Filter::new(resource, &options)?;
        if of.only.is_some() && !filter.asks_for_all_or(of.only.as_deref()) {
            return Err(StatusError::bad_request("fieldSelector metadata.name doesn't match requested name"));
        }
        let filter = filter.restricted_to(of.only.as_deref());
        let form = Form::new(&accepted, &call.query)?;
        let handshake = match media::asks_for_web_socket(&call.headers) {
            true => match Handshake::read(&call.headers) {
                Ok(handshake) => Some(handshake),
                Err(Refused(code, why)) => return Ok(Reply::plain(code, why)),
            },
            false => None,
        };
        let watcher = self.watch(resource, of.namespace.as_deref(), filter, form, &options).await?;
        let guard = self.metrics.watch();
        if let Some(Handshake { accept, protocol }) = handshake {
            let take_over = move |stream, permit| async move {
                websocket::serve(stream, watcher.into_stream(), form.format).await;
                drop((guard, permit));
            };
            return Ok(Reply::web_socket(&accept, protocol.as_deref(), take_over));
        }
        let stream = futures_util::StreamExt::map(watcher.into_stream(), move |bytes| {
            let _ = &guard;
            bytes
        });
        Ok(Reply::new(200, Body::stream(stream)).typed(form.format.stream_type()).live())
    }

    fn written(
        &self,
        call: &Call,
        resource: &Resource,
        written: Written,
        accepted: &Accepted,
    ) -> Result<Reply, StatusError> {
        let form = Form::new(accepted, &call.query)?;
        let code = if written.created { 201 } else { 200 };
        Ok(object_reply(code, resource, written.object, form).warnings(&written.warnings))
    }
}

/// The versions that scales are read in, as kube-apiserver does.
const SCALES: [&str; 4] = ["autoscaling/v1", "extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"];

/// Said to those who delete a job without saying what is to become of its pods.
const ORPHANED_PODS: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

/// One object in the form that the client asked for.
fn object_reply(code: u16, resource: &Resource, object: Value, form: Form) -> Reply {
    let is_custom = resource.builtin_kind().is_none() && form.shape == Shape::Object;
    let shown = form.shape.of_one(resource, object);
    match is_custom {
        true => Reply::custom_object(code, &shown, form.format),
        false => Reply::object(code, &shown, form.format),
    }
}

/// A page of a list in the form that the client asked for.
async fn list_reply(
    call: &Call,
    resource: &Arc<Resource>,
    listed: Listed,
    accepted: &Accepted,
) -> Result<Reply, StatusError> {
    let form = Form::new(accepted, &call.query)?;
    let body = listed.body(Arc::clone(resource), form).await?;
    Ok(Reply::new(200, body).typed(form.format.media_type()))
}

/// What a request does, for those who count.
fn verb(method: &Method, query: &Query) -> &'static str {
    match *method {
        Method::GET | Method::HEAD if query.flag("watch").unwrap_or_default() => "WATCH",
        Method::GET | Method::HEAD => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// How a patch is written.
fn patch_format(call: &Call, resource: &Resource) -> Result<PatchFormat, StatusError> {
    let is_builtin = resource.builtin_kind().is_some();
    media::patch_format(&call.headers, is_builtin).map_err(|rejected| match rejected {
        _ if is_builtin => StatusError::unknown_media_type(),
        rejected => rejected.into(),
    })
}

/// In which form the client wants to have its answer.
fn accepted(call: &Call, resource: &Resource) -> Result<Accepted, StatusError> {
    Ok(media::accept(&call.headers, endpoint(resource))?)
}

/// The same for a subresource that is no object, and is shown in no columns.
fn accepted_untabled(call: &Call) -> Result<Accepted, StatusError> {
    Ok(media::accept(&call.headers, Endpoint::Untabled)?)
}

/// In which forms a resource is served.
fn endpoint(resource: &Resource) -> Endpoint {
    match resource.builtin_kind() {
        // Reviews and the like, which nobody shows in columns.
        Some(_) if !resource.is_stored() && !resource.is_made_up() => Endpoint::Untabled,
        Some(_) => Endpoint::Objects,
        None => Endpoint::Custom,
    }
}

/// How failures are written: as the client asks for, if it asks for anything that is not made of an object.
fn failure_format(headers: &HeaderMap) -> Format {
    media::accept(headers, Endpoint::Plain).map_or(Format::Json, |accepted| accepted.format)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<F: Future>(_: impl FnOnce(Arc<Server>, Request, Identity) -> F) -> usize {
        size_of::<F>()
    }

    /// It is written to the heap for every request: at 20 kB, that was most of what a get of an object cost.
    #[test]
    fn the_future_of_a_request_is_small() {
        let size = size(Server::answer);
        assert!(size < 4096, "{size} bytes");
    }
}
