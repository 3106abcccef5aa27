use std::fmt;
use std::path::{Path, PathBuf};

use parking_lot::RwLock;
use subtle::ConstantTimeEq;
use watchkeeper_front::private_file;

use super::{Authentication, Authenticator, Error, Identity, Presented};

/// A table of bearer tokens and whose they are: some that are fixed, and those of files, which can be read again.
///
/// A token is compared with all of the table, byte by byte to the end, so that the time it takes tells nothing but its
/// length. Tokens never appear in `Debug` output or in errors.
#[derive(Default)]
pub struct Tokens {
    fixed: Table,
    files: Vec<TokenFile>,
}

/// Tokens, and whose they are. A token is there once.
type Table = Vec<(Box<[u8]>, Identity)>;

/// Refuses a file in which others could put tokens, or lets it pass.
type Check = fn(&Path) -> Result<(), watchkeeper_front::Error>;

/// A file of tokens.
struct TokenFile {
    path: PathBuf,
    check: Check,
    read: RwLock<Read>,
}

/// What is known of a file of tokens.
struct Read {
    /// What it held when it was read last.
    text: String,
    /// The table that was made of it when that could last be done.
    table: Table,
    /// Whether it has been said that there is something new in it which is not taken, because others could have written it.
    is_refused: bool,
}

impl Tokens {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a token; one that is there already changes hands. An empty token is nobody's.
    pub fn add(&mut self, token: impl AsRef<[u8]>, identity: Identity) {
        add(&mut self.fixed, token.as_ref(), identity);
    }

    /// Adds the tokens of a file in the format of kube-apiserver: comma-separated values, `token,user,uid` and
    /// optionally the groups as one quoted value, `"group1,group2"`. A token that was [added](Self::add) stays whose it is.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is not written like that, or that [others can read or change](private_file::check).
    pub fn add_file(&mut self, file: &Path) -> Result<(), Error> {
        self.add_file_if(file, private_file::check)
    }

    /// Adds the tokens of a file that passes this check, and not [the usual one](Self::add_file). It is checked again whenever
    /// something new is in it.
    pub fn add_file_if(
        &mut self,
        file: &Path,
        check: fn(&Path) -> Result<(), watchkeeper_front::Error>,
    ) -> Result<(), Error> {
        let text = read(file)?;
        let table = parse(file, &text)?;
        check(file)?;
        let read = RwLock::new(Read { text, table, is_refused: false });
        self.files.push(TokenFile { path: file.into(), check, read });
        Ok(())
    }

    /// Whether some are from files.
    pub(crate) fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Reads the files again. Says whether there was something new. What cannot be used, or stands in a file that others can
    /// change, is an error once, and changes nothing. Blocks while it reads.
    pub fn refresh(&self) -> Result<bool, Error> {
        let mut is_new = false;
        for file in &self.files {
            is_new |= file.refresh()?;
        }
        Ok(is_new)
    }

    /// Whose token this is.
    pub(crate) fn find(&self, token: &[u8]) -> Option<Identity> {
        let mut found = None;
        for file in &self.files {
            look_up(&file.read.read().table, token, &mut found);
        }
        look_up(&self.fixed, token, &mut found);
        found
    }
}

impl TokenFile {
    fn refresh(&self) -> Result<bool, Error> {
        let text = read(&self.path)?;
        if self.read.read().text == text {
            self.read.write().is_refused = false;
            return Ok(false);
        }
        let checked = (self.check)(&self.path);
        let mut read = self.read.write();
        let was_refused = std::mem::replace(&mut read.is_refused, checked.is_err());
        match checked {
            Err(_) if was_refused => return Ok(false),
            checked => checked?,
        }
        let table = parse(&self.path, &text);
        // Also if it cannot be used: that is said once.
        read.text = text;
        read.table = table?;
        Ok(true)
    }
}

fn look_up(table: &Table, token: &[u8], found: &mut Option<Identity>) {
    for (known, identity) in table {
        if bool::from(known.ct_eq(token)) {
            *found = Some(identity.clone());
        }
    }
}

fn add(table: &mut Table, token: &[u8], identity: Identity) {
    if !token.is_empty() {
        table.retain(|(known, _)| **known != *token);
        table.push((token.into(), identity));
    }
}

fn read(file: &Path) -> Result<String, Error> {
    std::fs::read_to_string(file).map_err(|error| bad(file, error.to_string()))
}

fn parse(file: &Path, text: &str) -> Result<Table, Error> {
    let records = super::csv::records(text)
        .map_err(|wrong| bad(file, format!("line {}: {}", wrong.line, wrong.reason)))?;
    let mut table = Table::new();
    for (line, record) in records {
        let [token, user, uid, rest @ ..] = record.as_slice() else {
            return Err(bad(
                file,
                format!(
                    "line {line} has {} columns, at least 3 are needed: token, user name, user uid",
                    record.len()
                ),
            ));
        };
        if token.is_empty() {
            tracing::warn!(file = %file.display(), line, "empty token skipped");
            continue;
        }
        let groups = rest.first().map(|groups| groups.split(',').collect::<Vec<_>>()).unwrap_or_default();
        let mut identity = Identity::new(user, groups.into_iter().filter(|group| !group.is_empty()));
        identity.uid.clone_from(uid);
        add(&mut table, token.as_bytes(), identity);
    }
    Ok(table)
}

fn bad(file: &Path, reason: String) -> Error {
    Error::TokenFile { file: file.into(), reason }
}

impl Authenticator for Tokens {
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> Authentication<'a> {
        Box::pin(async move { Ok(presented.token.and_then(|token| self.find(token))) })
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut set = f.debug_set();
        for file in &self.files {
            set.entries(file.read.read().table.iter().map(|(_, identity)| &identity.user));
        }
        set.entries(self.fixed.iter().map(|(_, identity)| &identity.user)).finish()
    }
}
