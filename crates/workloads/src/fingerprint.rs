use k8s_openapi::api::core::v1::PodTemplateSpec;

/// Letters and digits that make no words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A short text that differs where templates differ, made to stand in names and labels. `collisions` makes it another one.
///
/// It is stable as long as the template is, but it is not the one that Kubernetes computes, which depends on how Go prints
/// structures. Nothing depends on that: templates are compared, not their fingerprints.
pub(crate) fn fingerprint(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    // A template is made of maps with texts as keys, which can always be written.
    let mut bytes = serde_json::to_vec(template).unwrap_or_default();
    if let Some(collisions) = collisions {
        bytes.extend(collisions.to_le_bytes());
    }
    let hash =
        bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    hash.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_differs_where_templates_or_collisions_do() {
        let one = PodTemplateSpec::default();
        let other = PodTemplateSpec { spec: Some(Default::default()), ..Default::default() };
        assert_eq!(fingerprint(&one, None), fingerprint(&one.clone(), None));
        assert_ne!(fingerprint(&one, None), fingerprint(&other, None));
        assert_ne!(fingerprint(&one, None), fingerprint(&one, Some(1)));
        assert!(fingerprint(&one, None).bytes().all(|byte| ALPHABET.contains(&byte)));
    }
}
