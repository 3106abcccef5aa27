use std::hash::Hasher as _;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;

use http::{HeaderMap, HeaderName};

use super::{BackendState, Endpoint, EndpointState};

/// The longest schedule of servers by weight.
const LONGEST: u64 = 4_096;

/// Which server gets the next request.
#[derive(Debug)]
pub(crate) enum BalanceBy {
    /// One after the other, as the schedule says; without one, in their order.
    Turns(Box<[u16]>),
    /// Of two at random, the one with fewer requests.
    LeastRequest,
    /// By the value of a header, of a cookie, or by the address of the client.
    Hash(HashBy),
}

#[derive(Debug)]
pub(crate) enum HashBy {
    Header(HeaderName),
    Cookie(Box<str>),
    Address,
}

/// What a server may be chosen by.
#[derive(Clone, Copy)]
pub(crate) struct Hashed<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) address: IpAddr,
}

impl BalanceBy {
    /// One after the other, each as often as its weight says.
    pub(crate) fn turns(weights: &[u32]) -> Self {
        let Some(first) = weights.first() else { return Self::Turns(Box::default()) };
        if weights.iter().all(|weight| weight == first) {
            return Self::Turns(Box::default());
        }
        let sum: u64 = weights.iter().copied().map(u64::from).sum();
        let scale = sum.div_ceil(LONGEST).max(1);
        let weights: Vec<i64> =
            weights.iter().map(|weight| (i64::from(*weight) / scale as i64).max(1)).collect();
        let sum: i64 = weights.iter().sum();
        // Each turn adds its weight to every server, and the one with most pays for the turn: so that turns are spread evenly.
        let mut credit = vec![0; weights.len()];
        let turns = (0..sum).map(|_| {
            let mut best = 0;
            for (at, weight) in weights.iter().enumerate() {
                credit[at] += weight;
                if credit[at] > credit[best] {
                    best = at;
                }
            }
            credit[best] -= sum;
            best as u16 // there are a thousand at most
        });
        Self::Turns(turns.collect())
    }

    pub(super) fn choose<'a>(
        &self,
        endpoints: &'a [Endpoint],
        state: &BackendState,
        hashed: Hashed<'_>,
        is_usable: impl Fn(&EndpointState) -> bool,
    ) -> Option<&'a Endpoint> {
        if let [only] = endpoints {
            return Some(only).filter(|only| is_usable(&only.state));
        }
        let usable = |endpoint: &&Endpoint| is_usable(&endpoint.state);
        match self {
            Self::Turns(schedule) => {
                let turns = if schedule.is_empty() { endpoints.len() } else { schedule.len() };
                let begin = state.next.fetch_add(1, Relaxed);
                let at = |turn: usize| {
                    let turn = begin.wrapping_add(turn) % turns;
                    endpoints.get(schedule.get(turn).map_or(turn, |at| usize::from(*at)))
                };
                (0..turns).filter_map(at).find(usable)
            }
            Self::LeastRequest => least(endpoints, usable),
            Self::Hash(by) => {
                let key = by.key(hashed);
                // The highest of the hashes of key and server: a server that comes or goes takes its own keys only.
                let score = |endpoint: &&Endpoint| {
                    let drawn = hash(key, endpoint.state.address.as_bytes());
                    // As likely to be the highest as its weight says.
                    let uniform = (drawn >> 11) as f64 / (1_u64 << 53) as f64;
                    -f64::from(endpoint.weight) / uniform.max(f64::MIN_POSITIVE).ln().min(-1e-18)
                };
                let best = endpoints.iter().filter(usable).map(|endpoint| (score(&endpoint), endpoint));
                best.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, endpoint)| endpoint)
            }
        }
    }
}

fn least(endpoints: &[Endpoint], usable: impl Fn(&&Endpoint) -> bool) -> Option<&Endpoint> {
    let draw = || endpoints.get(fastrand::usize(..endpoints.len())).filter(&usable);
    let load = |endpoint: &Endpoint| {
        (u64::from(endpoint.state.active.load(Relaxed)) + 1) * 1_000 / u64::from(endpoint.weight.max(1))
    };
    match (draw(), draw()) {
        (Some(one), Some(other)) => Some(if load(one) <= load(other) { one } else { other }),
        (Some(one), None) | (None, Some(one)) => Some(one),
        (None, None) => endpoints.iter().filter(usable).min_by_key(|endpoint| load(endpoint)),
    }
}

impl HashBy {
    fn key(&self, hashed: Hashed<'_>) -> u64 {
        match self {
            Self::Header(name) => hashed.headers.get(name).map(|value| hash(0, value.as_bytes())),
            Self::Cookie(name) => cookie(hashed.headers, name).map(|value| hash(0, value.as_bytes())),
            Self::Address => None,
        }
        .unwrap_or_else(|| match hashed.address {
            IpAddr::V4(address) => hash(4, &address.octets()),
            IpAddr::V6(address) => hash(6, &address.octets()),
        })
    }
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(http::header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// The same in every process: a client stays with its server over restarts.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    #[allow(deprecated, reason = "the only hasher of the standard library that is the same everywhere")]
    let mut hasher = std::hash::SipHasher::new_with_keys(seed, 0x6761_7465);
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn servers(weights: &[u32]) -> Vec<Endpoint> {
        let server = |(at, weight): (usize, &u32)| Endpoint {
            weight: *weight,
            state: Arc::new(EndpointState::new(&format!("10.0.0.{at}:80"))),
        };
        weights.iter().enumerate().map(server).collect()
    }

    fn chosen(by: &BalanceBy, servers: &[Endpoint], state: &BackendState, client: u32) -> Option<usize> {
        let headers = HeaderMap::new();
        let hashed = Hashed { headers: &headers, address: IpAddr::V4(client.into()) };
        let found = by.choose(servers, state, hashed, EndpointState::is_available)?;
        servers.iter().position(|server| std::ptr::eq(server, found))
    }

    #[test]
    fn turns_are_as_even_as_weights_allow() {
        let state = BackendState::default();
        let weights = [5, 1, 1];
        let (by, servers) = (BalanceBy::turns(&weights), servers(&weights));
        let turns: Vec<usize> = (0..7).filter_map(|_| chosen(&by, &servers, &state, 0)).collect();
        assert_eq!(turns, [0, 0, 1, 0, 2, 0, 0]);
        servers[0].state.set_healthy(false);
        let turns: Vec<usize> = (0..7).filter_map(|_| chosen(&by, &servers, &state, 0)).collect();
        assert!(!turns.contains(&0) && turns.len() == 7, "{turns:?}");
        servers[1].state.set_healthy(false);
        servers[2].state.set_healthy(false);
        assert_eq!(chosen(&by, &servers, &state, 0), None);
    }

    #[test]
    fn weights_may_be_large() {
        let BalanceBy::Turns(schedule) = BalanceBy::turns(&[1_000_000, 1]) else { panic!("turns") };
        assert!(schedule.len() <= LONGEST as usize + 2 && schedule.contains(&1));
    }

    #[test]
    fn a_server_that_goes_takes_only_its_own_clients_with_it() {
        let (by, servers, state) =
            (BalanceBy::Hash(HashBy::Address), servers(&[1, 1, 1, 2]), BackendState::default());
        let all =
            || (0..5_000).map(|client| chosen(&by, &servers, &state, client).unwrap()).collect::<Vec<_>>();
        let before = all();
        assert_eq!(before, all());
        let share = before.iter().filter(|at| **at == 3).count();
        assert!((1_800..2_200).contains(&share), "{share} of 2,000");
        servers[1].state.set_healthy(false);
        let moved = before.iter().zip(all()).filter(|(before, after)| *before != after).count();
        assert_eq!(moved, before.iter().filter(|at| **at == 1).count());
    }

    #[test]
    fn the_server_with_fewer_requests_is_preferred() {
        let (by, servers, state) = (BalanceBy::LeastRequest, servers(&[1, 1]), BackendState::default());
        servers[0].state.active.store(100, Relaxed);
        let busy = (0..1_000).filter(|_| chosen(&by, &servers, &state, 0) == Some(0)).count();
        assert!(busy < 400, "{busy}: only if it is drawn twice");
    }

    #[test]
    fn cookies_are_found_by_name() {
        let mut headers = HeaderMap::new();
        headers.append("cookie", "a=1; session=xyz; b=2".parse().unwrap());
        assert_eq!(cookie(&headers, "session"), Some("xyz"));
        assert_eq!(cookie(&headers, "ession"), None);
    }
}
