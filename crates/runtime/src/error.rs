use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use watchkeeper_core::text::causes;

/// The result of a reconcile.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a reconcile failed, and what is to be done about it.
///
/// Any error becomes one with `?`, and is tried again after the key's back-off. [`terminal`](Self::terminal) says that
/// trying again would not help; [`retry_after`](Self::retry_after) says when it will.
///
/// ```
/// # use std::time::Duration;
/// use watchkeeper_runtime::{Error, Result};
///
/// fn port(text: &str) -> Result<u16> {
///     // Only a change of the object can mend this.
///     text.parse().map_err(Error::terminal)
/// }
/// assert!(port("many").unwrap_err().is_terminal());
///
/// fn quota() -> Result<()> {
///     Err(Error::message("the quota is used up").retry_after(Duration::from_secs(300)))
/// }
/// # assert_eq!(quota().unwrap_err().to_string(), "the quota is used up");
/// ```
pub struct Error {
    cause: Box<dyn StdError + Send + Sync>,
    retry: Retry,
}

/// When to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// After the back-off of the key.
    BackOff,
    After(Duration),
    /// When something changes.
    Never,
}

impl Error {
    /// A failure that is described by a text.
    pub fn message(text: impl Into<String>) -> Self {
        Self { cause: text.into().into(), retry: Retry::BackOff }
    }

    /// A failure that trying again would not mend: the object waits for its next change, and its attempts are
    /// forgotten.
    pub fn terminal(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { cause: cause.into(), retry: Retry::Never }
    }

    /// Tries again after exactly this time instead of the back-off. The attempt still counts as failed.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry = Retry::After(after);
        self
    }

    /// Whether the object is left alone until its next change.
    pub fn is_terminal(&self) -> bool {
        self.retry == Retry::Never
    }

    /// The cause as it was given.
    pub fn cause(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.cause
    }

    pub(crate) fn retry(&self) -> Retry {
        self.retry
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(cause: E) -> Self {
        Self { cause: Box::new(cause), retry: Retry::BackOff }
    }
}

/// The cause and the causes behind it, in one line.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&causes(&*self.cause))
    }
}

/// As [`Display`](fmt::Display), because this is what `fn main() -> Result<()>` prints.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot write")]
    struct Outer(#[source] std::fmt::Error);

    #[test]
    fn it_says_every_cause_once() {
        let error = Error::from(Outer(std::fmt::Error));
        let inner = std::fmt::Error.to_string();
        assert_eq!(error.to_string(), format!("cannot write: {inner}"));
        assert_eq!(format!("{error:?}"), error.to_string());
    }

    #[test]
    fn it_is_tried_again_unless_it_says_otherwise() {
        assert_eq!(Error::from(std::fmt::Error).retry(), Retry::BackOff);
        let soon = Duration::from_secs(1);
        assert_eq!(Error::message("wait").retry_after(soon).retry(), Retry::After(soon));
        assert_eq!(Error::terminal("never").retry(), Retry::Never);
    }
}
