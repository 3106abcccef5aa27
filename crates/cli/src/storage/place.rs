//! Where objects are, as one argument.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The prefix of all keys in etcd, if none is named.
const PREFIX: &str = "/watchkeeper";

/// Where a server keeps its objects, or a backup of them is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A directory of a server, or one that is to become that; or a file.
    Path(PathBuf),
    /// An etcd cluster.
    Etcd { endpoints: Vec<String>, prefix: String },
}

impl FromStr for Place {
    type Err = String;

    /// `data`, `backup.wk`, `https://a:2379,https://b:2379`, `http://127.0.0.1:2379/prefix`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err("a directory, a file, or the URLs of an etcd cluster".into());
        }
        if !text.contains("://") {
            return Ok(Self::Path(text.into()));
        }
        let (mut endpoints, mut prefix) = (Vec::new(), None);
        for url in text.split(',') {
            let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("{url:?} is no URL"))?;
            if !matches!(scheme, "http" | "https") {
                return Err(format!("{scheme}:// is not spoken here: http and https are"));
            }
            let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
            endpoints.push(format!("{scheme}://{host}"));
            if let Some(path) = path.map(|path| path.trim_end_matches('/')).filter(|path| !path.is_empty()) {
                let path = format!("/{path}");
                if prefix.replace(path.clone()).is_some_and(|other| other != path) {
                    return Err("the URLs of one cluster name two prefixes".into());
                }
            }
        }
        Ok(Self::Etcd { endpoints, prefix: prefix.unwrap_or_else(|| PREFIX.into()) })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Etcd { endpoints, prefix } => write!(f, "{prefix}/ of etcd at {}", endpoints.join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart() {
        let etcd = |endpoints: &[&str], prefix: &str| Place::Etcd {
            endpoints: endpoints.iter().map(|text| (*text).to_owned()).collect(),
            prefix: prefix.into(),
        };
        for (text, place) in [
            ("data", Place::Path("data".into())),
            ("/backups/a.wk", Place::Path("/backups/a.wk".into())),
            ("http://a:2379", etcd(&["http://a:2379"], "/watchkeeper")),
            ("http://a:2379/", etcd(&["http://a:2379"], "/watchkeeper")),
            (
                "https://a:2379/other/one,https://b:2379",
                etcd(&["https://a:2379", "https://b:2379"], "/other/one"),
            ),
        ] {
            assert_eq!(text.parse::<Place>().unwrap(), place);
        }
        for wrong in ["", "ftp://a", "http://a/one,http://b/two", "http://a,b"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }
}
