//! The secrets of a receiver, from a file that is read again when it changes.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use watchkeeper_go::base64::STANDARD;

/// A file with a secret in each line. While one is rotated, it has two.
#[derive(Debug)]
pub(super) struct Secrets {
    path: PathBuf,
    read: Mutex<Option<Read>>,
}

struct Read {
    /// Size and time of the file.
    signature: (u64, Option<SystemTime>),
    secrets: Arc<Vec<Vec<u8>>>,
}

impl std::fmt::Debug for Read {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} secrets", self.secrets.len())
    }
}

impl Secrets {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, read: Mutex::new(None) }
    }

    /// The secrets as they are now. Errors name the file and never what is in it.
    pub(super) fn get(&self) -> Result<Arc<Vec<Vec<u8>>>, String> {
        let failed = |why: &dyn std::fmt::Display| format!("the secrets in {}: {why}", self.path.display());
        let metadata = fs::metadata(&self.path).map_err(|error| failed(&error))?;
        let signature = (metadata.len(), metadata.modified().ok());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = &*read
            && read.signature == signature
        {
            return Ok(Arc::clone(&read.secrets));
        }
        let text = fs::read_to_string(&self.path).map_err(|error| failed(&error))?;
        let secrets: Result<Vec<_>, &str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).map(decode).collect();
        let secrets = Arc::new(secrets.map_err(|why| failed(&why))?);
        if secrets.is_empty() {
            return Err(failed(&"there are none"));
        }
        *read = Some(Read { signature, secrets: Arc::clone(&secrets) });
        Ok(secrets)
    }
}

/// A secret as Standard Webhooks writes it, or as it is.
fn decode(line: &str) -> Result<Vec<u8>, &'static str> {
    match line.strip_prefix("whsec_") {
        Some(encoded) => STANDARD.decode(encoded).map_err(|_| "what follows whsec_ is not base64"),
        None => Ok(line.as_bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_read_again_when_their_file_changes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        let secrets = Secrets::new(path.clone());
        assert!(secrets.get().unwrap_err().contains("secret"));
        fs::write(&path, "whsec_c2VjcmV0\n").unwrap();
        assert_eq!(**secrets.get().unwrap(), [b"secret".to_vec()]);
        fs::write(&path, "whsec_c2VjcmV0\n\nplain\n").unwrap();
        assert_eq!(**secrets.get().unwrap(), [b"secret".to_vec(), b"plain".to_vec()]);
        fs::write(&path, "whsec_???").unwrap();
        let error = secrets.get().unwrap_err();
        assert!(!error.contains('?'), "{error}");
        fs::write(&path, "\n").unwrap();
        assert!(secrets.get().unwrap_err().ends_with("there are none"));
    }
}
