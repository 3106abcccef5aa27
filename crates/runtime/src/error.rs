use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use watchkeeper_core::text::causes;

/// The result of a reconcile.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a reconcile, and when the reconcile is retried.
///
/// Any error becomes one with `?`: those of the standard library's trait, those of `anyhow`, and texts. It is tried again after
/// the key's back-off. [`terminal`](Self::terminal) says that trying again would not help;
/// [`retry_after`](Self::retry_after) says when it will.
///
/// ```
/// # use std::time::Duration;
/// use watchkeeper_runtime::{Error, Result};
///
/// fn port(text: &str) -> Result<u16> {
///     // Permanent: only a change of the object can fix it.
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

    /// A permanent failure. The object is not reconciled again until it changes, and its attempts are forgotten.
    pub fn terminal(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { cause: cause.into(), retry: Retry::Never }
    }

    /// Tries again after exactly this time instead of the back-off. The attempt still counts as failed.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry = Retry::After(after);
        self
    }

    /// Adds what was being done to the message. The time of the retry stays.
    ///
    /// ```
    /// # use watchkeeper_runtime::Error;
    /// let error = Error::terminal("no such file").context("cannot read the template");
    /// assert_eq!(error.to_string(), "cannot read the template: no such file");
    /// assert!(error.is_terminal());
    /// ```
    #[must_use]
    pub fn context(self, doing: impl Into<String>) -> Self {
        let cause = InContext { doing: doing.into(), cause: self.cause };
        Self { cause: Box::new(cause), retry: self.retry }
    }

    /// Whether the object is left alone until its next change.
    pub fn is_terminal(&self) -> bool {
        self.retry == Retry::Never
    }

    /// The cause of the error.
    pub fn cause(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.cause
    }

    pub(crate) fn retry(&self) -> Retry {
        self.retry
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for Error {
    fn from(cause: E) -> Self {
        Self { cause: cause.into(), retry: Retry::BackOff }
    }
}

/// A failure, and what was being done.
#[derive(Debug)]
struct InContext {
    doing: String,
    cause: Box<dyn StdError + Send + Sync>,
}

impl fmt::Display for InContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.doing)
    }
}

impl StdError for InContext {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.cause)
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

    /// As `anyhow::Error`: no error by the trait, but it can be made one.
    struct Opaque;

    impl From<Opaque> for Box<dyn StdError + Send + Sync> {
        fn from(_: Opaque) -> Self {
            "opaque".into()
        }
    }

    #[test]
    fn whatever_can_be_made_an_error_becomes_one_with_a_question_mark() {
        let fails = |opaque: bool| -> Result<()> { if opaque { Err(Opaque)? } else { Err("a text")? } };
        assert_eq!(fails(true).unwrap_err().to_string(), "opaque");
        assert_eq!(fails(false).unwrap_err().to_string(), "a text");
    }

    #[test]
    fn a_context_comes_first_and_changes_nothing_else() {
        let soon = Duration::from_secs(1);
        let error = Error::from(Outer(std::fmt::Error)).retry_after(soon).context("page web");
        let inner = std::fmt::Error.to_string();
        assert_eq!(error.to_string(), format!("page web: cannot write: {inner}"));
        assert_eq!(error.retry(), Retry::After(soon));
    }

    #[test]
    fn it_is_tried_again_unless_it_says_otherwise() {
        assert_eq!(Error::from(std::fmt::Error).retry(), Retry::BackOff);
        let soon = Duration::from_secs(1);
        assert_eq!(Error::message("wait").retry_after(soon).retry(), Retry::After(soon));
        assert_eq!(Error::terminal("never").retry(), Retry::Never);
    }
}
