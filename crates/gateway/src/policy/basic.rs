use std::collections::{HashMap, HashSet};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderValue};
use parking_lot::Mutex;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{hmac, pbkdf2};
use tokio::sync::Semaphore;
use watchkeeper_go::base64;

use super::Refusal;

/// How often a password is hashed, as OWASP recommends for PBKDF2 with SHA-256 in 2025 and later.
const ITERATIONS: u32 = 600_000;
const SALT_BYTES: usize = 16;
/// How many passwords that were right are remembered, so that they are not hashed with every request.
const REMEMBERED: usize = 10_000;
/// How many passwords are hashed at a time. Guessers wait for each other.
const AT_A_TIME: usize = 2;

/// Users with passwords.
#[derive(Debug)]
pub struct Basic {
    /// The users.
    pub users: HashMap<String, Password>,
    /// What browsers show.
    pub realm: String,
}

/// A password that cannot be read: `pbkdf2-sha256$ITERATIONS$SALT$HASH`, both in base64.
#[derive(Clone)]
pub struct Password {
    iterations: NonZeroU32,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

/// The passwords that were right, by a keyed digest.
pub(crate) struct Verified {
    right: Mutex<HashSet<[u8; 32]>>,
    turns: Semaphore,
}

impl Default for Verified {
    fn default() -> Self {
        Self { right: Mutex::default(), turns: Semaphore::new(AT_A_TIME) }
    }
}

impl Password {
    /// Reads a password as [`hashed`](Self::hashed) writes it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            "is not of the form pbkdf2-sha256$ITERATIONS$SALT$HASH: see watchkeeper gateway password"
                .to_owned()
        };
        let mut parts = text.split('$');
        let (Some("pbkdf2-sha256"), Some(iterations), Some(salt), Some(hash), None) =
            (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        let iterations = iterations.parse::<u32>().ok().filter(|count| *count <= 10_000_000);
        let password = Self {
            iterations: iterations.and_then(NonZeroU32::new).ok_or_else(wrong)?,
            salt: base64::decode(salt).map_err(|_| wrong())?,
            hash: base64::decode(hash).map_err(|_| wrong())?,
        };
        if password.hash.len() == 32 { Ok(password) } else { Err(wrong()) }
    }

    /// Hashes a password, for an object.
    pub fn hashed(password: &[u8]) -> Result<String, String> {
        let mut salt = [0; SALT_BYTES];
        SystemRandom::new().fill(&mut salt).map_err(|_| "the system has no random numbers".to_owned())?;
        let iterations = NonZeroU32::new(ITERATIONS).unwrap_or(NonZeroU32::MIN);
        let mut hash = [0; 32];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, &salt, password, &mut hash);
        Ok(format!("pbkdf2-sha256${iterations}${}${}", base64::encode(salt), base64::encode(hash)))
    }

    fn is(&self, password: &[u8]) -> bool {
        pbkdf2::verify(pbkdf2::PBKDF2_HMAC_SHA256, self.iterations, &self.salt, password, &self.hash).is_ok()
    }
}

impl Basic {
    pub(super) async fn check(&self, headers: &HeaderMap, verified: &Verified) -> Result<Arc<str>, Refusal> {
        self.user(headers, verified).await.ok_or_else(|| {
            let challenge = HeaderValue::from_str(&format!("Basic realm=\"{}\"", self.realm));
            Refusal::Unauthorized(challenge.unwrap_or(HeaderValue::from_static("Basic")))
        })
    }

    async fn user(&self, headers: &HeaderMap, verified: &Verified) -> Option<Arc<str>> {
        let given = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, coded) = given.split_once(' ')?;
        let decoded = base64::decode(coded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        let (name, given) = (std::str::from_utf8(&decoded[..colon]).ok()?, decoded[colon + 1..].to_vec());
        // Somebody who does not exist takes as long as somebody whose password is wrong.
        let known = self.users.get(name);
        let password = known.cloned().unwrap_or_else(|| self.nobody());
        let digest = digest(name, &given, &password);
        if known.is_none() || !verified.right.lock().contains(&digest) {
            let _turn = verified.turns.acquire().await.ok()?;
            let is_right = move || password.is(&given);
            if !tokio::task::spawn_blocking(is_right).await.ok()? || known.is_none() {
                return None;
            }
            let mut right = verified.right.lock();
            if right.len() >= REMEMBERED {
                right.clear();
            }
            right.insert(digest);
        }
        Some(name.into())
    }
}

impl Basic {
    /// The password of users who do not exist, as hard to check as that of those who do.
    fn nobody(&self) -> Password {
        let iterations = self.users.values().map(|password| password.iterations).max();
        let iterations = iterations.or(NonZeroU32::new(ITERATIONS)).unwrap_or(NonZeroU32::MIN);
        Password { iterations, salt: vec![0; SALT_BYTES], hash: vec![0; 32] }
    }
}

/// A digest of a user, a password and what it has to be, with a key that only this process has.
fn digest(name: &str, given: &[u8], password: &Password) -> [u8; 32] {
    static KEY: OnceLock<hmac::Key> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = [0; 32];
        // Without random numbers nothing is remembered that could be told from outside: the key stays in memory.
        let _ = SystemRandom::new().fill(&mut key);
        hmac::Key::new(hmac::HMAC_SHA256, &key)
    });
    let mut context = hmac::Context::with_key(key);
    for part in [name.as_bytes(), &password.salt, &password.hash, given] {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part);
    }
    <[u8; 32]>::try_from(context.sign().as_ref()).unwrap_or_default()
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Verified({})", self.right.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(text: &str) -> Password {
        let iterations = NonZeroU32::new(10).unwrap();
        let mut hash = vec![0; 32];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, b"salt", text.as_bytes(), &mut hash);
        Password { iterations, salt: b"salt".to_vec(), hash }
    }

    #[tokio::test]
    async fn users_are_known_by_their_passwords() {
        let basic = Basic { users: [("jane".to_owned(), password("a:b"))].into(), realm: "shop".into() };
        let verified = Verified::default();
        let check = async |text: &str| {
            let value = format!("Basic {}", base64::encode(text)).parse().unwrap();
            basic.check(&HeaderMap::from_iter([(AUTHORIZATION, value)]), &verified).await
        };
        for _ in 0..2 {
            assert_eq!(check("jane:a:b").await, Ok(Arc::from("jane")));
        }
        for wrong in ["jane:a", "joe:a:b", "jane", ":", "jane:a:b "] {
            let challenge = HeaderValue::from_static("Basic realm=\"shop\"");
            assert_eq!(check(wrong).await, Err(Refusal::Unauthorized(challenge)), "{wrong}");
        }
        assert_eq!(verified.right.lock().len(), 1);
    }

    #[test]
    fn those_who_do_not_exist_are_as_hard_to_check_as_those_who_do() {
        let slow = Password { iterations: NonZeroU32::new(20).unwrap(), ..password("b") };
        let users = [("jane".to_owned(), password("a")), ("joe".to_owned(), slow)].into();
        let nobody = Basic { users, realm: String::new() }.nobody();
        assert_eq!((nobody.iterations.get(), nobody.hash.len()), (20, 32));
        let nobody = Basic { users: HashMap::new(), realm: String::new() }.nobody();
        assert_eq!(nobody.iterations.get(), ITERATIONS);
    }

    #[tokio::test]
    async fn somebody_who_does_not_exist_is_refused_after_the_same_work() {
        let costly =
            |iterations| Password { iterations: NonZeroU32::new(iterations).unwrap(), ..password("a") };
        let took = async |iterations: u32| {
            let basic =
                Basic { users: [("jane".to_owned(), costly(iterations))].into(), realm: String::new() };
            let value = format!("Basic {}", base64::encode("joe:a")).parse().unwrap();
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
            let begin = std::time::Instant::now();
            basic.check(&headers, &Verified::default()).await.unwrap_err();
            begin.elapsed()
        };
        let (quick, slow) = (took(1).await, took(300_000).await);
        assert!(slow > 10 * quick, "{quick:?} {slow:?}");
    }

    #[test]
    fn a_password_is_written_as_it_is_read() {
        let written = Password::hashed(b"hunter2").unwrap();
        assert!(Password::parse(&written).unwrap().is(b"hunter2"));
        for wrong in
            ["", "hunter2", "pbkdf2-sha256$0$AA==$AA==", "pbkdf2-sha256$1$AA==$AA==", "bcrypt$1$AA==$AA=="]
        {
            assert!(Password::parse(wrong).is_err(), "{wrong}");
        }
    }
}
