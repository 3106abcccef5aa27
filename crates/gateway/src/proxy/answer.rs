//! Answers that the gateway gives itself.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, CONTENT_TYPE, HeaderMap, HeaderValue,
    LOCATION, ORIGIN, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use http::uri::Scheme;
use http::{Method, StatusCode};
use watchkeeper_front::{Body, Response};

use super::head::Target;
use super::path;
use crate::kinds::ListenerProtocol;
use crate::policy::Refusal;
use crate::table::{Answer, CorsRules, Listener, NewPath, Origin, PathPattern, Rule};

/// A line of text.
pub(crate) fn plain(code: StatusCode, text: impl Into<String>) -> Response {
    let mut response = Response::new(Body::whole(text.into() + "\n"));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// What a client is told that a policy refuses.
pub(crate) fn refused(refusal: Refusal) -> Response {
    match refusal {
        Refusal::Forbidden => plain(StatusCode::FORBIDDEN, "not from this address"),
        Refusal::Unauthorized(challenge) => {
            let mut response = plain(StatusCode::UNAUTHORIZED, "a valid credential is needed");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            response
        }
        Refusal::Unusable(policy) => plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("policy {policy} cannot be used; its status says why"),
        ),
        Refusal::Invalid(code, message) => plain(code, message),
        Refusal::TooMany(wait) => {
            let mut response = plain(StatusCode::TOO_MANY_REQUESTS, "too many requests");
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, seconds.max(1).into());
            response
        }
    }
}

/// The answer as long as policies are not known.
pub(crate) fn withheld() -> Response {
    let text = "the gateway waits for its policies; /readyz of its admin endpoint says for whom";
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, text);
    response.headers_mut().insert(RETRY_AFTER, 1.into());
    response
}

/// The answer of a rule that needs no backend.
pub(crate) fn fixed(
    answer: &Answer,
    rule: &Rule,
    target: &Target<'_>,
    query: Option<&str>,
    listener: &Listener,
) -> Response {
    let is_tls = listener.protocol == ListenerProtocol::HTTPS;
    match answer {
        Answer::Fixed { status, content_type, body } => {
            let mut response = Response::new(Body::whole(body.clone()));
            *response.status_mut() = *status;
            if !body.is_empty() {
                response.headers_mut().insert(CONTENT_TYPE, content_type.clone());
            }
            response
        }
        Answer::Redirect { status, scheme, host, port, path } => {
            let is_https = scheme.as_ref().map_or(is_tls, |scheme| *scheme == Scheme::HTTPS);
            let host = host.as_deref().unwrap_or(&target.host);
            let own_port = match listener.gateway {
                // Gateway API says that it is that of the listener.
                Some(_) => Some(listener.address.port()).filter(|port| *port != 0),
                None => target.authority.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok()),
            };
            let usual = if is_https { 443 } else { 80 };
            let port = port.or(if scheme.is_some() { None } else { own_port }).filter(|port| *port != usual);
            let path = new_path(path.as_ref(), rule, &target.path);
            let mut location = format!("{}://{host}", if is_https { "https" } else { "http" });
            if let Some(port) = port {
                location.push_str(&format!(":{port}"));
            }
            location.push_str(&path);
            if let Some(query) = query {
                location.push('?');
                location.push_str(query);
            }
            let mut response = Response::new(Body::empty());
            *response.status_mut() = *status;
            match HeaderValue::from_str(&location) {
                Ok(location) => drop(response.headers_mut().insert(LOCATION, location)),
                Err(_) => return plain(StatusCode::BAD_REQUEST, "the path cannot be part of a redirect"),
            }
            response
        }
    }
}

/// The path of a request after its change.
pub(crate) fn new_path<'a>(
    change: Option<&NewPath>,
    rule: &Rule,
    asked: &'a str,
) -> std::borrow::Cow<'a, str> {
    match (change, &rule.path) {
        (None, _) => asked.into(),
        (Some(NewPath::Full(path)), _) => path.to_string().into(),
        (Some(NewPath::Prefix(new)), PathPattern::Prefix(old)) => path::replaced(asked, old, new).into(),
        // The compiler allows this for prefixes only.
        (Some(NewPath::Prefix(_)), _) => asked.into(),
    }
}

/// Says in a response who may read it. If that is not everybody, caches are told, also by the responses that no other origin may read: they would
/// give one origin the response for another.
pub(crate) fn tell_origin(rules: &CorsRules, cross: Option<&CrossOrigin>, headers: &mut HeaderMap) {
    if !rules.any_origin {
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
    if let Some(cross) = cross {
        cross.allow(rules, headers);
    }
}

/// What the headers of a request say about cross-origin requests, for its response.
pub(crate) struct CrossOrigin {
    origin: HeaderValue,
    /// Whether a browser asks whether it may send another request.
    is_preflight: bool,
}

impl CrossOrigin {
    /// `None` if the request is not cross-origin, or its origin is not allowed.
    pub(crate) fn of(rules: &CorsRules, method: &Method, headers: &HeaderMap) -> Option<Self> {
        let origin = headers.get(ORIGIN)?;
        let text = origin.to_str().ok()?;
        let fits = |(before, after): &Origin| match after {
            None => text.eq_ignore_ascii_case(before),
            Some(after) => {
                text.len() > before.len() + after.len()
                    && text.starts_with(&**before)
                    && text.ends_with(&**after)
                    // What stands for the asterisk is part of a name.
                    && text[before.len()..text.len() - after.len()]
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
            }
        };
        if !rules.any_origin && !rules.origins.iter().any(fits) {
            return None;
        }
        let is_preflight = method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        Some(Self { origin: origin.clone(), is_preflight })
    }

    /// The answer to a browser that asks whether it may send another request.
    pub(crate) fn preflight(&self, rules: &CorsRules, asked: &HeaderMap) -> Option<Response> {
        if !self.is_preflight {
            return None;
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        tell_origin(rules, Some(self), headers);
        let methods = rules.methods.as_ref().or(asked.get(ACCESS_CONTROL_REQUEST_METHOD));
        headers.extend(methods.cloned().map(|methods| (ACCESS_CONTROL_ALLOW_METHODS, methods)));
        let allowed = rules.headers.as_ref().or(asked.get(ACCESS_CONTROL_REQUEST_HEADERS));
        headers.extend(allowed.cloned().map(|names| (ACCESS_CONTROL_ALLOW_HEADERS, names)));
        headers.insert(ACCESS_CONTROL_MAX_AGE, rules.max_age.clone());
        Some(response)
    }

    fn allow(&self, rules: &CorsRules, headers: &mut HeaderMap) {
        let origin = match rules.any_origin {
            true => HeaderValue::from_static("*"),
            false => self.origin.clone(),
        };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if rules.credentials {
            headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        if let Some(expose) = &rules.expose {
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, expose.clone());
        }
    }
}
