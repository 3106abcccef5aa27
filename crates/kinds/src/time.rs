//! Times as kube-apiserver keeps them: UTC, to the second or to the microsecond.

use serde_json::json;
use watchkeeper_schema::{Path, metadata};

/// A time to the second, or Go's words for what is wrong with it.
pub(crate) fn seconds(text: &str) -> Result<String, String> {
    // The metadata of every object holds a time, so the reader of metadata knows how to read one.
    let read = metadata::coerce(&json!({"creationTimestamp": text}), &Path::root());
    let read = read.map_err(|error| error.to_string())?;
    Ok(read.value["creationTimestamp"].as_str().unwrap_or_default().to_owned())
}

/// A time to the microsecond. It must have six decimal places.
pub(crate) fn micros(text: &str) -> Result<String, String> {
    let complain = |rest: &str, wanted: &str| {
        format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse {rest:?} as {wanted:?}"
        )
    };
    let (whole, rest) = text.split_at_checked(19).unwrap_or((text, ""));
    let whole_is_good = seconds(&format!("{whole}Z"));
    if let Err(error) = whole_is_good {
        return Err(error.replace(":05Z07:00", ":05.000000Z07:00").replace(&format!("{whole}Z"), text));
    }
    let fraction = rest.strip_prefix('.').and_then(|rest| rest.split_at_checked(6));
    let Some((digits, zone)) =
        fraction.filter(|(digits, _)| digits.bytes().all(|byte| byte.is_ascii_digit()))
    else {
        return Err(complain(rest, ".000000"));
    };
    let Ok(utc) = seconds(&format!("{whole}{zone}"))
        .map_err(drop)
        .and_then(|utc| if zone.starts_with(['Z', '+', '-']) { Ok(utc) } else { Err(()) })
    else {
        return Err(complain(zone, "Z07:00"));
    };
    Ok(format!("{}.{digits}Z", utc.trim_end_matches('Z')))
}
