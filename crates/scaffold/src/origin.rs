use std::path::{Component, Path, PathBuf};

/// Where a project has the crates of the framework from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A checkout. The path is written as it is, so that it has to be one from the folder of the project.
    Path(PathBuf),
    /// A repository and a commit of it.
    Git {
        /// Its URL.
        repository: String,
        /// The commit.
        commit: String,
    },
}

/// How the template refers to the workspace that it is in.
const HERE: &str = "../../crates";

impl Origin {
    /// The checkout, as it is reached from the folder of a project. Both paths have to be absolute and without `.`, `..` and links.
    pub fn from_folder(checkout: &Path, folder: &Path) -> Self {
        let shared =
            checkout.components().zip(folder.components()).take_while(|(one, other)| one == other).count();
        let up = folder.components().skip(shared).map(|_| Component::ParentDir);
        let path: PathBuf = up.chain(checkout.components().skip(shared)).collect();
        if path.as_os_str().is_empty() { Self::Path(PathBuf::from(".")) } else { Self::Path(path) }
    }

    /// Replaces how the template refers to its workspace.
    pub(crate) fn apply(&self, text: &str) -> String {
        match self {
            Self::Path(path) => text.replace(HERE, &format!("{}/crates", path.display())),
            Self::Git { repository, commit } => {
                let flags = format!("--git {repository} --rev {commit} watchkeeper-cli");
                let text = text.replace(&format!("--path {HERE}/cli"), &flags);
                let keys = format!("git = \"{repository}\", rev = \"{commit}\"");
                ["watchkeeper", "testkit"]
                    .iter()
                    .fold(text, |text, name| text.replace(&format!("path = \"{HERE}/{name}\""), &keys))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkout_is_reached_from_the_folder() {
        let path =
            |checkout: &str, folder: &str| match Origin::from_folder(checkout.as_ref(), folder.as_ref()) {
                Origin::Path(path) => path.display().to_string(),
                Origin::Git { .. } => unreachable!(),
            };
        assert_eq!(path("/a/watchkeeper", "/a/shop"), "../watchkeeper");
        assert_eq!(path("/a/watchkeeper", "/a/watchkeeper/shop"), "..");
        assert_eq!(path("/a/watchkeeper", "/b/c/shop"), "../../../a/watchkeeper");
    }

    #[test]
    fn a_repository_takes_the_place_of_paths() {
        let git = Origin::Git { repository: "https://example.com/w".into(), commit: "abc".into() };
        let toml = git.apply("watchkeeper = { path = \"../../crates/watchkeeper\", features = [\"files\"] }");
        assert_eq!(
            toml,
            "watchkeeper = { git = \"https://example.com/w\", rev = \"abc\", features = [\"files\"] }"
        );
        let install = git.apply("cargo install --locked --path ../../crates/cli");
        assert_eq!(install, "cargo install --locked --git https://example.com/w --rev abc watchkeeper-cli");
    }
}
