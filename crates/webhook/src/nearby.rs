//! Whether an API server at a loopback address is on this machine, or is reached through a tunnel that ends here.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::api::Api;
use crate::certificates::Status;

/// Where an API server says at which addresses it is, to everybody who may ask it for anything.
const ADDRESSES: &str = "/api";
/// How soon to ask a server again that did not answer, at first and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Asks a server until it answers. True if it is on this machine; `None` if the program stops before that is known.
///
/// kind, minikube, a forwarded port and a tunnel have loopback addresses, too, and cannot come back by them; such a server says that it is at
/// the address of a node or a pod. One that is nowhere to be found for others, such as one on a laptop without a network, is here.
pub(crate) async fn is_here(api: &Api, status: &Status, stop: &CancellationToken) -> Option<bool> {
    let mut pause = BACKOFF.0;
    loop {
        let answer = tokio::select! {
            () = stop.cancelled() => return None,
            answer = api.get(ADDRESSES) => answer,
        };
        match answer {
            Ok(versions) => return Some(versions.is_none_or(|versions| is_of_this_machine(&versions))),
            Err(error) => status.set(Err(format!(
                "it is not known whether the API server is on this machine, and so can ask webhooks at a loopback address; with \
                 --webhook-url, that need not be known: {error}"
            ))),
        }
        tokio::select! {
            () = stop.cancelled() => return None,
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(BACKOFF.1);
    }
}

/// Whether one of the addresses at which a server says that it is belongs to this machine, or there is none.
fn is_of_this_machine(versions: &Value) -> bool {
    let addresses = versions["serverAddressByClientCIDRs"].as_array().into_iter().flatten();
    let mut addresses = addresses.filter_map(|address| ip(address["serverAddress"].as_str()?)).peekable();
    addresses.peek().is_none() || addresses.any(is_own)
}

/// The address in a text that may have a port. A name says nothing: this machine may have it as well.
fn ip(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| text.parse().ok().map(|address: SocketAddr| address.ip()))
}

/// Only an address of this machine can be bound. Nothing is sent.
fn is_own(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_is_where_it_says_it_is() {
        let at = |addresses: &[&str]| {
            let addresses: Vec<_> =
                addresses.iter().map(|address| json!({"serverAddress": address})).collect();
            is_of_this_machine(&json!({"serverAddressByClientCIDRs": addresses}))
        };
        assert!(at(&["127.0.0.1:6443"]) && at(&["[::1]:6443"]) && at(&["127.0.0.1"]));
        // For documentation: nobody has it.
        assert!(!at(&["203.0.113.7:6443"]) && !at(&["203.0.113.7"]));
        assert!(at(&["203.0.113.7:6443", "127.0.0.1:6443"]));
        assert!(at(&[]) && at(&["kubernetes.example:6443"]) && is_of_this_machine(&json!({})));
    }
}
