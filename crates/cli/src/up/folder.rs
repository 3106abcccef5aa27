use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use watchkeeper_apiserver::front::private_file;
use watchkeeper_storage::{Embedded, Options};

use super::claim::claim;
use crate::failure::Failure;

/// What to try, for those who are not in the folder of the source.
const EXAMPLE: &str = include_str!("../../../../examples/webapp.yaml");

/// The directory in which `up` keeps everything: `data`, `kubeconfig`, and examples.
pub(crate) struct Folder {
    path: PathBuf,
    example: String,
}

impl Folder {
    /// Makes the directory, or empties it of what `up` keeps there if it is to be fresh. Others' files in it stay. One that
    /// is not this user's alone is [refused](claim).
    pub(crate) fn open(path: &Path, fresh: bool) -> Result<Self, Failure> {
        // Behind a slash at the end, a link would not look like one.
        let path: &Path = &path.components().collect::<PathBuf>();
        let failed = |error: io::Error| Failure::running(format!("{}: {error}", path.display()));
        let mut folder = Self { path: path.into(), example: "examples/webapp.yaml".into() };
        claim(path)?;
        if fresh && folder.data().exists() {
            // Somebody may be using it; this fails then.
            drop(Embedded::open(folder.data(), Options::default()).map_err(Failure::running)?);
            fs::remove_dir_all(folder.data()).map_err(failed)?;
        }
        // The directory is in the middle of somebody's work, and is none of it.
        private_file::write(&path.join(".gitignore"), b"*\n").map_err(failed)?;
        if !Path::new(&folder.example).exists() {
            let file = path.join("webapp.yaml");
            private_file::write(&file, EXAMPLE.as_bytes()).map_err(failed)?;
            folder.example = file.display().to_string();
        }
        Ok(folder)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    pub(crate) fn credentials(&self) -> PathBuf {
        self.data().join("credentials")
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path.join("kubeconfig")
    }

    /// As a person pastes it into a shell, from where they are.
    pub(crate) fn kubeconfig_for_shell(&self) -> String {
        let file = self.kubeconfig();
        let path = match file.is_absolute() {
            true => file.display().to_string(),
            false => format!("$PWD/{}", file.strip_prefix(".").unwrap_or(&file).display()),
        };
        match path.contains(char::is_whitespace) {
            true => format!("\"{path}\""),
            false => path,
        }
    }

    /// The file with a WebApp to try.
    pub(crate) fn example(&self) -> &str {
        &self.example
    }

    pub(crate) fn shown(&self) -> String {
        format!("{}/", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> String {
        Folder { path: path.into(), example: String::new() }.kubeconfig_for_shell()
    }

    #[test]
    fn the_kubeconfig_can_be_pasted_from_where_one_is() {
        assert_eq!(at(".watchkeeper"), "$PWD/.watchkeeper/kubeconfig");
        assert_eq!(at("./here"), "$PWD/here/kubeconfig");
        assert_eq!(at("/srv/data"), "/srv/data/kubeconfig");
        assert_eq!(at("my data"), "\"$PWD/my data/kubeconfig\"");
    }
}
