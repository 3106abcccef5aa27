//! What is asked of a WebApp before it is stored, and how its versions become each other.

use watchkeeper::prelude::*;

use crate::{v1alpha1, v1beta1};

/// The label that names the application, for those who did not.
const NAME: &str = "app.kubernetes.io/name";
/// What the environment of a container may have in all: more is no configuration, and would not fit beside the rest of an object.
const ENVIRONMENT_BYTES: usize = 64 << 10;

/// Adds the webhooks to a manager: defaults, rules that a schema cannot say, and conversion from and to `v1alpha1`.
///
/// Objects are stored as `v1alpha1`, so that replicas of the release before, which know nothing else, go on working while they are
/// replaced. The release after this one may store `v1beta1`.
#[must_use]
pub fn webhooks(manager: Manager) -> Manager {
    manager.webhook(
        Webhook::of::<v1beta1::WebApp>()
            .default(default)
            .validate(validate)
            .convert::<v1alpha1::WebApp>()
            .stored_as("v1alpha1"),
    )
}

/// An application has a label with its name.
pub(crate) fn default(app: &mut v1beta1::WebApp, _: &AdmissionRequest) {
    // One whose name the server is going to make has none yet.
    if let Some(name) = app.metadata.name.clone().filter(|name| !name.is_empty() && name.len() <= 63) {
        app.metadata.labels.get_or_insert_default().entry(NAME.to_owned()).or_insert(name);
    }
}

/// Says what would not run, and warns of what would surprise.
pub(crate) fn validate(
    new: &v1beta1::WebApp,
    old: Option<&v1beta1::WebApp>,
    _: &AdmissionRequest,
) -> Verdict {
    let mut verdict = Verdict::allow();
    let spec = &new.spec;
    // What is stored already is not refused for a change that is about something else.
    if old.is_some_and(|old| old.spec == *spec) {
        return verdict;
    }
    for name in spec.environment.keys().filter(|name| !is_variable(name)) {
        verdict.invalid(
            "spec.environment",
            name.as_str(),
            "the name of a variable has letters, digits, '_', '-' and '.', and does not begin with a digit",
        );
    }
    let bytes: usize = spec.environment.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > ENVIRONMENT_BYTES {
        let rule = format!("has {bytes} bytes, and may have {ENVIRONMENT_BYTES}: mount a ConfigMap instead");
        verdict.forbidden("spec.environment", rule);
    }
    if is_moving(&spec.image) {
        verdict.warn(format!(
            "spec.image: {:?} may be another program tomorrow; name a version or a digest",
            spec.image
        ));
    }
    verdict
}

fn is_variable(name: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.');
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|char: char| char.is_ascii_digit())
}

/// Whether what an image names changes when somebody pushes: it has no tag, or one that says so.
fn is_moving(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or(image);
    match (image.contains("@sha256:"), name.split_once(':')) {
        (true, _) => false,
        (false, None) => true,
        (false, Some((_, tag))) => tag == "latest",
    }
}

impl From<v1alpha1::WebApp> for v1beta1::WebApp {
    fn from(app: v1alpha1::WebApp) -> Self {
        let v1alpha1::WebAppSpec { image, replicas, port, env } = app.spec;
        let spec = v1beta1::WebAppSpec { image, replicas, http: v1beta1::Http { port }, environment: env };
        Self { metadata: app.metadata, spec, status: app.status }
    }
}

impl From<v1beta1::WebApp> for v1alpha1::WebApp {
    fn from(app: v1beta1::WebApp) -> Self {
        let v1beta1::WebAppSpec { image, replicas, http, environment } = app.spec;
        let spec = v1alpha1::WebAppSpec { image, replicas, port: http.port, env: environment };
        Self { metadata: app.metadata, spec, status: app.status }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_version_loses_what_the_other_says() {
        watchkeeper_testkit::round_trips::<v1beta1::WebApp, v1alpha1::WebApp>();
    }

    #[test]
    fn images_that_move_are_known() {
        for image in ["nginx", "nginx:latest", "localhost:5000/shop"] {
            assert!(is_moving(image), "{image}");
        }
        for image in ["nginx:1.29", "localhost:5000/shop:2", "shop@sha256:00", "a:latest@sha256:00"] {
            assert!(!is_moving(image), "{image}");
        }
    }

    #[test]
    fn names_of_variables_are_those_of_kubernetes() {
        for name in ["A", "_a", "a.b-c", "GREETING_2"] {
            assert!(is_variable(name), "{name}");
        }
        for name in ["", "2A", "A B", "Ä", "A=B"] {
            assert!(!is_variable(name), "{name}");
        }
    }
}
