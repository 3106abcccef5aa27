use std::fmt;

use http::HeaderValue;

/// A key of the gateway's own, that a provider or a webhook is shown.
#[derive(Clone)]
pub enum ProviderKey {
    /// None is needed.
    None,
    /// This one.
    Given(HeaderValue),
    /// It is not where it should be.
    Missing,
}

/// Shows no key.
impl fmt::Debug for ProviderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Given(_) => "Given",
            Self::Missing => "Missing",
        })
    }
}

impl ProviderKey {
    /// The key as `Authorization` has it; `None` if there is none.
    pub(super) fn bearer(&self) -> Option<HeaderValue> {
        let Self::Given(key) = self else { return None };
        let mut bearer = HeaderValue::from_bytes(&[b"Bearer ", key.as_bytes()].concat()).ok()?;
        bearer.set_sensitive(true);
        Some(bearer)
    }
}
