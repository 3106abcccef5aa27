//! Issuing tokens: the subresource `token` of ServiceAccounts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use watchkeeper_rbac::account_user;
use watchkeeper_schema::{FieldError, Path};

use crate::handlers::call::Call;
use crate::handlers::reply::Reply;
use crate::object::meta;
use crate::request::media::{self, Endpoint};
use crate::request::write_options::WriteOptions;
use crate::resource::ObjectRef;
use crate::server::Server;
use crate::status_error::{StatusError, Subject};
use crate::write::admission::Verb;
use crate::write::decode_as;

const KIND: Subject<'static> = Subject { group: "authentication.k8s.io", name: "TokenRequest" };
const VERSION: &str = "authentication.k8s.io/v1";

/// How long a token is good unless something else is asked for.
const USUAL: i64 = 3600;
/// Clients that ask for exactly this long for a pod are those who did not ask: their tokens live longer, and say since when
/// they should have been replaced.
const UNASKED: i64 = 3607;
const EXTENDED: i64 = 365 * 24 * 3600;

/// What a token is bound to.
#[derive(Default)]
struct Bound {
    pod: Option<Value>,
    secret: Option<Value>,
    node: Option<Value>,
}

impl Server {
    /// Issues a token.
    pub(crate) async fn issue_token(&self, call: &Call, place: &ObjectRef) -> Result<Reply, StatusError> {
        let options = WriteOptions::of_create(&call.query)?;
        let accepted = media::accept(&call.headers, Endpoint::Untabled)?;
        let format = media::body_format(&call.headers, true)?;
        let object = decode_as(&call.body, format, KIND.name, &[VERSION])?;
        let namespace = place.namespace.as_deref().unwrap_or_default();
        for (field, is) in [("name", place.name.as_str()), ("namespace", namespace)] {
            let given = meta::text(&object, field);
            if !given.is_empty() && given != is {
                let at = Path::root().child("metadata").child(field);
                let why = format!("must match the service account {field} if specified");
                let error = FieldError::invalid(&at, given, why);
                return Err(StatusError::invalid(KIND, &place.name, &[error]));
            }
        }
        let context = &call.context(&options);
        let admitted = self.writer.admit(Verb::Create, place, "token", context, object).await?;
        let issued = self.issue_admitted(place, &admitted.object, &context.manager).await;
        let issued = issued.map_err(|failure| failure.with_more_warnings(&admitted.warnings))?;
        Ok(Reply::object(201, &issued, accepted.format).warnings(&admitted.warnings))
    }

    /// Issues a token that admission has nothing against.
    async fn issue_admitted(
        &self,
        place: &ObjectRef,
        object: &Value,
        manager: &str,
    ) -> Result<Value, StatusError> {
        let namespace = place.namespace.as_deref().unwrap_or_default();
        let entry = self.get(&place.resource, place.namespace.as_deref(), &place.name, None).await?;
        let account = place.resource.read(&entry)?;
        let uid = meta::uid(&account);
        let given = meta::uid(object);
        if !given.is_empty() && given != uid {
            let why = format!(
                "the UID in the token request ({given}) does not match the UID of the service account ({uid})"
            );
            return Err(StatusError::conflict(KIND, &place.name, &why));
        }
        let managed = self.owners(object, manager);
        let spec = Spec::read(object, self.accounts.tokens.audiences())?;
        let now = self.options.clock.now();
        let bound = self.bound(place, &spec).await?;
        let claims = spec.claims(place, &account, &bound, now, self.accounts.tokens.audiences());
        let token = self
            .accounts
            .tokens
            .sign(claims)
            .ok_or_else(|| StatusError::internal("failed to generate token"))?;
        Ok(json!({
            "kind": "TokenRequest",
            "apiVersion": VERSION,
            "metadata": {
                "name": place.name, "namespace": namespace, "uid": uid,
                "creationTimestamp": crate::object::time::stamp(now), "managedFields": managed,
            },
            "spec": {"audiences": spec.audiences, "expirationSeconds": spec.seconds, "boundObjectRef": spec.reference},
            "status": {
                "token": token,
                "expirationTimestamp": crate::object::time::stamp(crate::object::time::after(now, Duration::from_secs(spec.seconds.unsigned_abs()))),
            },
        }))
    }

    /// Who said what in a request, as the answer tells it.
    fn owners(&self, object: &Value, manager: &str) -> Value {
        let said = |field: &str| object["spec"].get(field).is_some_and(|value| !value.is_null());
        let mut spec = json!({"f:expirationSeconds": {}});
        if said("audiences") {
            spec["f:audiences"] = json!({});
        }
        if let Some(reference) = object["spec"]["boundObjectRef"].as_object() {
            let fields = reference.keys().map(|field| (format!("f:{field}"), json!({})));
            spec["f:boundObjectRef"] = Value::Object(fields.collect());
        }
        json!([{
            "manager": manager, "operation": "Update", "apiVersion": VERSION, "time": self.options.clock.stamp(),
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": spec}, "subresource": "token",
        }])
    }

    /// The objects that a token is to be bound to.
    async fn bound(&self, place: &ObjectRef, spec: &Spec) -> Result<Bound, StatusError> {
        let mut bound = Bound::default();
        let Some(reference) = spec.reference.as_object() else { return Ok(bound) };
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let (kind, version, name) = (text("kind"), text("apiVersion"), text("name"));
        let (group, short) = version.split_once('/').unwrap_or(("", version));
        let namespace = place.namespace.as_deref();
        let found = match (group, kind) {
            ("", "Pod") => {
                let pod = self.required("pods", namespace, name).await?;
                if pod["spec"]["serviceAccountName"] != place.name.as_str() {
                    let message = format!(
                        "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                        place.name
                    );
                    return Err(StatusError::bad_request(message));
                }
                if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
                    let found = self.required("nodes", None, node).await;
                    // A node that is not there is named nevertheless.
                    bound.node = Some(found.unwrap_or_else(|_| json!({"metadata": {"name": node}})));
                }
                bound.pod.insert(pod)
            }
            ("", "Secret") => bound.secret.insert(self.required("secrets", namespace, name).await?),
            ("", "Node") => bound.node.insert(self.required("nodes", None, name).await?),
            _ => {
                let message = format!("cannot bind token to object of type {group}/{short}, Kind={kind}");
                return Err(StatusError::bad_request(message));
            }
        };
        let given = text("uid");
        if !given.is_empty() && given != meta::uid(found) {
            let why = format!(
                "the UID in the bound object reference ({given}) does not match the UID in record. The object might have been \
                 deleted and then recreated"
            );
            return Err(StatusError::conflict(Subject { group, name: kind }, name, &why));
        }
        Ok(bound)
    }

    async fn required(
        &self,
        plural: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Value, StatusError> {
        let resource = self.registry().find("", "v1", plural);
        let resource = resource.ok_or_else(|| StatusError::internal(format!("{plural} are not served")))?;
        let entry = self.get(&resource, namespace, name, None).await?;
        Ok(resource.read(&entry)?)
    }
}

/// What is asked for.
struct Spec {
    audiences: Vec<String>,
    seconds: i64,
    reference: Value,
}

impl Spec {
    fn read(object: &Value, usual: &[String]) -> Result<Self, StatusError> {
        let spec = &object["spec"];
        let audiences = spec["audiences"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut audiences: Vec<String> = audiences.map(str::to_owned).collect();
        if audiences.is_empty() {
            audiences = usual.to_vec();
        }
        let seconds = spec["expirationSeconds"].as_i64().unwrap_or(USUAL);
        let at = Path::root().child("spec").child("expirationSeconds");
        let why = match seconds {
            ..600 => "may not specify a duration less than 10 minutes",
            seconds if seconds > 1 << 32 => "may not specify a duration larger than 2^32 seconds",
            _ => return Ok(Self { audiences, seconds, reference: spec["boundObjectRef"].clone() }),
        };
        Err(StatusError::invalid(KIND, "", &[FieldError::invalid(&at, seconds, why)]))
    }

    /// What the token will say.
    fn claims(
        &self,
        place: &ObjectRef,
        account: &Value,
        bound: &Bound,
        now: SystemTime,
        own: &[String],
    ) -> Value {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as i64;
        let namespace = place.namespace.as_deref().unwrap_or_default();
        let is_unasked = bound.pod.is_some()
            && self.seconds == UNASKED
            && self.audiences.iter().all(|audience| own.contains(audience));
        let end = now + if is_unasked { EXTENDED } else { self.seconds };
        let mut about = json!({"namespace": namespace, "serviceaccount": reference(account)});
        for (kind, object) in [("pod", &bound.pod), ("secret", &bound.secret), ("node", &bound.node)] {
            if let Some(object) = object {
                about[kind] = reference(object);
            }
        }
        if is_unasked {
            about["warnafter"] = (now + self.seconds).into();
        }
        json!({
            "aud": self.audiences, "exp": end, "iat": now, "nbf": now, "jti": crate::object::random::uid(),
            "sub": account_user(namespace, &place.name), "kubernetes.io": about,
        })
    }
}

fn reference(object: &Value) -> Value {
    let mut reference = json!({"name": meta::name(object)});
    if !meta::uid(object).is_empty() {
        reference["uid"] = meta::uid(object).into();
    }
    reference
}
