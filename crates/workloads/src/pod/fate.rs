use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use watchkeeper_client::controller_of;

use crate::annotation::{FAILS, READY_AFTER, RUNS_FOR};
use crate::timing::Timing;

/// What becomes of a pod, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    /// How long after its start it is ready; `None` if never.
    pub(crate) ready_after: Option<Duration>,
    /// How long it runs; `None` if for ever.
    pub(crate) runs_for: Option<Duration>,
    /// Whether it exits with an error then.
    pub(crate) fails: bool,
}

impl Fate {
    pub(crate) fn of(pod: &Pod, timing: &Timing) -> Self {
        let annotation =
            |name| pod.metadata.annotations.as_ref().and_then(|all| all.get(name)).map(String::as_str);
        let fails = annotation(FAILS) == Some("true");
        // Who does not want a container started again whenever it exits expects it to exit.
        let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
        let ends = fails
            || matches!(policy, Some("Never" | "OnFailure"))
            || controller_of(pod).is_some_and(|owner| owner.kind == "Job");
        Self {
            ready_after: match annotation(READY_AFTER) {
                Some("never") => None,
                said => Some(said.and_then(duration).unwrap_or(timing.ready)),
            },
            runs_for: match annotation(RUNS_FOR) {
                Some("forever") => None,
                said => said.and_then(duration).or(ends.then_some(timing.run)),
            },
            fails,
        }
    }
}

/// Whether an image can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Image {
    Available,
    /// There is none of this name.
    Missing,
    /// There cannot be one of this name.
    Invalid,
}

/// The one rule about images: those that say `does-not-exist` do not, and all others do, if they can be named so.
pub(crate) fn image(reference: &str) -> Image {
    let (name, digest) =
        reference.split_once('@').map_or((reference, None), |(name, digest)| (name, Some(digest)));
    // A colon before the last slash is that of a port.
    let (path, tag) = match name.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (name, None),
    };
    let in_path = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-/".contains(&byte);
    let (host, rest) = match path.split_once('/') {
        Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => (host, rest),
        _ => ("", path),
    };
    let valid = !rest.is_empty()
        && rest.bytes().all(in_path)
        && rest.split('/').all(|part| part.starts_with(|first: char| first.is_ascii_alphanumeric()))
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-[]".contains(&byte))
        && tag.is_none_or(|tag| {
            !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        })
        && digest.is_none_or(|digest| digest.contains(':'));
    match valid {
        false => Image::Invalid,
        true if name.contains("does-not-exist") => Image::Missing,
        true => Image::Available,
    }
}

/// Reads a time as Go writes it, `1h30m` or `500ms`, that is not before now.
fn duration(text: &str) -> Option<Duration> {
    let nanoseconds = watchkeeper_go::duration::parse(text.trim()).ok()?;
    u64::try_from(nanoseconds).ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_writes_them() {
        let read = |text| duration(text).map(|time| time.as_millis());
        assert_eq!(read("500ms"), Some(500));
        assert_eq!(read("5s"), Some(5_000));
        assert_eq!(read("1m30s"), Some(90_000));
        assert_eq!(read("1.5s"), Some(1_500));
        assert_eq!(read(" 0 "), Some(0));
        assert_eq!(duration("100us"), Some(Duration::from_micros(100)));
        for wrong in ["", "5", "s", "5 s", "-5s", "1d", "1e400s"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn images_are_there_unless_they_say_otherwise() {
        for good in [
            "nginx",
            "nginx:1.27",
            "registry.example.com:5000/team/web:v1",
            "localhost/web",
            "web@sha256:0123456789abcdef",
            "team/web_app:V2",
        ] {
            assert_eq!(image(good), Image::Available, "{good}");
        }
        for missing in ["nginx:does-not-exist", "does-not-exist", "a.example.com/does-not-exist/web:1"] {
            assert_eq!(image(missing), Image::Missing, "{missing}");
        }
        for invalid in ["", "Nginx", "web app", "nginx:", "web:a b", "team//web", "-web", "UPPER/web:1"] {
            assert_eq!(image(invalid), Image::Invalid, "{invalid}");
        }
    }
}
