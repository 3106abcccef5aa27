use std::fmt;
use std::path::Path;

use futures_util::future::BoxFuture;
use subtle::ConstantTimeEq;

use super::{Authenticator, Error, Identity, Presented};

/// A fixed table of bearer tokens and whose they are.
///
/// A token is compared with all of the table, byte by byte to the end, so that the time it takes tells nothing but its
/// length. Tokens never appear in `Debug` output or in errors.
#[derive(Default)]
pub struct Tokens(Vec<(Box<[u8]>, Identity)>);

impl Tokens {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a token; one that is there already changes hands. An empty token is nobody's.
    pub fn add(&mut self, token: impl AsRef<[u8]>, identity: Identity) {
        let token = token.as_ref();
        if token.is_empty() {
            return;
        }
        self.0.retain(|(known, _)| **known != *token);
        self.0.push((token.into(), identity));
    }

    /// Adds the tokens of a file in the format of kube-apiserver: comma-separated values, `token,user,uid` and
    /// optionally the groups as one quoted value, `"group1,group2"`.
    pub fn add_file(&mut self, file: &Path) -> Result<(), Error> {
        let bad = |reason: String| Error::TokenFile { file: file.into(), reason };
        let text = std::fs::read_to_string(file).map_err(|error| bad(error.to_string()))?;
        let records = super::csv::records(&text)
            .map_err(|wrong| bad(format!("line {}: {}", wrong.line, wrong.reason)))?;
        for (line, record) in records {
            let [token, user, uid, rest @ ..] = record.as_slice() else {
                return Err(bad(format!(
                    "line {line} has {} columns, at least 3 are needed: token, user name, user uid",
                    record.len()
                )));
            };
            if token.is_empty() {
                tracing::warn!(file = %file.display(), line, "empty token skipped");
                continue;
            }
            let groups = rest.first().map(|groups| groups.split(',').collect::<Vec<_>>()).unwrap_or_default();
            let mut identity = Identity::new(user, groups.into_iter().filter(|group| !group.is_empty()));
            identity.uid.clone_from(uid);
            self.add(token, identity);
        }
        Ok(())
    }

    /// Whose token this is.
    pub(crate) fn find(&self, token: &[u8]) -> Option<&Identity> {
        let mut found = None;
        for (known, identity) in &self.0 {
            if bool::from(known.ct_eq(token)) {
                found = Some(identity);
            }
        }
        found
    }
}

impl Authenticator for Tokens {
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> BoxFuture<'a, Option<Identity>> {
        Box::pin(async move { self.find(presented.token?).cloned() })
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(_, identity)| &identity.user)).finish()
    }
}
