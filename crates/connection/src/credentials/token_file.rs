use std::fs;
use std::path::PathBuf;

use http::HeaderValue;

use super::{NO_TOKEN, bearer};
use crate::followed::Followed;

/// A token in a file that is replaced before the token expires. If it cannot be read any more, the last token that was read
/// stays in use: some programs delete the file once they have read it.
pub(crate) struct TokenFile {
    file: PathBuf,
    current: Followed<HeaderValue>,
}

impl TokenFile {
    /// Reads a file. The token is used as long as the file does not hold one.
    pub(super) fn new(file: PathBuf, token: Option<String>) -> Result<Self, String> {
        let wrong = |reason: &dyn std::fmt::Display| format!("token file {}: {reason}", file.display());
        let value = match (fs::read_to_string(&file), token) {
            (Ok(text), _) if !text.trim().is_empty() => bearer(&text).ok_or_else(|| wrong(&NO_TOKEN))?,
            (_, Some(token)) => bearer(&token).ok_or(NO_TOKEN)?,
            (Err(error), None) => return Err(wrong(&error)),
            (Ok(_), None) => return Err(wrong(&"it is empty")),
        };
        Ok(Self { current: Followed::new(value), file })
    }

    /// The value of an `Authorization` header.
    pub(super) fn get(&self) -> HeaderValue {
        self.current.get(|_| {
            let text = fs::read_to_string(&self.file);
            let text = text.ok().filter(|text| !text.trim().is_empty());
            let value = text.and_then(|text| bearer(&text));
            if value.is_none() {
                let file = self.file.display();
                tracing::warn!(%file, "the token cannot be read again, the old one stays in use");
            }
            value
        })
    }

    /// Has the file read again with the next request.
    pub(super) fn doubt(&self) {
        self.current.doubt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn token(file: &TokenFile) -> String {
        file.get().to_str().unwrap().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_was_replaced_is_used_after_a_minute_or_a_refusal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "one\n").unwrap();
        let file = TokenFile::new(path.clone(), None).unwrap();
        assert_eq!(token(&file), "Bearer one");
        fs::write(&path, "two").unwrap();
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(token(&file), "Bearer one");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(token(&file), "Bearer two");
        fs::write(&path, "three").unwrap();
        file.doubt();
        assert_eq!(token(&file), "Bearer three");
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_stays_in_use_when_its_file_goes_away_or_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "one").unwrap();
        let file = TokenFile::new(path.clone(), None).unwrap();
        fs::write(&path, "").unwrap();
        file.doubt();
        assert_eq!(token(&file), "Bearer one");
        fs::remove_file(&path).unwrap();
        file.doubt();
        assert_eq!(token(&file), "Bearer one");
        fs::write(&path, "two").unwrap();
        file.doubt();
        assert_eq!(token(&file), "Bearer two");
    }

    #[tokio::test]
    async fn what_a_file_holds_counts_more_than_the_token_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let file = TokenFile::new(path.clone(), Some("inline".into())).unwrap();
        assert_eq!(token(&file), "Bearer inline");
        fs::write(&path, "one").unwrap();
        assert_eq!(token(&TokenFile::new(path, Some("inline".into())).unwrap()), "Bearer one");
    }

    #[tokio::test]
    async fn a_file_without_a_token_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let error = TokenFile::new(path.clone(), None).err().unwrap();
        assert!(error.contains(&path.display().to_string()), "{error}");
        fs::write(&path, "\n").unwrap();
        assert!(TokenFile::new(path.clone(), None).err().unwrap().contains("empty"));
        fs::write(&path, "secret\u{1}").unwrap();
        let error = TokenFile::new(path, None).err().unwrap();
        assert!(!error.contains("secret"), "{error}");
    }
}
