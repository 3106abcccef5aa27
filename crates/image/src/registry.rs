use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use serde_json::{Value, json};
use watchkeeper_connection::HttpClient;
use watchkeeper_go::base64;

use crate::blob::Blob;
use crate::error::Error;
use crate::image::Image;
use crate::reference::Reference;

/// The longest answer of a registry that is read: they are short, or a mistake.
const LONGEST_ANSWER: usize = 4 * 1024 * 1024;

/// The login for a registry.
#[derive(Clone)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The password or token. Neither printed nor logged.
    pub password: String,
}

/// A registry that images are pushed to, with the HTTP API of the Open Container Initiative.
///
/// Each blob is sent in one request, and only if the registry does not have it. If the registry demands a token, one is requested from the server that it names, with the
/// login if there is one. The login is sent to the registry and to that server only.
pub struct Registry {
    client: HttpClient,
    place: Reference,
    /// Where the API is.
    base: String,
    login: Option<Login>,
    authorization: Option<String>,
}

/// The result of a push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// The number of blobs that were sent.
    pub sent: usize,
    /// The number of blobs that the registry had already.
    pub present: usize,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Registry {
    /// A registry. It is spoken to over TLS, unless it is on this machine or `plain` is said.
    pub fn new(client: HttpClient, place: Reference, login: Option<Login>, plain: bool) -> Self {
        let scheme = if plain || place.is_local() { "http" } else { "https" };
        let base = format!("{scheme}://{}/v2/{}", place.registry, place.repository);
        Self { client, place, base, login, authorization: None }
    }

    /// Pushes an image, and what refers to it, under the tag of the place.
    ///
    /// # Errors
    ///
    /// If the registry cannot be reached, refuses the login, or does not take something. What was sent before stays there without a name.
    pub async fn push(&mut self, image: &Image) -> Result<Pushed, Error> {
        let mut pushed = Pushed::default();
        let (manifests, blobs): (Vec<&Blob>, Vec<&Blob>) = image
            .blobs()
            .into_iter()
            .partition(|blob| blob.media_type.contains("manifest") || blob.media_type.contains("index"));
        for blob in blobs {
            if self.has(&format!("blobs/{}", blob.digest)).await? {
                pushed.present += 1;
            } else {
                self.upload(blob).await?;
                pushed.sent += 1;
            }
        }
        let root = image.digest();
        let tag = self.place.tag.clone();
        let mut lists_referrers = true;
        for manifest in manifests {
            let name = if manifest.digest == root { &tag } else { &manifest.digest };
            let answer = self.put_manifest(manifest, name).await?;
            let is_referrer =
                image.referrer.as_ref().is_some_and(|referrer| referrer.manifest.digest == manifest.digest);
            if is_referrer {
                lists_referrers = answer.headers.contains_key("oci-subject");
            }
        }
        if !lists_referrers && let Some(referrer) = &image.referrer {
            self.list_referrer(root, &referrer.manifest).await?;
        }
        Ok(pushed)
    }

    async fn has(&mut self, path: &str) -> Result<bool, Error> {
        let answer = self.ask(Method::HEAD, &format!("{}/{path}", self.base), None, Bytes::new()).await?;
        match answer.status {
            status if status.is_success() => Ok(true),
            StatusCode::NOT_FOUND => Ok(false),
            _ => Err(self.refused(path, &answer)),
        }
    }

    async fn upload(&mut self, blob: &Blob) -> Result<(), Error> {
        let begin = format!("{}/blobs/uploads/", self.base);
        let answer = self.ask(Method::POST, &begin, None, Bytes::new()).await?;
        if answer.status != StatusCode::ACCEPTED {
            return Err(self.refused("a blob", &answer));
        }
        let place = answer.headers.get(LOCATION).and_then(|place| place.to_str().ok());
        let place = place.ok_or_else(|| self.wrong("does not say where to send a blob"))?;
        let mark = if place.contains('?') { '&' } else { '?' };
        let place = format!("{}{mark}digest={}", self.absolute(place)?, blob.digest.replace(':', "%3A"));
        let answer =
            self.ask(Method::PUT, &place, Some("application/octet-stream"), blob.bytes.clone()).await?;
        match answer.status {
            StatusCode::CREATED => Ok(()),
            _ => Err(self.refused(&format!("the blob {}", blob.digest), &answer)),
        }
    }

    /// A place that the registry named. One on another host would get the login.
    fn absolute(&self, place: &str) -> Result<String, Error> {
        let root = self.base.split_once("/v2/").map_or(self.base.as_str(), |(root, _)| root);
        if place.starts_with('/') {
            return Ok(format!("{root}{place}"));
        }
        let is_same = place.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
        match is_same {
            true => Ok(place.to_owned()),
            false => Err(self.wrong("wants blobs to be sent to another host")),
        }
    }

    async fn put_manifest(&mut self, manifest: &Blob, name: &str) -> Result<Answer, Error> {
        let url = format!("{}/manifests/{name}", self.base);
        let answer = self.ask(Method::PUT, &url, Some(manifest.media_type), manifest.bytes.clone()).await?;
        match answer.status {
            StatusCode::CREATED => Ok(answer),
            _ => Err(self.refused(&format!("the manifest {name}"), &answer)),
        }
    }

    /// Keeps the list of what refers to an image, for a registry that does not do so itself: an index under a tag made of the digest.
    async fn list_referrer(&mut self, root: &str, referrer: &Blob) -> Result<(), Error> {
        const INDEX: &str = "application/vnd.oci.image.index.v1+json";
        let tag = root.replace(':', "-");
        let url = format!("{}/manifests/{tag}", self.base);
        let answer = self.ask(Method::GET, &url, None, Bytes::new()).await?;
        let mut manifests: Vec<Value> = match answer.status {
            status if status.is_success() => {
                let index: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                index["manifests"].as_array().cloned().unwrap_or_default()
            }
            _ => Vec::new(),
        };
        if !manifests.iter().any(|known| known["digest"] == referrer.digest.as_str()) {
            let mut descriptor = referrer.descriptor();
            descriptor["artifactType"] = json!("application/vnd.cyclonedx+json");
            manifests.push(descriptor);
        }
        let index =
            Blob::json(INDEX, &json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}));
        self.put_manifest(&index, &tag).await.map(drop)
    }

    /// Sends a request. If the registry asks who it is, that is answered and the request is sent once more.
    async fn ask(
        &mut self,
        method: Method,
        url: &str,
        media_type: Option<&str>,
        body: Bytes,
    ) -> Result<Answer, Error> {
        let answer = self.send(&method, url, media_type, body.clone(), self.authorization.clone()).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        let challenge = answer.headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let challenge = challenge.unwrap_or_default().to_owned();
        self.authorization = Some(self.answer_to(&challenge).await?);
        let answer = self.send(&method, url, media_type, body, self.authorization.clone()).await?;
        match answer.status {
            StatusCode::UNAUTHORIZED => Err(self.denied()),
            _ => Ok(answer),
        }
    }

    /// What to answer to a registry that asks who this is.
    async fn answer_to(&self, challenge: &str) -> Result<String, Error> {
        let (scheme, parameters) = challenge.split_once(' ').unwrap_or((challenge, ""));
        let basic =
            |login: &Login| format!("Basic {}", base64::encode(format!("{}:{}", login.user, login.password)));
        if scheme.eq_ignore_ascii_case("basic") {
            return self.login.as_ref().map(basic).ok_or_else(|| self.denied());
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(self.wrong("asks for a login of a kind that is not known"));
        }
        let value = |name: &str| parameter(parameters, name);
        let realm = value("realm").ok_or_else(|| self.wrong("does not say where to get a token"))?;
        if !realm.starts_with("https://") && !self.base.starts_with("http://") {
            return Err(self.wrong("wants the login to be sent without TLS"));
        }
        let scope =
            value("scope").unwrap_or_else(|| format!("repository:{}:pull,push", self.place.repository));
        let mut url =
            format!("{realm}{}scope={}", if realm.contains('?') { '&' } else { '?' }, escaped(&scope));
        if let Some(service) = value("service") {
            url.push_str(&format!("&service={}", escaped(&service)));
        }
        let answer =
            self.send(&Method::GET, &url, None, Bytes::new(), self.login.as_ref().map(basic)).await?;
        if !answer.status.is_success() {
            return Err(self.denied());
        }
        let token: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let token = token["token"].as_str().or_else(|| token["access_token"].as_str());
        token.map(|token| format!("Bearer {token}")).ok_or_else(|| self.wrong("gives no token"))
    }

    async fn send(
        &self,
        method: &Method,
        url: &str,
        media_type: Option<&str>,
        body: Bytes,
        authorization: Option<String>,
    ) -> Result<Answer, Error> {
        let mut request = Request::builder().method(method).uri(url).header("user-agent", "watchkeeper");
        if let Some(media_type) = media_type {
            request = request.header(CONTENT_TYPE, media_type);
        } else if *method == Method::GET {
            request = request.header("accept", "application/json, application/vnd.oci.image.index.v1+json");
        }
        if matches!(*method, Method::PUT | Method::POST) {
            request = request.header("content-length", body.len());
        }
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let broken =
            |error: &dyn std::fmt::Display| Error::Registry(format!("{}: {error}", self.place.registry));
        let request = request.body(body).map_err(|error| broken(&error))?;
        let answer = self.client.send(request).await.map_err(|error| broken(&error))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, LONGEST_ANSWER).collect().await.map_err(|error| broken(&error))?;
        Ok(Answer { status: head.status, headers: head.headers, body: body.to_bytes() })
    }

    fn refused(&self, what: &str, answer: &Answer) -> Error {
        let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let reason = told.pointer("/errors/0/message").and_then(Value::as_str).unwrap_or_default();
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        Error::Registry(format!("{} does not take {what}: {}{reason}", self.place.registry, answer.status))
    }

    fn wrong(&self, what: &str) -> Error {
        Error::Registry(format!("{} {what}", self.place.registry))
    }

    fn denied(&self) -> Error {
        let what = match self.login {
            Some(_) => "refuses this login",
            None => "asks for a login: give --username and --password-stdin, or log in with docker or podman",
        };
        Error::Registry(format!("{} {what}", self.place.registry))
    }
}

/// A parameter of a challenge: `realm="https://...",service="..."`.
fn parameter(text: &str, name: &str) -> Option<String> {
    let mut rest = text;
    while let Some((key, after)) = rest.split_once('=') {
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if key.trim_matches([' ', ',']).eq_ignore_ascii_case(name) {
            return Some(value.to_owned());
        }
        rest = next.trim_start_matches([' ', ',']);
    }
    None
}

/// A text as it stands in a query.
fn escaped(text: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:/,".contains(byte);
    text.bytes()
        .map(|byte| if is_plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let text = "realm=\"https://auth.example.com/token\",service=\"registry, a\",scope=\"repository:a/b:pull,push\",x=y";
        assert_eq!(parameter(text, "realm").as_deref(), Some("https://auth.example.com/token"));
        assert_eq!(parameter(text, "service").as_deref(), Some("registry, a"));
        assert_eq!(parameter(text, "scope").as_deref(), Some("repository:a/b:pull,push"));
        assert_eq!(parameter(text, "x").as_deref(), Some("y"));
        assert_eq!(parameter(text, "y"), None);
        assert_eq!(escaped("a b&c:d"), "a%20b%26c:d");
    }
}
