use super::field::{Errors, Field};
use super::mounts::Volumes;
use super::storage;
use watchkeeper_schema::FieldError;

/// What must be there in a volume of a kind.
const NEEDED: [(&str, &str); 5] = [
    ("secret", "secretName"),
    ("configMap", "name"),
    ("persistentVolumeClaim", "claimName"),
    ("nfs", "server"),
    ("csi", "driver"),
];

/// The volumes of a pod; returns those that can be mounted, which are the ones with nothing wrong.
pub(crate) fn volumes<'a>(volumes: &Field<'a>, errors: &mut Errors) -> Volumes<'a> {
    let mut known = Volumes::new();
    for volume in volumes.items() {
        let (name, before) = (volume.get("name"), errors.len());
        sources(&volume, errors);
        if name.required(errors) {
            name.dns_label(errors);
        }
        if known.contains_key(name.text()) {
            errors.push(FieldError::duplicate(&name.at, name.text()));
        }
        if errors.len() == before {
            let is_claim =
                ["persistentVolumeClaim", "ephemeral"].iter().any(|kind| volume.get(kind).is_set());
            known.insert(name.text(), is_claim);
        }
    }
    known
}

fn sources(volume: &Field<'_>, errors: &mut Errors) {
    // Go looks at them in the order of its code, which for the common ones is this.
    let order = [
        "emptyDir",
        "hostPath",
        "gitRepo",
        "secret",
        "nfs",
        "persistentVolumeClaim",
        "configMap",
        "projected",
    ];
    let fields: Vec<&str> =
        volume.value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let mut set: Vec<&str> = fields.into_iter().filter(|name| *name != "name").collect();
    set.sort_by_key(|name| order.iter().position(|known| known == name).unwrap_or(order.len()));
    for other in set.iter().skip(1) {
        errors
            .push(FieldError::forbidden(&volume.at.child(other), "may not specify more than 1 volume type"));
    }
    let Some(source) = set.first().map(|first| volume.get(first)) else { return };
    if set.first() == Some(&"hostPath") {
        storage::host_path(&source, errors);
    }
    for (kind, needed) in NEEDED {
        if set.first() == Some(&kind) {
            source.get(needed).required(errors);
        }
    }
    let mode = source.get("defaultMode");
    if mode.number().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        mode.invalid("must be a number between 0 and 0777 (octal), both inclusive", errors);
    }
}
