use tokio::io::{AsyncRead, AsyncWrite};

/// A connection, whatever it goes over.
pub(crate) type Stream = Box<dyn Io>;

pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}
