//! A gateway on real sockets, with real backends.

mod backends;
mod hostile;
mod live;
mod policies;
mod protocols;
mod routes;
mod sources;
mod support;
mod upstreams;
