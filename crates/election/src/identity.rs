/// A name that no other candidate has: the host, the process, and something random.
pub(crate) fn unique() -> String {
    let host = host();
    let host = if host.is_empty() { "unknown".to_owned() } else { host };
    format!("{host}_{}_{:08x}", std::process::id(), fastrand::u32(..))
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_two_are_the_same() {
        let (one, other) = (super::unique(), super::unique());
        assert_ne!(one, other);
        assert!(one.contains(&format!("_{}_", std::process::id())), "{one}");
    }
}
