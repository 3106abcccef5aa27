use super::typed::Typed;
use crate::{Error, Shape};
use serde_json::Value;
use std::borrow::Cow;

/// The result of a conversion.
#[derive(Clone, Debug, PartialEq)]
pub enum Converted {
    /// The object in the other version.
    Object(Value),
    /// The version is not there any more. Owners recorded in it are forgotten.
    NoSuchVersion,
}

/// The versions of a kind.
///
/// Owned fields are recorded in the version they were written in. To compare them with a change made in another version,
/// the objects are converted.
pub trait Versions {
    /// The shape of a version; `None` if there is none such (any more).
    fn shape(&self, api_version: &str) -> Option<&Shape>;

    /// An object in another version. Without anything better, only `apiVersion` is rewritten.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Converted, Error> {
        let mut object = object.clone();
        if let Value::Object(fields) = &mut object {
            fields.insert("apiVersion".into(), api_version.into());
        }
        Ok(Converted::Object(object))
    }
}

/// Every version has this shape.
impl Versions for Shape {
    fn shape(&self, _api_version: &str) -> Option<&Shape> {
        Some(self)
    }
}

/// An object in the wanted version; `None` if there is no such version.
pub(super) fn convert<'v, 'o>(
    versions: &'v dyn Versions,
    object: &'o Value,
    api_version: &str,
) -> Result<Option<(Cow<'o, Value>, Typed<'v>)>, Error> {
    let Some(shape) = versions.shape(api_version) else {
        return Ok(None);
    };
    let typed = Typed::new(shape);
    if object.get("apiVersion").and_then(Value::as_str) == Some(api_version) {
        return Ok(Some((Cow::Borrowed(object), typed)));
    }
    match versions.convert(object, api_version)? {
        Converted::NoSuchVersion => Ok(None),
        Converted::Object(object) => {
            typed.validate(&object, false).map_err(Error::Apply)?;
            Ok(Some((Cow::Owned(object), typed)))
        }
    }
}
