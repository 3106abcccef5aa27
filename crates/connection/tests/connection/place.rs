//! A server of our own with TLS that says who asked, and kubeconfigs to reach it with.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::SystemTime;

use bytes::Bytes;
use serde_json::{Value, json};
use tempfile::TempDir;
use watchkeeper_connection::{Connection, RequestError};
use watchkeeper_front::{
    Authority, Body, ClientAuth, Front, Key, Listener, Peer, Purpose, Request, Response, ServerCertificate,
    Tls, pem,
};
use watchkeeper_x509::Certificate;

/// An authority, and what it issues: in PEM, a certificate and its key.
pub(crate) struct Site(Authority);

impl Site {
    pub(crate) fn new() -> Self {
        Self(Authority::with_key("test", Key::generate().unwrap(), SystemTime::now()).unwrap())
    }

    pub(crate) fn authority(&self) -> String {
        pem::certificate(self.0.certificate())
    }

    pub(crate) fn client(&self, user: &str) -> (String, String) {
        self.issue(user, &Purpose::Client)
    }

    fn issue(&self, user: &str, purpose: &Purpose<'_>) -> (String, String) {
        let key = Key::generate().unwrap();
        let issued = self.0.issue(&key, (user, &[]), purpose, SystemTime::now()).unwrap();
        (pem::certificate(&issued), pem::key(key.pkcs8()))
    }

    /// A certificate for these names, as a server shows it and as text.
    pub(crate) fn tls_and_certificate(&self, names: &[&str]) -> (Tls, String) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let (certificate, key) = self.issue("server", &Purpose::Server(&names));
        let shown = ServerCertificate::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let clients = ClientAuth::Optional(vec![self.0.certificate().clone()]);
        (Tls::new(shown, &clients).unwrap(), certificate)
    }
}

/// The server, and a folder for files.
pub(crate) struct Place {
    pub(crate) site: Site,
    pub(crate) address: SocketAddr,
    /// The certificate of the server.
    pub(crate) certificate: String,
    folder: TempDir,
    _front: Front,
}

impl Place {
    pub(crate) fn start() -> Self {
        Self::named(&["127.0.0.1"])
    }

    /// A server whose certificate has these names. Believes bearers of the token `good` only, and certificates.
    pub(crate) fn named(names: &[&str]) -> Self {
        let site = Site::new();
        let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let address = listener.address();
        let (tls, certificate) = site.tls_and_certificate(names);
        let front = Front::builder(answer).https(listener, tls).start().unwrap();
        Self { site, address, certificate, folder: tempfile::tempdir().unwrap(), _front: front }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).unwrap();
    }

    /// A kubeconfig of a cluster and a user with these fields beside the server's, in YAML's flow style.
    pub(crate) fn kubeconfig(&self, cluster: &str, user: &str) -> PathBuf {
        let text = format!(
            "current-context: here\ncontexts: [{{name: here, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'https://{}', {cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n",
            self.address
        );
        self.write("kubeconfig", &text);
        self.file("kubeconfig")
    }

    /// A connection of a user with these fields, which believes the server.
    pub(crate) async fn connection(&self, user: &str) -> Connection {
        self.write("ca.crt", &self.site.authority());
        let kubeconfig = self.kubeconfig("certificate-authority: ca.crt", user);
        Connection::from_kubeconfig(kubeconfig, None).await.unwrap()
    }
}

/// What the server says of a request.
pub(crate) async fn ask(connection: &Connection) -> Result<Value, RequestError> {
    let answer = connection.request(http::Request::get("/who?a=b").body(Bytes::new()).unwrap()).await?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

async fn answer(request: Request) -> Response {
    let peer = Peer::of(&request).unwrap();
    let certificate = peer.certificates().first().map(|certificate| {
        let certificate = Certificate::read(certificate).unwrap();
        certificate.subject.attributes.last().unwrap().value.clone()
    });
    let header = |name: &str| {
        let values = request.headers().get_all(name).iter();
        values.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(",")
    };
    let authorization = header("authorization");
    let said = json!({
        "connection": peer.address().port(),
        "certificate": certificate,
        "authorization": authorization,
        "user": header("impersonate-user"),
        "groups": header("impersonate-group"),
        "host": header("host"),
        "uri": request.uri().to_string(),
    });
    let mut response = Response::new(Body::whole(said.to_string()));
    if !authorization.is_empty() && authorization.starts_with("Bearer ") && !authorization.ends_with("good") {
        *response.status_mut() = http::StatusCode::UNAUTHORIZED;
    }
    response
}
