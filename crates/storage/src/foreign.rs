use bytes::Bytes;

/// Translates the keys and values of another program in etcd into those of this storage. Its functions are pure.
pub trait Foreign: Send + Sync {
    /// The key under which it is kept here, if it is. The prefix is that of the storage, without a slash at its end.
    fn key(&self, prefix: &str, key: &[u8]) -> Option<String>;

    /// The value that is kept here, if one is.
    fn value(&self, prefix: &str, key: &[u8], value: &[u8]) -> Option<Bytes>;
}
