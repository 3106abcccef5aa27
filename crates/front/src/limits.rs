use crate::open_files::open_files;

/// Files that are left for storage, listeners and the runtime, and for connections that are being closed while
/// others take their place.
const RESERVED_FILES: u64 = 256;
/// Connections in all, however many files may be open. Each takes up to a few hundred KiB of memory.
const MOST_CONNECTIONS: u64 = 10_000;
/// Connections of strangers in all: enough for a test suite that opens 1,500 at once, which are all strangers until
/// their first request. A silent one takes about 20 KiB.
const MOST_STRANGERS: usize = 2_000;
/// Requests at a time on one HTTP/2 connection, as in kube-apiserver. Go clients open another connection for more.
const STREAMS: u32 = 100;

/// The limits of a [`Front`](crate::Front): connections, and requests on each.
///
/// A connection is a stranger's until the service says whose it is ([`Peer::authenticated`](crate::Peer::authenticated)). Only strangers' connections are
/// closed to make room for others: first the one that has sent nothing for longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of connections. When all of them are authenticated, more are refused.
    pub connections: usize,
    /// The maximum number of strangers' connections. The rest of `connections` is reserved for authenticated ones.
    pub strangers: usize,
    /// The maximum number of strangers' connections from one address. The machine of the server itself has no such limit: its programs share
    /// an address.
    pub strangers_per_address: usize,
    /// The number of authenticated connections of one user. More may be open, but they count as strangers' connections.
    pub connections_per_user: usize,
    /// The maximum number of concurrent requests on one HTTP/2 connection; more are refused with `REFUSED_STREAM`.
    pub streams: u32,
    /// The maximum size of a request body in bytes. A request that announces more is answered with 413 before the service is called; the body
    /// of others breaks off. Default: no limit, since a service that reads bodies into memory has its own limit ([`Body::read`]) and
    /// its own message.
    ///
    /// [`Body::read`]: crate::Body::read
    pub body_bytes: u64,
}

impl Limits {
    /// Limits for a number of connections: half of them for strangers, but no more than 2,000; a quarter of those for each address; half
    /// of all for each user.
    pub fn of_connections(connections: usize) -> Self {
        let connections = connections.max(1);
        let strangers = (connections / 2).clamp(1, MOST_STRANGERS);
        Self {
            connections,
            strangers,
            strangers_per_address: (strangers / 4).max(1),
            connections_per_user: (connections / 2).max(1),
            streams: STREAMS,
            body_bytes: u64::MAX,
        }
    }

    /// Limits for a process that may open this number of files: as many connections, but no more than 10,000. 256 files, or a
    /// quarter of them if that is less, are left for everything else.
    pub fn of_files(files: u64) -> Self {
        let connections = files.saturating_sub(RESERVED_FILES.min(files / 4)).min(MOST_CONNECTIONS);
        Self::of_connections(usize::try_from(connections).unwrap_or(usize::MAX))
    }
}

/// As many as this process can have.
impl Default for Limits {
    fn default() -> Self {
        Self::of_files(open_files())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_rest_of_the_server() {
        let numbers = |files| {
            let limits = Limits::of_files(files);
            (limits.connections, limits.strangers, limits.strangers_per_address, limits.connections_per_user)
        };
        assert_eq!(numbers(1 << 20), (10_000, 2_000, 500, 5_000));
        assert_eq!(numbers(1_024), (768, 384, 96, 384));
        assert_eq!(numbers(256), (192, 96, 24, 96));
        assert_eq!(numbers(0), (1, 1, 1, 1));
    }
}
