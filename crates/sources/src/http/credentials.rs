//! Headers of requests; secret ones are read from files.

use http::{HeaderMap, HeaderName, HeaderValue};
use watchkeeper_core::Error;

use super::settings::Settings;

/// The headers that the settings ask for. Files are read every time, so that a new secret is used as soon as it is there.
pub(super) async fn headers(settings: &Settings) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for (name, value) in &settings.headers {
        add(&mut headers, name, value, false)?;
    }
    for (name, prefix, path) in &settings.header_files {
        let secret = tokio::fs::read_to_string(path).await.map_err(|error| Error::Unavailable {
            answered: false,
            reason: format!("the credential in {} cannot be read: {error}", path.display()),
        })?;
        let secret = secret.trim();
        if secret.is_empty() {
            let reason = format!("the credential in {} is empty", path.display());
            return Err(Error::Unavailable { answered: false, reason });
        }
        add(&mut headers, name, &format!("{prefix}{secret}"), true)?;
    }
    Ok(headers)
}

fn add(headers: &mut HeaderMap, name: &str, value: &str, secret: bool) -> Result<(), Error> {
    let unusable = |what: &str| Error::Fatal(format!("the {what} of the header {name:?} cannot be sent"));
    let name: HeaderName = name.parse().map_err(|_| unusable("name"))?;
    let mut value = HeaderValue::from_str(value).map_err(|_| unusable("value"))?;
    value.set_sensitive(secret);
    headers.append(name, value);
    Ok(())
}
