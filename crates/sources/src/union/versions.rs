//! Versions that name their member, and positions composed of those of all members.

use watchkeeper_core::{Document, Uid, Version};

/// A version as that of a member.
pub(super) fn tag(member: usize, version: &Version) -> Version {
    Version::from(&*format!("{member}:{version}"))
}

/// Which member a version is of, and its version there.
pub(super) fn untag(version: &Version) -> Option<(usize, Version)> {
    let text = version.to_string();
    let (member, version) = text.split_once(':')?;
    Some((member.parse().ok()?, Version::from(version)))
}

/// A document as that of a member. One without a version or a uid stays without.
pub(super) fn tagged(member: usize, mut document: Document) -> Document {
    let header = &mut document.header;
    header.version = tag(member, &header.version);
    header.uid = header.uid.take().map(|uid| Uid::from(&*format!("{member}:{uid}")));
    document
}

/// The positions of all members as one.
pub(super) fn join<'a>(positions: impl Iterator<Item = &'a Version>) -> Version {
    let escaped = |version: &Version| version.to_string().replace('%', "%25").replace(',', "%2C");
    let texts: Vec<String> = positions.map(escaped).collect();
    // The letter keeps it from looking like a number, of which one could be larger than another.
    Version::from(&*format!("u{}", texts.join(",")))
}

/// The positions of so many members, if these are some.
pub(super) fn split(position: &Version, members: usize) -> Option<Vec<Version>> {
    let text = position.to_string();
    let parts: Vec<Version> = text
        .strip_prefix('u')?
        .split(',')
        .map(|part| Version::from(&*part.replace("%2C", ",").replace("%25", "%")))
        .collect();
    (parts.len() == members).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_together_comes_apart_again() {
        for texts in [&["7"][..], &["7", "lsn/1,2"], &["", "a%b,%2C", "0:1"]] {
            let versions: Vec<Version> = texts.iter().map(|text| Version::from(*text)).collect();
            let joined = join(versions.iter());
            assert!(joined.number().is_none());
            assert_eq!(split(&joined, texts.len()).unwrap(), versions);
            assert_eq!(split(&joined, texts.len() + 1), None);
            for version in &versions {
                assert_eq!(untag(&tag(3, version)), Some((3, version.clone())));
            }
        }
        assert_eq!(split(&Version::from("7"), 1), None);
        assert_eq!(untag(&Version::from("7")), None);
    }
}
