use std::fmt::{self, Write};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use watchkeeper_front::{Authority, ClientAuth, Key, Listener, Purpose, Tls, pem, private_file};

use super::client_certificate::CREDENTIAL_ID;
use super::server_certificate::{RenewedCertificate, names};
use super::{Error, Identity};

/// The common name of our authorities.
const AUTHORITY: &str = "watchkeeper-ca";

/// An authority with less than this left is replaced when it is loaded.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The secrets of a server: its certificate authority, its own key, and the token of its administrator.
///
/// With a directory they outlive the process, and so does every kubeconfig that was made from them. The files are for
/// their owner only (mode 0600, in a directory of mode 0700) and are replaced as a whole:
///
/// - `ca.crt`, `ca.key`: the authority. Its certificate is good for ten years; in the last month it is renewed for the same
///   key, with a warning: kubeconfigs have to be written anew within that month.
/// - `server.key`: the key of the server. Its certificate is not kept: it is issued at every start, for the names that the
///   server has then, and again while it runs, long before it ends.
/// - `admin.token`: the bearer token of the user `admin` in the group `system:masters`.
///
/// A file that is missing is made anew, except `ca.key` where `ca.crt` is there. A file that cannot be read, or does not
/// belong to the others, is an error that names it, and nothing is replaced. So is a directory that other users can put
/// files into, a secret that they can read, and a certificate that they can change.
#[derive(Clone)]
pub struct Credentials {
    authority: Arc<Authority>,
    server_key: Arc<Key>,
    admin_token: Arc<str>,
}

/// A certificate with its key, both in PEM.
#[derive(Clone)]
pub struct IssuedCertificate {
    /// The certificate.
    pub certificate: String,
    /// The key, in PKCS #8. A secret.
    pub key: String,
}

impl Credentials {
    /// The credentials in a directory, which are made if they are not there. Without a directory they are made for
    /// this process alone.
    pub fn load_or_create(directory: Option<&Path>) -> Result<Self, Error> {
        let now = SystemTime::now();
        let Some(directory) = directory else {
            let authority = Authority::with_key(AUTHORITY, Key::generate()?, now)?;
            return Ok(Self::assemble(authority, Key::generate()?, new_token()?));
        };
        private_file::open_directory(directory)?;
        let files = Files(directory);
        let authority = files.authority(now)?;
        let server_key = files.key_or_new("server.key")?;
        Ok(Self::assemble(authority, server_key, files.token()?))
    }

    fn assemble(authority: Authority, server_key: Key, token: String) -> Self {
        let (authority, server_key) = (Arc::new(authority), Arc::new(server_key));
        Self { authority, server_key, admin_token: token.into() }
    }

    /// The certificate of the authority in PEM: what clients have to trust.
    pub fn authority_certificate(&self) -> String {
        pem::certificate(self.authority.certificate())
    }

    /// The token of the administrator. A secret.
    pub fn admin_token(&self) -> &str {
        &self.admin_token
    }

    /// Whoever shows the token of the administrator. A hash of the token says which credential was shown, as with
    /// certificates.
    pub fn admin(&self) -> Identity {
        let mut id = String::from("TOKENSHA256=");
        for byte in digest(&SHA256, self.admin_token.as_bytes()).as_ref() {
            let _ = write!(id, "{byte:02x}"); // writing to a string does not fail
        }
        let mut identity = Identity::admin();
        identity.extra.insert(CREDENTIAL_ID.into(), vec![id]);
        identity
    }

    /// How a server with these credentials speaks TLS on a listener. Its certificate is for the address of the listener, the usual
    /// names (`localhost`, the loopback addresses, `kubernetes` with its longer forms) and these; it is renewed in time. Clients
    /// may show certificates of this authority.
    pub fn tls(&self, listener: &Listener, names: &[String]) -> Result<Tls, Error> {
        let address = Some(listener.address().ip()).filter(|address| !address.is_unspecified());
        let names: Vec<String> =
            names.iter().cloned().chain(address.map(|address| address.to_string())).collect();
        let (authority, key) = (Arc::clone(&self.authority), Arc::clone(&self.server_key));
        let clients = ClientAuth::Optional(vec![authority.certificate().clone()]);
        Ok(Tls::new(RenewedCertificate::issue(authority, key, &names)?, &clients)?)
    }

    /// Puts a certificate for these names and its key into two files, as kube-apiserver does where it finds none. Does
    /// nothing if both are there; one without the other is an error.
    ///
    /// The authority behind it is in the first file too, as the last certificate: clients have to trust it.
    pub fn create_server_files(certificate: &Path, key: &Path, names: &[String]) -> Result<(), Error> {
        match (certificate.exists(), key.exists()) {
            (true, true) => return Ok(()),
            (false, false) => {}
            (true, false) => return Err(wrong(key, "is missing, but the certificate is there")),
            (false, true) => return Err(wrong(certificate, "is missing, but the key is there")),
        }
        let credentials = Self::load_or_create(None)?;
        let issued = credentials.issue_server(names)?;
        let chain = issued.certificate + &credentials.authority_certificate();
        for (file, text) in [(key, issued.key), (certificate, chain)] {
            if let Some(directory) = file.parent() {
                private_file::create_directory(directory).map_err(|error| wrong(directory, error))?;
            }
            private_file::write(file, text.as_bytes()).map_err(|error| wrong(file, error))?;
        }
        Ok(())
    }

    /// Issues a certificate for a server that is reached by these names and addresses, and by the usual ones, for a year.
    pub(super) fn issue_server(&self, names: &[String]) -> Result<IssuedCertificate, Error> {
        let key = Key::generate()?;
        let purpose = Purpose::Server(&self::names(names)?);
        let certificate = self.authority.issue(&key, ("watchkeeper", &[]), &purpose, SystemTime::now())?;
        Ok(IssuedCertificate { certificate: pem::certificate(&certificate), key: pem::key(key.pkcs8()) })
    }

    /// Issues a certificate by which a client is this user in these groups, for a year.
    pub fn issue_client(&self, user: &str, groups: &[String]) -> Result<IssuedCertificate, Error> {
        for name in groups.iter().map(String::as_str).chain([user]) {
            let reason = match name {
                "" => "it is empty",
                _ if name.chars().any(char::is_control) => "it has control characters",
                _ => continue,
            };
            return Err(Error::Name { name: name.into(), reason });
        }
        let key = Key::generate()?;
        let now = SystemTime::now();
        let certificate = self.authority.issue(&key, (user, groups), &Purpose::Client, now)?;
        Ok(IssuedCertificate { certificate: pem::certificate(&certificate), key: pem::key(key.pkcs8()) })
    }
}

/// The files of a directory, and errors that name them.
struct Files<'a>(&'a Path);

impl Files<'_> {
    fn authority(&self, now: SystemTime) -> Result<Authority, Error> {
        let certificate = self.read("ca.crt")?;
        if certificate.is_some() && self.read("ca.key")?.is_none() {
            return Err(wrong(&self.path("ca.key"), "is missing, but ca.crt is there"));
        }
        // The key is written first and stays for good: a crash at any point leaves something to go on from.
        let key = self.key_or_new("ca.key")?;
        let Some(certificate) = certificate else { return self.new_authority(key, now) };
        let certificate = CertificateDer::from_pem_slice(&certificate)
            .map_err(|_| wrong(&self.path("ca.crt"), "holds no certificate in PEM"))?;
        let authority =
            Authority::restore(certificate, key).map_err(|reason| wrong(&self.path("ca.crt"), reason))?;
        if authority.end() > now + RENEW_BEFORE {
            return Ok(authority);
        }
        tracing::warn!("CA certificate renewed; existing kubeconfigs have to be written again");
        self.new_authority(authority.into_key(), now)
    }

    fn new_authority(&self, key: Key, now: SystemTime) -> Result<Authority, Error> {
        let authority = Authority::with_key(AUTHORITY, key, now)?;
        self.write("ca.crt", &pem::certificate(authority.certificate()))?;
        Ok(authority)
    }

    fn key_or_new(&self, name: &str) -> Result<Key, Error> {
        let Some(text) = self.read(name)? else {
            let key = Key::generate()?;
            self.write(name, &pem::key(key.pkcs8()))?;
            return Ok(key);
        };
        let pkcs8 = PrivatePkcs8KeyDer::from_pem_slice(&text)
            .map_err(|_| wrong(&self.path(name), "holds no PKCS #8 key in PEM"))?;
        Key::from_pkcs8(pkcs8).map_err(|reason| wrong(&self.path(name), reason))
    }

    fn token(&self) -> Result<String, Error> {
        let Some(bytes) = self.read("admin.token")? else {
            let token = new_token()?;
            self.write("admin.token", &format!("{token}\n"))?;
            return Ok(token);
        };
        let token = String::from_utf8(bytes).unwrap_or_default();
        let token = token.trim();
        // Less could be guessed, and anything else does not fit into a header.
        if token.len() < 16 || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let reason = "a token has at least 16 characters, all of them visible ASCII";
            return Err(wrong(&self.path("admin.token"), reason));
        }
        Ok(token.to_owned())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let file = self.path(name);
        match fs::read(&file) {
            Ok(bytes) => {
                let is_secret = name != "ca.crt";
                if is_secret {
                    private_file::check(&file)?;
                } else {
                    private_file::check_public(&file)?;
                }
                Ok(Some(bytes))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(wrong(&file, error)),
        }
    }

    fn write(&self, name: &str, content: &str) -> Result<(), Error> {
        let file = self.path(name);
        private_file::write(&file, content.as_bytes()).map_err(|error| wrong(&file, error))
    }
}

fn wrong(file: &Path, reason: impl fmt::Display) -> Error {
    watchkeeper_front::Error::File { file: file.into(), reason: reason.to_string() }.into()
}

/// 256 random bits, as hexadecimal digits.
fn new_token() -> Result<String, Error> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| watchkeeper_front::Error::Cryptography("the system gave no random numbers".into()))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a string does not fail
        text
    }))
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

impl fmt::Debug for IssuedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IssuedCertificate")
    }
}
