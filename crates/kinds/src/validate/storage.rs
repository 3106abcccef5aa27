//! What volumes and claims have in common.

use super::field::{Errors, Field};
use crate::decimal;
use watchkeeper_schema::FieldError;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(crate) fn access_modes(modes: &Field<'_>, errors: &mut Errors) {
    for mode in modes.items().filter(|mode| !ACCESS_MODES.contains(&mode.text())) {
        errors.push(FieldError::not_supported(&modes.at, mode.text(), ACCESS_MODES));
    }
    let has_alone = modes.items().any(|mode| mode.text() == "ReadWriteOncePod");
    if has_alone && modes.items().any(|mode| mode.text() != "ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&modes.at, detail));
    }
}

/// A path on the node, which does not lead out of where it begins.
pub(crate) fn host_path(source: &Field<'_>, errors: &mut Errors) {
    const KINDS: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let path = source.get("path");
    if path.required(errors) && path.text().split('/').any(|part| part == "..") {
        path.invalid("must not contain '..'", errors);
    }
    source.get("type").one_of(&KINDS, errors);
}

pub(crate) fn is_positive(amount: &str) -> bool {
    let amount = decimal::parse(amount).ok().flatten();
    amount.is_none_or(|amount| !amount.is_negative() && amount.whole() != Some(0))
}
