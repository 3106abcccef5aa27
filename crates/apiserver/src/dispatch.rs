//! From requests to what is done about them.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method};

use crate::failure::Failure;
use crate::filter::Filter;
use crate::front::{Body, BodyError, Identity, MAX_REQUEST_BYTES, Request, Response};
use crate::render::{Form, Shape};
use crate::reply::Reply;
use crate::request::delete_options::DeleteOptions;
use crate::request::list_options::ListOptions;
use crate::request::media::{self, Accepted, Endpoint, Format, PatchFormat, Transform};
use crate::request::path::{Prefix, ResourceTarget, Target};
use crate::request::query::Query;
use crate::request::write_options::WriteOptions;
use crate::resource::Resource;
use crate::server::Server;
use crate::write::{Applying, Incoming, Manner, Part, Patch, Place, ScaleChange, Written};
use crate::{deadline, discovery, gzip, health, openapi};

/// A request, read as far as every handler needs it.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    /// Who sent it, or on whose behalf it was sent.
    pub(crate) identity: Arc<Identity>,
    /// The path with nothing escaped, as rules name it.
    pub(crate) decoded_path: String,
    pub(crate) pretty: bool,
    pub(crate) body: Bytes,
}

impl Call {
    fn new(parts: Parts, identity: Identity) -> Self {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let pretty = media::pretty(&parts.headers, &query);
        Self {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            headers: parts.headers,
            query,
            identity: Arc::new(identity),
            decoded_path: String::new(),
            pretty,
            body: Bytes::new(),
        }
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
        let call = Call::new(parts, identity);
        let (audit, pretty) = (call.headers.get("audit-id").cloned(), call.pretty);
        let verb = verb(&call);
        let (format, gzip) = (failure_format(&call.headers), gzip::is_wanted(&call.headers));
        let reply = match self.read_and_route(call, body).await {
            Ok(reply) => reply,
            Err(failure) => Reply::failure(&failure, format),
        };
        self.metrics.answered(verb, reply.code(), started.elapsed());
        reply.into_response(audit, pretty, gzip)
    }

    /// Reads the body of a request, once it is known that its sender may send it.
    async fn read_and_route(self: &Arc<Self>, mut call: Call, body: Body) -> Result<Reply, Failure> {
        let target = Target::parse(&call.path)?;
        if !matches!(target, Target::Resource(_)) {
            call.decoded_path = crate::request::unescaped_segment(&call.path).unwrap_or_default();
        }
        if let Err(failure) = self.authorize(&mut call, &target) {
            let reply = Reply::failure(&failure, failure_format(&call.headers));
            return Ok(reply.header("x-content-type-options", "nosniff"));
        }
        let limit = self.limit(&call, &target);
        let answer = async {
            if !matches!(call.method, Method::GET | Method::HEAD) {
                call.body = body.read(MAX_REQUEST_BYTES).await.map_err(|error| match error {
                    BodyError::TooLarge { limit } => Failure::too_large(&format!("limit is {limit}")),
                    error => Failure::bad_request(format!("the body could not be read: {error}")),
                })?;
            }
            self.route(call, target).await
        };
        deadline::within(limit, answer).await
    }

    async fn route(self: &Arc<Self>, call: Call, target: Target) -> Result<Reply, Failure> {
        if let Target::Resource(target) = target {
            return self.resource(call, target).await;
        }
        if !matches!(call.method, Method::GET | Method::HEAD) {
            return Err(Failure::unknown_method());
        }
        let registry = self.registry();
        if matches!(target, Target::Core | Target::Groups)
            && let Some(format) = media::aggregated_discovery(&call.headers)
        {
            return Ok(self.discovered(&call, target == Target::Core, format));
        }
        let format = match target {
            Target::Other(_) => Format::Json,
            _ => media::accept(&call.headers, Endpoint::Untabled)?.format,
        };
        match target {
            Target::Core | Target::Groups => {
                let core = target == Target::Core;
                let address = call
                    .headers
                    .get(http::header::HOST)
                    .and_then(|host| host.to_str().ok())
                    .unwrap_or_default();
                let value = if core {
                    discovery::core_versions(&registry, address)
                } else {
                    discovery::groups(&registry)
                };
                Ok(Reply::object(200, &value, format))
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
            Target::Other(path) => match path.strip_prefix("/openapi/") {
                Some(document) => openapi::answer(self, &call, document),
                None if self.accounts.serves(&path) => Ok(self.accounts.document(&call, &path)),
                None => Ok(health::answer(self, &call, &path)),
            },
            Target::Resource(_) => unreachable!("handled above"),
        }
    }

    /// Everything that is served, in one answer that clients keep.
    fn discovered(&self, call: &Call, core: bool, format: Format) -> Reply {
        let value = discovery::aggregated(&self.registry(), core);
        let said = format!("{};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", format.media_type());
        let mut reply = Reply::object(200, &value, format).typed(&said);
        reply.tag(&call.headers);
        reply.header("vary", "Accept")
    }

    async fn resource(self: &Arc<Self>, call: Call, target: ResourceTarget) -> Result<Reply, Failure> {
        call.query.timeout()?;
        let registry = self.registry();
        let Some(resource) = registry.find(&target.group, &target.version, &target.resource) else {
            let builtin = registry.group(&target.group).is_some_and(|group| group.is_builtin());
            return if builtin { Err(Failure::no_such_path()) } else { Ok(Reply::no_such_page()) };
        };
        if call.method == Method::HEAD {
            return Err(Failure::unknown_method());
        }
        if resource.builtin_kind().is_some() && !media::is_routed(&call.headers) {
            let is_list = call.method == Method::GET && target.name.is_none();
            return Err(Failure::not_routed(is_list));
        }
        // A namespace is not in a namespace, though its path looks like that.
        let namespace = target.namespace.filter(|_| resource.namespaced || !resource.is_core("namespaces"));
        let misplaced = match (&namespace, &target.name) {
            (Some(_), _) => !resource.namespaced,
            (None, Some(_)) => resource.namespaced,
            (None, None) => false,
        };
        let needs_node =
            target.subresource.as_deref().is_some_and(|part| crate::denial::needs_node(&resource, part));
        if misplaced || target.prefix == Some(Prefix::Proxy) || (target.rest.is_some() && !needs_node) {
            return Ok(Reply::no_such_page());
        }
        let watching = target.prefix == Some(Prefix::Watch);
        let reply = match (target.name, target.subresource) {
            (None, _) => self.collection(&call, &resource, namespace, watching).await,
            (Some(name), None) if watching => {
                let name = Some(name);
                self.watched(&call, &resource, namespace.as_deref(), name.as_deref()).await
            }
            (Some(name), None) => {
                let place = Place { resource: Arc::clone(&resource), namespace, name };
                self.object(&call, &place).await
            }
            (Some(name), Some(subresource)) => {
                let place = Place { resource: Arc::clone(&resource), namespace, name };
                if needs_node {
                    self.get(&resource, place.namespace.as_deref(), &place.name, None).await?;
                    return Err(crate::denial::no_node(&place, &subresource));
                }
                if !resource.has_subresource(&subresource) {
                    return match resource.builtin_kind() {
                        Some(_) => Err(Failure::no_such_path()),
                        None => Err(place.not_found()),
                    };
                }
                self.subresource(&call, &place, &subresource).await
            }
        };
        let deprecated = match resource.custom_version() {
            Some((_, version)) => version.warning.clone(),
            None => resource.deprecation().map(str::to_owned),
        };
        let Some(warning) = deprecated else { return reply };
        let reply = reply.unwrap_or_else(|failure| Reply::failure(&failure, failure_format(&call.headers)));
        Ok(reply.warning_first(&warning))
    }

    async fn collection(
        self: &Arc<Self>,
        call: &Call,
        resource: &Arc<Resource>,
        namespace: Option<String>,
        watching: bool,
    ) -> Result<Reply, Failure> {
        match call.method {
            Method::GET | Method::HEAD if !resource.is_stored() => Err(Failure::unknown_method()),
            Method::GET | Method::HEAD => {
                if watching || call.query.flag("watch").unwrap_or_default() {
                    return self.watched(call, resource, namespace.as_deref(), None).await;
                }
                let options = ListOptions::from_query(&call.query)?;
                let accepted = accepted(call, resource)?;
                if accepted.transform == Transform::Partial && !accepted.is_partial_list {
                    return Err(Failure::not_one(resource));
                }
                let filter = Filter::new(resource, &options)?;
                let listed = self.list(resource, namespace.as_deref(), &filter, &options).await?;
                let form = Form::new(&accepted, &call.query)?;
                let body = listed.body(Arc::clone(resource), form).await?;
                Ok(Reply::new(200, body).typed(form.format.media_type()))
            }
            Method::POST => self.posted(call, resource, namespace).await,
            Method::DELETE if resource.verbs().contains(&"deletecollection") => {
                let options = call.delete_options()?;
                let list = ListOptions::from_query(&call.query)?;
                let filter = Filter::new(resource, &list)?;
                let accepted = accepted(call, resource)?;
                let listed =
                    self.delete_collection(resource, namespace.as_deref(), &filter, &list, &options).await?;
                let form = Form::new(&accepted, &call.query)?;
                let body = listed.body(Arc::clone(resource), form).await?;
                Ok(Reply::new(200, body).typed(form.format.media_type()))
            }
            _ => Err(Failure::unknown_method()),
        }
    }

    async fn posted(
        self: &Arc<Self>,
        call: &Call,
        resource: &Arc<Resource>,
        namespace: Option<String>,
    ) -> Result<Reply, Failure> {
        if resource.namespaced && namespace.is_none() {
            return Err(Failure::unknown_method());
        }
        let options = WriteOptions::of_create(&call.query)?;
        let accepted = accepted(call, resource)?;
        let format = media::body_format(&call.headers, resource.builtin_kind().is_some())?;
        let manner = call.manner(&options);
        let incoming = Incoming::read(resource, &call.body, format, &manner)?;
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

    async fn object(self: &Arc<Self>, call: &Call, place: &Place) -> Result<Reply, Failure> {
        let resource = &place.resource;
        if !resource.is_stored() {
            return Err(Failure::unknown_method());
        }
        match call.method {
            Method::GET | Method::HEAD => self.got(call, place).await,
            Method::PUT => self.put(call, place, Part::Main).await,
            Method::PATCH => self.patched(call, place, Part::Main).await,
            Method::DELETE => {
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
            _ => Err(Failure::unknown_method()),
        }
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

    async fn subresource(self: &Arc<Self>, call: &Call, place: &Place, name: &str) -> Result<Reply, Failure> {
        if name == "scale" {
            return self.scaled(call, place).await;
        }
        match (name, &call.method) {
            ("binding", &Method::POST) => return self.bind(call, place).await,
            ("eviction", &Method::POST) => return self.evict(call, place).await,
            ("token", &Method::POST) => return self.issue_token(call, place).await,
            ("token", _) => return Err(Failure::unknown_method()),
            _ => {}
        }
        let Some(part) = Part::of(name) else {
            return Err(crate::denial::no_node(place, name));
        };
        match call.method {
            Method::GET | Method::HEAD if part != Part::Finalize => self.got(call, place).await,
            Method::PUT => self.put(call, place, part).await,
            Method::PATCH if part != Part::Finalize => self.patched(call, place, part).await,
            _ => Err(place.resource.unknown_method(&call.method)),
        }
    }

    async fn scaled(&self, call: &Call, place: &Place) -> Result<Reply, Failure> {
        let resource = &place.resource;
        let accepted = accepted(call, resource)?;
        let (change, options) = match call.method {
            Method::GET | Method::HEAD => {
                let entry = self.get(resource, place.namespace.as_deref(), &place.name, None).await?;
                let scale = resource.scale(&resource.read(&entry)?)?;
                let shown = Form::new(&accepted, &call.query)?.shape.of_scale(scale);
                return Ok(Reply::object(200, &shown, accepted.format));
            }
            Method::PUT => {
                let options = WriteOptions::of_update(&call.query)?;
                let format = media::body_format(&call.headers, true)?;
                (ScaleChange::Replace(crate::write::decode(&call.body, format)?), options)
            }
            Method::PATCH => {
                let format = patch_format(call, resource)?;
                let options = WriteOptions::of_patch(&call.query, format == PatchFormat::Apply)?;
                (ScaleChange::Patch(Patch::read(&call.body, format)?), options)
            }
            _ => return Err(resource.unknown_method(&call.method)),
        };
        let written = self.rescale(place, &change, &call.manner(&options)).await?;
        let shown = Form::new(&accepted, &call.query)?.shape.of_scale(written.object);
        Ok(Reply::object(200, &shown, accepted.format))
    }

    /// Puts a pod on a node.
    async fn bind(&self, call: &Call, place: &Place) -> Result<Reply, Failure> {
        let options = WriteOptions::of_create(&call.query)?;
        let accepted = accepted(call, &place.resource)?;
        let binding = crate::write::decode(&call.body, media::body_format(&call.headers, true)?)?;
        self.assign(place, binding["target"]["name"].as_str().unwrap_or_default(), &call.manner(&options))
            .await?;
        Ok(Reply::object(201, &crate::failure::success(201), accepted.format))
    }

    /// Deletes a pod in a polite way.
    async fn evict(&self, call: &Call, place: &Place) -> Result<Reply, Failure> {
        let accepted = accepted(call, &place.resource)?;
        let eviction = crate::write::decode(&call.body, media::body_format(&call.headers, true)?)?;
        let mut options = DeleteOptions::read(&call.query, eviction.get("deleteOptions"))?;
        options.dry_run |= WriteOptions::of_create(&call.query)?.dry_run;
        self.delete(place, &options).await?;
        Ok(Reply::object(201, &crate::failure::success(201), accepted.format))
    }

    async fn watched(
        &self,
        call: &Call,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Result<Reply, Failure> {
        let options = ListOptions::from_query(&call.query)?;
        let accepted = media::accept_stream(&call.headers, endpoint(resource))?;
        let filter = Filter::new(resource, &options)?.restricted_to(name);
        let form = Form::new(&accepted, &call.query)?;
        if media::asks_for_web_socket(&call.headers) {
            // Clients that try one first (fabric8) wait for the end of an answer that refuses it, and only a 200 has them
            // fall back to a plain watch.
            return Ok(Reply::new(200, Body::empty()).typed(form.format.stream_type()));
        }
        let watcher = self.watch(resource, namespace, filter, form, &options).await?;
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

/// Said to those who delete a job without saying what is to become of its pods.
const ORPHANED_PODS: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

/// What a request does, for those who count.
fn verb(call: &Call) -> &'static str {
    match call.method {
        Method::GET | Method::HEAD if call.query.flag("watch").unwrap_or_default() => "WATCH",
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
