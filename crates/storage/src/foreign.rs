use bytes::Bytes;

/// What somebody else writes to etcd, as keys and values of this storage. Functions of nothing but what they are given.
pub trait Foreign: Send + Sync {
    /// The key under which it is kept here, if it is. The prefix is that of the storage, without a slash at its end.
    fn key(&self, prefix: &str, key: &[u8]) -> Option<String>;

    /// The value that is kept here, if one is.
    fn value(&self, prefix: &str, key: &[u8], value: &[u8]) -> Option<Bytes>;
}
