//! The file systems behind a path.

use std::path::Path;

/// What is known of the mount that a path is on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) point: String,
    pub(super) kind: String,
}

/// The mount that a canonical path is on, on Linux.
pub(super) fn of(path: &Path) -> Option<Mount> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    find(&table, path)
}

/// The longest mount point that the path is below; the last of several, which covers those before.
fn find(table: &str, path: &Path) -> Option<Mount> {
    let mounts = table.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let point = unescape(left.split(' ').nth(4)?);
        Some(Mount { point, kind: right.split(' ').next()?.to_owned() })
    });
    mounts.filter(|mount| path.starts_with(&mount.point)).max_by_key(|mount| mount.point.len())
}

/// The table writes white space and backslashes in octal.
fn unescape(point: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(point.to_owned(), |point, (code, char)| point.replace(code, char))
}

impl Mount {
    /// Whether others can change files of this file system without our system being told.
    pub(super) fn is_silent(&self) -> bool {
        let kind = self.kind.as_str();
        matches!(
            kind,
            "nfs"
                | "nfs4"
                | "cifs"
                | "smb3"
                | "smbfs"
                | "9p"
                | "afs"
                | "ceph"
                | "lustre"
                | "virtiofs"
                | "vboxsf"
                | "glusterfs"
        ) || kind == "fuse"
            || kind.starts_with("fuse.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /srv/config rw - nfs4 host:/config rw,vers=4.2
31 22 8:1 /var/lib/kubelet/pods/1/volume-subpaths/config/app/0 /etc/app/app.yaml ro - ext4 /dev/sda1 rw
32 22 0:41 / /mnt/with\\040space rw - fuse.sshfs me@host: rw
33 22 0:42 / /mnt rw - tmpfs tmpfs rw
34 33 0:43 / /mnt rw master:2 - 9p share rw
";

    #[test]
    fn the_innermost_and_newest_mount_is_found() {
        let kind = |path: &str| find(TABLE, Path::new(path)).map(|mount| mount.kind);
        assert_eq!(kind("/etc/passwd").as_deref(), Some("ext4"));
        assert_eq!(kind("/srv/config/a.yaml").as_deref(), Some("nfs4"));
        assert_eq!(kind("/srv/configuration").as_deref(), Some("ext4"));
        assert_eq!(kind("/mnt/with space/x").as_deref(), Some("fuse.sshfs"));
        assert_eq!(kind("/mnt/x").as_deref(), Some("9p"));
        assert_eq!(find("", Path::new("/")), None);
    }

    #[test]
    fn file_systems_that_others_write_to_are_silent() {
        for (path, silent) in
            [("/srv/config/a", true), ("/mnt/with space", true), ("/mnt", true), ("/etc", false)]
        {
            assert_eq!(find(TABLE, Path::new(path)).unwrap().is_silent(), silent, "{path}");
        }
    }

    #[test]
    fn a_file_that_is_a_mount_is_recognised() {
        let path = Path::new("/etc/app/app.yaml");
        assert_eq!(find(TABLE, path).map(|mount| mount.point).as_deref(), path.to_str());
    }
}
