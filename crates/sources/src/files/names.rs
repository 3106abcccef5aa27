//! Decides by its name whether a file has documents.

use std::path::Path;

/// Whether a file below the directory is a document: by the end of its name, and not hidden, temporary or a backup.
pub(super) fn is_document(below: &Path) -> bool {
    let is_document = below.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
    is_document && is_member(below)
}

/// Whether a file is what somebody meant to put there, rather than what an editor left.
pub(super) fn is_member(below: &Path) -> bool {
    let name = below.file_name().unwrap_or_default().to_string_lossy();
    let left_over = name.starts_with(['.', '#'])
        || name.ends_with(['~', '#'])
        || [".swp", ".swx", ".swo", ".tmp", ".bak", ".orig"].iter().any(|end| name.ends_with(end));
    !left_over && below.parent().is_none_or(|parent| parent.iter().all(|name| !is_hidden(name.as_ref())))
}

/// Whether a directory is not entered.
pub(super) fn is_hidden(name: &Path) -> bool {
    name.as_os_str().to_string_lossy().starts_with('.')
}

/// Whether a file is JSON rather than YAML.
pub(super) fn is_json(below: &Path) -> bool {
    below.extension().is_some_and(|end| end == "json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_told_from_what_editors_leave() {
        for name in ["a.yaml", "b/c.yml", "d.json", "e.f.yaml", "..e.yaml.d/../x.yaml"] {
            let expected = !name.starts_with("..");
            assert_eq!(is_document(Path::new(name)), expected, "{name}");
        }
        for name in [
            ".a.yaml",
            "a.yaml~",
            ".a.yaml.swp",
            "a.yaml.swp",
            "#a.yaml#",
            ".#a.yaml",
            "4913",
            "sedAb12Cd",
            "a.yaml.tmp",
            "a.yaml.bak",
            "a.yaml.orig",
            ".git/a.yaml",
            "b/.c/a.yaml",
            "a.txt",
            "yaml",
        ] {
            assert!(!is_document(Path::new(name)), "{name}");
        }
        assert!(is_member(Path::new("tls.crt")) && !is_member(Path::new("tls.crt~")));
    }
}
