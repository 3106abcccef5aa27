//! From requests to what is done about them.

mod pods;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};

use crate::access::{Authorized, Split};
use crate::authentication::Identity;
use crate::documents::Name;
use crate::failure::Failure;
use crate::filter::Filter;
use crate::front::{Body, BodyError, Request, Response};
use crate::in_flight::Class;
use crate::render::{Form, Shape};
use crate::reply::Reply;
use crate::request::action::{Action, PageAction, Verb};
use crate::request::delete_options::DeleteOptions;
use crate::request::list_options::ListOptions;
use crate::request::media::{self, Accepted, Endpoint, Format, PatchFormat, Transform};
use crate::request::path::Target;
use crate::request::query::Query;
use crate::request::write_options::WriteOptions;
use crate::resource::Resource;
use crate::route::{Collection, Operation, Route, Unrouted};
use crate::server::Server;
use crate::write::{Applying, Incoming, Manner, Part, Patch, Place, ScaleChange, Written, decode_as};
use crate::{access, deadline, discovery, gzip, health, openapi};

/// No request may have a larger body, as in kube-apiserver: 3 MiB.
pub const MAX_REQUEST_BYTES: usize = 3 << 20;

/// A request, read as far as every handler needs it. What it asks for is not here: that is an [`Action`].
pub(crate) struct Call {
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    /// Who sent it, or on whose behalf it was sent.
    pub(crate) identity: Arc<Identity>,
    pub(crate) pretty: bool,
    pub(crate) body: Bytes,
}

impl Call {
    fn new(headers: HeaderMap, query: Query, identity: Identity) -> Self {
        let pretty = media::pretty(&headers, &query);
        Self { headers, query, identity: Arc::new(identity), pretty, body: Bytes::new() }
    }

    fn delete_options(&self) -> Result<DeleteOptions, Failure> {
        if self.body.is_empty() {
            return Ok(DeleteOptions::read(&self.query, None)?);
        }
        let options = crate::write::decode(&self.body, media::body_format(&self.headers, true)?)?;
        Ok(DeleteOptions::read(&self.query, Some(&options))?)
    }

    fn user_agent(&self) -> &str {
        self.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub(crate) fn manner(&self, options: &WriteOptions) -> Manner {
        let agent = self.user_agent().split('/').next().unwrap_or_default();
        let manager = if options.field_manager.is_empty() { agent } else { &options.field_manager };
        Manner {
            dry_run: options.dry_run,
            manager: manager.chars().take(128).collect(),
            field_validation: options.field_validation,
            author: Some(Arc::clone(&self.identity)),
            ..Manner::default()
        }
    }
}

impl Server {
    /// Answers a request.
    pub(crate) async fn answer(self: Arc<Self>, request: Request, identity: Identity) -> Response {
        let started = std::time::Instant::now();
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let verb = verb(&parts.method, &query);
        let action = Action::of(&parts.method, parts.uri.path(), &query);
        let call = Call::new(parts.headers, query, identity);
        let (audit, pretty) = (call.headers.get("audit-id").cloned(), call.pretty);
        let (format, gzip) = (failure_format(&call.headers), gzip::is_wanted(&call.headers));
        let answer = async {
            let action = action?;
            self.authorize_and_serve(call, action, body).await
        };
        let reply = match answer.await {
            Ok(reply) => reply,
            Err(failure) => Reply::failure(&failure, format),
        };
        self.metrics.answered(verb, reply.code(), started.elapsed());
        reply.into_response(audit, pretty, gzip)
    }

    /// Reads the body of a request, once it is known that its sender may send it.
    async fn authorize_and_serve(
        self: &Arc<Self>,
        mut call: Call,
        action: Action,
        body: Body,
    ) -> Result<Reply, Failure> {
        let action = match self.authorize(&mut call, action) {
            Ok(action) => action,
            Err(failure) => {
                let reply = Reply::failure(&failure, failure_format(&call.headers));
                return Ok(reply.header("x-content-type-options", "nosniff"));
            }
        };
        let class = Class::of(&access::request(&action));
        let permit = match self.in_flight.enter(class, &call.identity) {
            Ok(permit) => permit,
            Err(rejected) => {
                self.metrics.rejected(class, rejected);
                return Ok(Reply::too_many_requests());
            }
        };
        let limit = self.limit(&call, &action);
        let answer = async {
            if action.has_body() {
                call.body =
                    self.budget.read(&call.identity.user, body).await.map_err(|error| match error {
                        BodyError::TooLarge { limit } => Failure::too_large(&format!("limit is {limit}")),
                        error => Failure::bad_request(format!("the body could not be read: {error}")),
                    })?;
            }
            let claim = self.budget.body(&call.body).await?;
            let server = Arc::clone(self);
            self.budget.run(claim, async move { server.serve(call, action).await }).await
        };
        Ok(deadline::within(limit, answer).await?.until_sent(permit))
    }

    async fn serve(self: &Arc<Self>, call: Call, action: Authorized<Action>) -> Result<Reply, Failure> {
        match action.split() {
            Split::Resource(action) => self.resource(call, action).await,
            Split::Page(page) => self.answer_page(&call, page).await,
        }
    }

    /// Answers what is not about objects: discovery, documents, health.
    async fn answer_page(
        self: &Arc<Self>,
        call: &Call,
        page: Authorized<PageAction>,
    ) -> Result<Reply, Failure> {
        let PageAction { verb, path, target } = page.into_inner();
        let registry = self.registry();
        // Some pages of kube-apiserver look at no method. The others know GET and nothing else.
        let knows_get_only = match &target {
            Target::Core => true,
            Target::Version { group, .. } => registry.group(group).is_some_and(|group| group.is_builtin()),
            Target::Other(path) => path.trim_end_matches('/') == "/version" || self.accounts.serves(path),
            _ => false,
        };
        if knows_get_only && verb != "get" {
            return Err(Failure::unknown_method());
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
            Target::Group(group) => match registry.group(&group).filter(|group| !group.name.is_empty()) {
                Some(group) => Ok(Reply::object(200, &discovery::group(group), format)),
                None => Ok(Reply::no_such_page()),
            },
            Target::Version { group, version } => {
                let found = registry.group(&group).and_then(|group| {
                    let version = group.versions.iter().find(|found| found.version == version)?;
                    Some(discovery::resources(&group.name, version))
                });
                match found {
                    Some(list) => Ok(Reply::object(200, &list, format)),
                    // Of a group that is there, a version is missing; of others, nothing is known.
                    None if registry.group(&group).is_some_and(|group| group.is_builtin()) => {
                        Err(Failure::no_such_path())
                    }
                    None => Ok(Reply::no_such_page()),
                }
            }
            Target::Root => Ok(Reply::json(200, &health::paths(&registry))),
            Target::Other(_) | Target::Resource(_) => match path.strip_prefix("/openapi/") {
                Some(document) => openapi::answer(self, call, document).await,
                None if self.accounts.serves(&path) => Ok(self.account_document(&path)),
                None => Ok(health::answer(self, call, &path)),
            },
        }
    }

    /// Everything that is served, in one answer that clients keep.
    async fn discovered(&self, call: &Call, core: bool, format: Format) -> Result<Reply, Failure> {
        let registry = self.registry();
        let made = Arc::clone(&registry);
        let make = move || Reply::encode(&discovery::aggregated(&made, core), format).unwrap_or_default();
        let name = Name::Discovery { core, format };
        let document = registry.documents.get(name, &self.documenting, make).await?;
        let said = format!("{};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", format.media_type());
        Ok(Reply::document(document, &call.headers).typed(&said).header("vary", "Accept"))
    }

    /// Does something with objects.
    async fn resource(self: &Arc<Self>, call: Call, action: Authorized) -> Result<Reply, Failure> {
        call.query.timeout()?;
        let found = self.registry().resource_of(action.action()).and_then(|resource| {
            if resource.builtin_kind().is_some() && !media::is_routed(&call.headers) {
                let is_list = matches!(action.action().verb, Verb::List | Verb::Watch);
                return Err(Failure::not_routed(is_list).into());
            }
            Route::find(action, resource)
        });
        let Route { resource, operation } = match found {
            Ok(route) => route,
            Err(Unrouted::NoSuchPage) => return Ok(Reply::no_such_page()),
            Err(Unrouted::Failure(failure)) => return Err(failure),
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
        operation: Operation,
    ) -> Result<Reply, Failure> {
        match operation {
            Operation::List(of) => self.listed(call, resource, &of).await,
            Operation::Watch(of) => self.watched(call, resource, &of).await,
            Operation::DeleteCollection(of) => self.collection_deleted(call, resource, &of).await,
            Operation::Create(of) => self.posted(call, resource, of.namespace).await,
            Operation::Get(place) => self.got(call, &place).await,
            Operation::Update(place, part) => self.put(call, &place, part).await,
            Operation::Patch(place, part) => self.patched(call, &place, part).await,
            Operation::Delete(place) => self.deleted(call, &place).await,
            Operation::GetScale(place) => self.got_scale(call, &place).await,
            Operation::UpdateScale(place) => self.put_scale(call, &place).await,
            Operation::PatchScale(place) => self.patched_scale(call, &place).await,
            Operation::Bind(place) => self.bind(call, &place).await,
            Operation::Evict(place) => self.evict(call, &place).await,
            Operation::IssueToken(place) => self.issue_token(call, &place).await,
            Operation::Connect(place, subresource) if subresource == "log" => self.logged(call, &place).await,
            Operation::Connect(place, subresource) => {
                self.get(resource, place.namespace.as_deref(), &place.name, None).await?;
                Err(crate::denial::no_node(&place, &subresource))
            }
        }
    }

    async fn listed(&self, call: &Call, resource: &Arc<Resource>, of: &Collection) -> Result<Reply, Failure> {
        let options = ListOptions::from_query(&call.query)?;
        let accepted = accepted(call, resource)?;
        if accepted.transform == Transform::Partial && !accepted.is_partial_list {
            return Err(Failure::not_one(resource));
        }
        let filter = Filter::new(resource, &options)?.restricted_to(of.only.as_deref());
        let listed = self.list(resource, of.namespace.as_deref(), &filter, &options).await?;
        let form = Form::new(&accepted, &call.query)?;
        let body = listed.body(Arc::clone(resource), form).await?;
        Ok(Reply::new(200, body).typed(form.format.media_type()))
    }

    async fn collection_deleted(
        self: &Arc<Self>,
        call: &Call,
        resource: &Arc<Resource>,
        of: &Collection,
    ) -> Result<Reply, Failure> {
        let options = call.delete_options()?;
        let list = ListOptions::from_query(&call.query)?;
        let filter = Filter::new(resource, &list)?;
        let accepted = accepted(call, resource)?;
        let listed =
            self.delete_collection(resource, of.namespace.as_deref(), &filter, &list, &options).await?;
        let form = Form::new(&accepted, &call.query)?;
        let body = listed.body(Arc::clone(resource), form).await?;
        Ok(Reply::new(200, body).typed(form.format.media_type()))
    }

    async fn posted(
        self: &Arc<Self>,
        call: &Call,
        resource: &Arc<Resource>,
        namespace: Option<String>,
    ) -> Result<Reply, Failure> {
        let options = WriteOptions::of_create(&call.query)?;
        let accepted = accepted(call, resource)?;
        let format = media::body_format(&call.headers, resource.builtin_kind().is_some())?;
        let manner = call.manner(&options);
        let incoming = Incoming::read(resource, &call.body, format, &manner)?;
        if resource.is_core("bindings") {
            return self.bind_named(incoming.object, namespace, &manner, &accepted).await;
        }
        if !resource.is_stored() {
            let namespace = namespace.as_deref();
            return crate::reviews::answer(
                self,
                call,
                resource,
                namespace,
                incoming,
                &manner,
                accepted.format,
            )
            .await;
        }
        let place = Place { resource: Arc::clone(resource), namespace, name: String::new() };
        let written = self.create(&place, incoming, &manner).await?;
        self.written(call, resource, written, &accepted)
    }

    async fn deleted(self: &Arc<Self>, call: &Call, place: &Place) -> Result<Reply, Failure> {
        let resource = &place.resource;
        let options = call.delete_options()?;
        let accepted = accepted(call, resource)?;
        let (object, is_object) = self.delete(place, &options).await?.answer(resource);
        let object = if is_object {
            let form = Form::new(&accepted, &call.query)?;
            form.shape.of_one(resource, object)
        } else {
            object
        };
        let reply = Reply::object(200, &object, accepted.format);
        let is_asked = options.propagation_policy.is_some() || options.orphan_dependents.is_some();
        Ok(match resource.usual_propagation() {
            Some(_) if !is_asked && resource.group == "batch" => reply.warning(ORPHANED_PODS),
            _ => reply,
        })
    }

    async fn got(&self, call: &Call, place: &Place) -> Result<Reply, Failure> {
        let resource = &place.resource;
        let accepted = accepted(call, resource)?;
        let version = call.query.get("resourceVersion").unwrap_or_default();
        let not_older = crate::list::revision_of_one(resource, version)?;
        let entry = self.get(resource, place.namespace.as_deref(), &place.name, not_older).await?;
        let form = Form::new(&accepted, &call.query)?;
        if form == (Form { shape: Shape::Object, format: Format::Json }) {
            let mut json = Vec::with_capacity(entry.value.len() + 64);
            resource.write_json(&entry, entry.modified, &mut json)?;
            json.push(b'\n');
            return Ok(Reply::new(200, json));
        }
        Ok(Reply::object(200, &form.shape.of_one(resource, resource.read(&entry)?), form.format))
    }

    async fn put(&self, call: &Call, place: &Place, part: Part) -> Result<Reply, Failure> {
        let options = WriteOptions::of_update(&call.query)?;
        let accepted = accepted(call, &place.resource)?;
        let format = media::body_format(&call.headers, place.resource.builtin_kind().is_some())?;
        let manner = call.manner(&options);
        let incoming = Incoming::read(&place.resource, &call.body, format, &manner)?;
        let written = self.update(place, part, incoming, &manner).await?;
        self.written(call, &place.resource, written, &accepted)
    }

    async fn patched(&self, call: &Call, place: &Place, part: Part) -> Result<Reply, Failure> {
        let format = patch_format(call, &place.resource)?;
        let options = WriteOptions::of_patch(&call.query, format == PatchFormat::Apply)?;
        let accepted = accepted(call, &place.resource)?;
        let manner = call.manner(&options);
        if format == PatchFormat::Apply {
            let applying = Applying::read(&place.resource, &call.body, options.force.unwrap_or_default())?;
            let written = self.apply(place, part, &applying, &manner).await?;
            return self.written(call, &place.resource, written, &accepted);
        }
        let patch = Patch::read(&call.body, format)?;
        let written = self.patch(place, part, &patch, &manner).await?;
        self.written(call, &place.resource, written, &accepted)
    }

    async fn got_scale(&self, call: &Call, place: &Place) -> Result<Reply, Failure> {
        let resource = &place.resource;
        let accepted = accepted(call, resource)?;
        let entry = self.get(resource, place.namespace.as_deref(), &place.name, None).await?;
        let scale = resource.scale(&resource.read(&entry)?)?;
        let shown = Form::new(&accepted, &call.query)?.shape.of_scale(scale);
        Ok(Reply::object(200, &shown, accepted.format))
    }

    async fn put_scale(&self, call: &Call, place: &Place) -> Result<Reply, Failure> {
        let accepted = accepted(call, &place.resource)?;
        let options = WriteOptions::of_update(&call.query)?;
        let format = media::body_format(&call.headers, true)?;
        let change = ScaleChange::Replace(decode_as(&call.body, format, "Scale", &SCALES)?);
        self.rescaled(call, place, &change, &options, &accepted).await
    }

    async fn patched_scale(&self, call: &Call, place: &Place) -> Result<Reply, Failure> {
        let accepted = accepted(call, &place.resource)?;
        let format = patch_format(call, &place.resource)?;
        let options = WriteOptions::of_patch(&call.query, format == PatchFormat::Apply)?;
        let change = ScaleChange::Patch(Patch::read(&call.body, format)?);
        self.rescaled(call, place, &change, &options, &accepted).await
    }

    async fn rescaled(
        &self,
        call: &Call,
        place: &Place,
        change: &ScaleChange,
        options: &WriteOptions,
        accepted: &Accepted,
    ) -> Result<Reply, Failure> {
        let written = self.rescale(place, change, &call.manner(options)).await?;
        let shown = Form::new(accepted, &call.query)?.shape.of_scale(written.object);
        Ok(Reply::object(200, &shown, accepted.format))
    }

    async fn watched(
        &self,
        call: &Call,
        resource: &Arc<Resource>,
        of: &Collection,
    ) -> Result<Reply, Failure> {
        let options = ListOptions::from_query(&call.query)?;
        let accepted = media::accept_stream(&call.headers, endpoint(resource))?;
        let filter = Filter::new(resource, &options)?;
        if of.only.is_some() && !filter.asks_for_all_or(of.only.as_deref()) {
            return Err(Failure::bad_request("fieldSelector metadata.name doesn't match requested name"));
        }
        let filter = filter.restricted_to(of.only.as_deref());
        let form = Form::new(&accepted, &call.query)?;
        if media::asks_for_web_socket(&call.headers) {
            // Clients that try one first (fabric8) wait for the end of an answer that refuses it, and only a 200 has them
            // fall back to a plain watch.
            return Ok(Reply::new(200, Body::empty()).typed(form.format.stream_type()));
        }
        let watcher = self.watch(resource, of.namespace.as_deref(), filter, form, &options).await?;
        let guard = self.metrics.watch();
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
    ) -> Result<Reply, Failure> {
        let form = Form::new(accepted, &call.query)?;
        let code = if written.created { 201 } else { 200 };
        let reply = Reply::object(code, &form.shape.of_one(resource, written.object), form.format);
        Ok(written.warnings.iter().fold(reply, |reply, warning| reply.warning(warning)))
    }
}

/// The versions that scales are read in, as kube-apiserver does.
const SCALES: [&str; 4] = ["autoscaling/v1", "extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"];

/// Said to those who delete a job without saying what is to become of its pods.
const ORPHANED_PODS: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

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
fn patch_format(call: &Call, resource: &Resource) -> Result<PatchFormat, Failure> {
    let is_builtin = resource.builtin_kind().is_some();
    media::patch_format(&call.headers, is_builtin).map_err(|rejected| match rejected {
        _ if is_builtin => Failure::unknown_media_type(),
        rejected => rejected.into(),
    })
}

/// In which form the client wants to have its answer.
fn accepted(call: &Call, resource: &Resource) -> Result<Accepted, Failure> {
    Ok(media::accept(&call.headers, endpoint(resource))?)
}

/// In which forms a resource is served.
fn endpoint(resource: &Resource) -> Endpoint {
    if resource.builtin_kind().is_some() { Endpoint::Objects } else { Endpoint::Custom }
}

/// How failures are written: as the client asks for, if it asks for anything that is not made of an object.
fn failure_format(headers: &HeaderMap) -> Format {
    media::accept(headers, Endpoint::Plain).map_or(Format::Json, |accepted| accepted.format)
}
