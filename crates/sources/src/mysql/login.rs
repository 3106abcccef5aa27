//! The handshake of a connection, up to where statements can be sent.

use bytes::Bytes;
use ring::digest;

use super::Settings;
use super::connection::Connection;
use super::failure::Failure;
use super::wire::Parts;
use crate::database::{Address, Secret, Socket, TlsMode};

/// How values are written, so that a row is the same whatever the server's settings are; that literals are what they look like; that a reader who
/// takes his time is waited for; and that nothing is written by mistake.
const SESSION: &str = "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = 'NO_BACKSLASH_ESCAPES', \
    SESSION net_write_timeout = 3600, SESSION wait_timeout = 86400, SESSION transaction_isolation = 'REPEATABLE-READ'";
/// The same where the variable is still called as in MariaDB before 11.1.
const SESSION_OLD: &str = "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = 'NO_BACKSLASH_ESCAPES', \
    SESSION net_write_timeout = 3600, SESSION wait_timeout = 86400, SESSION tx_isolation = 'REPEATABLE-READ'";
/// There is no such variable.
const UNKNOWN_VARIABLE: u16 = 1193;

const LONG_PASSWORD: u32 = 1;
const LONG_FLAG: u32 = 1 << 2;
const CONNECT_WITH_DB: u32 = 1 << 3;
const PROTOCOL_41: u32 = 1 << 9;
const SSL: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const PLUGIN_AUTH: u32 = 1 << 19;
const CONNECT_ATTRS: u32 = 1 << 20;

/// How large a packet of ours may be.
const MAX_PACKET: u32 = 1 << 30;
/// `utf8mb4_general_ci`.
const UTF8: u8 = 45;

/// What the server says first.
struct Greeting {
    capabilities: u32,
    nonce: Vec<u8>,
    plugin: String,
}

/// Connects, in the time that there is for it.
pub(super) async fn connect(settings: &Settings) -> Result<Connection, Failure> {
    let connecting = async {
        let address = settings.address.as_ref().map_err(|why| Failure::Settings(why.clone()))?;
        let password = match &settings.password_file {
            None => address.password.clone(),
            Some(path) => {
                let bad = |error| Failure::Settings(format!("the password in {}: {error}", path.display()));
                let text = tokio::fs::read_to_string(path).await.map_err(bad)?;
                Some(Secret(text.trim_end_matches(['\r', '\n']).to_owned()))
            }
        };
        let mut connection = Connection::new(socket(address).await?, settings.timeout);
        begin(&mut connection, address, password.as_ref()).await?;
        match connection.query(SESSION).await {
            Err(Failure::Server(refusal)) if refusal.code == UNKNOWN_VARIABLE => {
                connection.query(SESSION_OLD).await?;
            }
            done => drop(done?),
        }
        Ok(connection)
    };
    match tokio::time::timeout(settings.timeout, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(Failure::Connection(format!("not connected after {:?}", settings.timeout))),
    }
}

async fn socket(address: &Address) -> Result<Socket, Failure> {
    #[cfg(unix)]
    if address.host.starts_with('/') {
        return Ok(Socket::unix(&address.host).await?);
    }
    Ok(Socket::tcp(address).await?)
}

async fn begin(
    connection: &mut Connection,
    address: &Address,
    password: Option<&Secret>,
) -> Result<(), Failure> {
    let greeting = Greeting::parse(connection.receive().await?)?;
    let mut capabilities = LONG_PASSWORD
        | LONG_FLAG
        | CONNECT_WITH_DB
        | PROTOCOL_41
        | TRANSACTIONS
        | SECURE_CONNECTION
        | PLUGIN_AUTH
        | (CONNECT_ATTRS & greeting.capabilities);
    let wanted = address.tls != TlsMode::Disable && !connection.is_private();
    if wanted && greeting.capabilities & SSL != 0 {
        capabilities |= SSL;
        connection.send(&preamble(capabilities)).await?;
        connection.secure(address).await?;
    } else if wanted && address.tls != TlsMode::Prefer {
        let reason = "the server has no TLS, and ssl-mode asks for it: set ssl-cert and ssl-key there, or ssl-mode=preferred here";
        return Err(Failure::Connection(reason.into()));
    }
    let mut login = preamble(capabilities);
    login.extend_from_slice(address.user.as_bytes());
    login.push(0);
    let (plugin, answer) = match proof(&greeting.plugin, password, &greeting.nonce) {
        Some(answer) => (&*greeting.plugin, answer),
        // The server will say by which way this account logs in.
        None => (NATIVE, proof(NATIVE, password, &greeting.nonce).unwrap_or_default()),
    };
    login.push(u8::try_from(answer.len()).unwrap_or_default());
    login.extend_from_slice(&answer);
    for text in [&*address.database, plugin] {
        login.extend_from_slice(text.as_bytes());
        login.push(0);
    }
    if capabilities & CONNECT_ATTRS != 0 {
        // One attribute: name and value, each after its length, and all of them after theirs.
        let attributes = b"\x0cprogram_name\x0bwatchkeeper";
        login.push(u8::try_from(attributes.len()).unwrap_or_default());
        login.extend_from_slice(attributes);
    }
    connection.send(&login).await?;
    authenticate(connection, password, plugin.to_owned()).await
}

/// What a login and the wish for TLS begin with.
fn preamble(capabilities: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    bytes.extend_from_slice(&capabilities.to_le_bytes());
    bytes.extend_from_slice(&MAX_PACKET.to_le_bytes());
    bytes.push(UTF8);
    bytes.extend_from_slice(&[0; 23]);
    bytes
}

const NATIVE: &str = "mysql_native_password";
const CACHING: &str = "caching_sha2_password";

/// Answers what the server asks for until it is content.
async fn authenticate(
    connection: &mut Connection,
    password: Option<&Secret>,
    mut plugin: String,
) -> Result<(), Failure> {
    // A server asks for another way once, and for a password that it does not remember once.
    for _ in 0..8 {
        let mut packet = Parts::new(connection.receive().await?);
        match packet.u8()? {
            0 => return Ok(()),
            0xfe => {
                plugin = packet.text()?;
                let data = packet.rest();
                let nonce = data.strip_suffix(b"\0").unwrap_or(&data);
                let Some(answer) = proof(&plugin, password, nonce) else { return Err(unknown(&plugin)) };
                connection.send(&answer).await?;
            }
            1 if plugin == CACHING => match packet.u8()? {
                // It remembers the password, and is content.
                3 => {}
                4 => {
                    if !connection.is_private() {
                        let reason = "the server wants to see the password, which is sent over TLS or a socket only: \
                            set ssl-mode=required";
                        return Err(Failure::Settings(reason.into()));
                    }
                    let Some(Secret(password)) = password else { return Err(no_password()) };
                    connection.send(&[password.as_bytes(), b"\0"].concat()).await?;
                }
                _ => return Err(Failure::garbled("a login")),
            },
            _ => return Err(unknown(&plugin)),
        }
    }
    Err(Failure::garbled("a login without end"))
}

fn no_password() -> Failure {
    Failure::Settings("the server asks for a password, and there is none".into())
}

fn unknown(plugin: &str) -> Failure {
    let plugin = watchkeeper_core::text::bounded(plugin);
    Failure::Settings(format!("the account logs in by {plugin}; we know {NATIVE}, {CACHING} and unix_socket"))
}

/// What shows that the password is known, without showing it. None for ways that are not known.
fn proof(plugin: &str, password: Option<&Secret>, nonce: &[u8]) -> Option<Vec<u8>> {
    let hash = |algorithm, parts: &[&[u8]]| digest::digest(algorithm, &parts.concat());
    let mixed = |a: &[u8], b: &[u8]| a.iter().zip(b).map(|(a, b)| a ^ b).collect();
    // An account without a password has an empty proof.
    let password =
        password.map(|Secret(password)| password.as_bytes()).filter(|password| !password.is_empty());
    match (plugin, password) {
        (NATIVE | CACHING | "", None) => Some(Vec::new()),
        (NATIVE | "", Some(password)) => {
            let sha1 = &digest::SHA1_FOR_LEGACY_USE_ONLY;
            let once = hash(sha1, &[password]);
            let twice = hash(sha1, &[once.as_ref()]);
            Some(mixed(once.as_ref(), hash(sha1, &[nonce, twice.as_ref()]).as_ref()))
        }
        (CACHING, Some(password)) => {
            let once = hash(&digest::SHA256, &[password]);
            let twice = hash(&digest::SHA256, &[once.as_ref()]);
            Some(mixed(once.as_ref(), hash(&digest::SHA256, &[twice.as_ref(), nonce]).as_ref()))
        }
        // The server asks the operating system who is at the other end.
        ("unix_socket" | "auth_socket", _) => Some(Vec::new()),
        _ => None,
    }
}

impl Greeting {
    fn parse(packet: Bytes) -> Result<Self, Failure> {
        let mut parts = Parts::new(packet);
        if parts.u8()? != 10 {
            return Err(Failure::Connection("this is no MySQL server, or one that is older than 4.1".into()));
        }
        let _version = parts.text()?;
        let _thread = parts.u32()?;
        let mut nonce = parts.take(8)?.to_vec();
        parts.take(1)?;
        let low = u32::from(parts.u16()?);
        let (_charset, _status) = (parts.u8()?, parts.u16()?);
        let capabilities = low | u32::from(parts.u16()?) << 16;
        let length = usize::from(parts.u8()?);
        parts.take(10)?;
        let second = parts.take(length.saturating_sub(8).max(13))?;
        nonce.extend_from_slice(second.strip_suffix(b"\0").unwrap_or(&second));
        if capabilities & PROTOCOL_41 == 0 || capabilities & SECURE_CONNECTION == 0 {
            return Err(Failure::Connection("the server is older than 4.1".into()));
        }
        let plugin = if capabilities & PLUGIN_AUTH != 0 { parts.text()? } else { NATIVE.into() };
        Ok(Self { capabilities, nonce, plugin })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn proofs_are_those_of_the_documentation() {
        let (password, nonce) = (Secret("open sesame".into()), b"01234567890123456789");
        let sha1 = |bytes: &[u8]| digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, bytes);
        let native = proof(NATIVE, Some(&password), nonce).unwrap();
        // What the server does: it has SHA1(SHA1(password)), takes the mask away and hashes once more.
        let stored = sha1(sha1(b"open sesame").as_ref());
        let mask = sha1(&[&nonce[..], stored.as_ref()].concat());
        let once: Vec<u8> = native.iter().zip(mask.as_ref()).map(|(a, b)| a ^ b).collect();
        assert_eq!(hex(sha1(&once).as_ref()), hex(stored.as_ref()));
        assert_eq!(proof(CACHING, Some(&password), nonce).unwrap().len(), 32);
        assert_eq!(proof(NATIVE, None, nonce).unwrap(), b"");
        assert_eq!(proof("client_ed25519", Some(&password), nonce), None);
    }

    #[test]
    fn a_greeting_that_is_cut_off_is_an_error() {
        let mut greeting = b"\x0a5.5.5-10.11\0".to_vec();
        greeting.extend_from_slice(&[1, 0, 0, 0]);
        greeting.extend_from_slice(b"abcdefgh\0");
        greeting.extend_from_slice(&[0xff, 0xff, 45, 2, 0, 0xff, 0xff, 21]);
        greeting.extend_from_slice(&[0; 10]);
        greeting.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        let whole = Greeting::parse(greeting.clone().into()).unwrap();
        assert_eq!((whole.nonce.as_slice(), &*whole.plugin), (&b"abcdefghijklmnopqrst"[..], NATIVE));
        for end in 0..greeting.len() - NATIVE.len() - 1 {
            assert!(Greeting::parse(greeting[..end].to_vec().into()).is_err(), "{end}");
        }
        assert!(Greeting::parse(Bytes::from_static(b"HTTP/1.1 400 Bad Request")).is_err());
    }
}
