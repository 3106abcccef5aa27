//! How many requests run at the same time, in all and of one user.
//!
//! kube-apiserver lets requests wait in fair queues (API priority and fairness). Here they run or are refused with 429 and
//! `Retry-After`, as kube-apiserver does without those queues; the limits are high enough that controllers do not meet
//! them, and keep one client from taking the server for itself.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use watchkeeper_rbac::{About, Request};

use crate::access::is_master;
use crate::authentication::Identity;
use crate::request::is_public;

/// The limits of requests that run at the same time. Zero is no limit.
///
/// The group `system:masters` has no limits, as in kube-apiserver. Questions after the health of the server have none,
/// either. Requests about Leases have their own, as many as `mutating`: who holds one must be able to renew it while the
/// server is busy with other things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlightLimits {
    /// Requests that read and are not watches: 2,000 unless said otherwise, five times the default of kube-apiserver,
    /// which lets more of them wait. One user may have half of them.
    pub read_only: usize,
    /// Requests that write: 1,000 unless said otherwise, five times the default of kube-apiserver. Each may hold a body of
    /// 3 MiB. One user may have half of them.
    pub mutating: usize,
    /// Watches: 50,000 unless said otherwise. That is a cluster of a thousand nodes with room to spare; each costs some kilobytes, and a
    /// place in what is told with every change.
    pub watches: usize,
    /// Watches of one user: 10,000 unless said otherwise. That is a controller that watches a hundred resources in a
    /// hundred replicas.
    pub watches_per_user: usize,
}

impl Default for InFlightLimits {
    fn default() -> Self {
        Self { read_only: 2_000, mutating: 1_000, watches: 50_000, watches_per_user: 10_000 }
    }
}

/// Requests that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Not counted.
    Exempt,
    ReadOnly,
    Mutating,
    Lease,
    Watch,
}

impl Class {
    /// What kind of request one is that was authorized as this.
    pub(crate) fn of(request: &Request<'_>) -> Self {
        match (request.verb, request.about) {
            (_, About::Path(path)) if is_public(path) => Self::Exempt,
            ("watch", _) => Self::Watch,
            (_, About::Resource { group: "coordination.k8s.io", resource: "leases", .. }) => Self::Lease,
            ("get" | "list" | "head", _) => Self::ReadOnly,
            _ => Self::Mutating,
        }
    }

    /// As kube-apiserver names the two that it has.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Exempt => "exempt",
            Self::ReadOnly => "readOnly",
            Self::Mutating => "mutating",
            Self::Lease => "lease",
            Self::Watch => "watch",
        }
    }
}

/// Too many requests run already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// Of this user.
    User,
    /// Of all users together.
    Total,
}

impl Rejected {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Total => "total",
        }
    }
}

/// Counts the requests that run.
pub(crate) struct InFlight {
    limits: InFlightLimits,
    running: Mutex<Running>,
}

/// By the number of the class.
type Counts = [usize; 5];

#[derive(Default)]
struct Running {
    total: Counts,
    users: HashMap<String, Counts>,
}

/// A request that counts as running until this is dropped; nothing for those that are not counted.
#[derive(Default)]
pub(crate) struct Permit(Option<Counted>);

struct Counted {
    in_flight: Arc<InFlight>,
    class: Class,
    identity: Arc<Identity>,
}

impl InFlight {
    pub(crate) fn new(limits: InFlightLimits) -> Arc<Self> {
        Arc::new(Self { limits, running: Mutex::default() })
    }

    /// Lets a request run, unless too many do.
    pub(crate) fn enter(
        self: &Arc<Self>,
        class: Class,
        identity: &Arc<Identity>,
    ) -> Result<Permit, Rejected> {
        let Some((total, per_user)) = self.limits(class).filter(|_| !is_master(identity)) else {
            return Ok(Permit::default());
        };
        let mut running = self.running.lock();
        let (running, number) = (&mut *running, class as usize);
        let of_user = running.users.get_mut(&identity.user);
        if of_user.as_ref().is_some_and(|counts| counts[number] >= per_user) {
            return Err(Rejected::User);
        }
        if running.total[number] >= total {
            return Err(Rejected::Total);
        }
        running.total[number] += 1;
        match of_user {
            Some(counts) => counts[number] += 1,
            None => running.users.entry(identity.user.clone()).or_default()[number] += 1,
        }
        Ok(Permit(Some(Counted { in_flight: Arc::clone(self), class, identity: Arc::clone(identity) })))
    }

    /// How many of a class may run, in all and of one user; `None` if they are not counted.
    fn limits(&self, class: Class) -> Option<(usize, usize)> {
        let shared = |total: usize| (total > 0).then(|| (total, total.div_ceil(2)));
        match class {
            Class::Exempt => None,
            Class::ReadOnly => shared(self.limits.read_only),
            Class::Mutating | Class::Lease => shared(self.limits.mutating),
            Class::Watch => {
                let limit = |number: usize| if number > 0 { number } else { usize::MAX };
                Some((limit(self.limits.watches), limit(self.limits.watches_per_user)))
            }
        }
    }
}

impl Permit {
    /// Whether it counts.
    pub(crate) fn counts(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut running = self.in_flight.running.lock();
        let number = self.class as usize;
        running.total[number] = running.total[number].saturating_sub(1);
        if let Some(counts) = running.users.get_mut(&self.identity.user) {
            counts[number] = counts[number].saturating_sub(1);
            if *counts == Counts::default() {
                running.users.remove(&self.identity.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Arc<Identity> {
        Arc::new(Identity::new(name, ["developers"]))
    }

    fn of(verb: &str, group: &str, resource: &str) -> Class {
        let about = About::Resource { group, resource, subresource: "", namespace: "", name: "" };
        Class::of(&Request { verb, about })
    }

    #[test]
    fn a_user_may_have_half_of_what_all_may_have() {
        let in_flight =
            InFlight::new(InFlightLimits { read_only: 4, mutating: 2, watches: 2, watches_per_user: 1 });
        let (jane, joe, ann) = (user("jane"), user("joe"), user("ann"));
        let first = in_flight.enter(Class::ReadOnly, &jane).unwrap();
        let _second = in_flight.enter(Class::ReadOnly, &jane).unwrap();
        assert_eq!(in_flight.enter(Class::ReadOnly, &jane).err(), Some(Rejected::User));
        let _others = [(); 2].map(|()| in_flight.enter(Class::ReadOnly, &joe).unwrap());
        assert_eq!(in_flight.enter(Class::ReadOnly, &ann).err(), Some(Rejected::Total));
        let _write = in_flight.enter(Class::Mutating, &jane).unwrap();
        assert_eq!(in_flight.enter(Class::Mutating, &jane).err(), Some(Rejected::User));
        let _lease = in_flight.enter(Class::Lease, &jane).unwrap();
        let _watch = in_flight.enter(Class::Watch, &jane).unwrap();
        assert_eq!(in_flight.enter(Class::Watch, &jane).err(), Some(Rejected::User));
        let _watch = in_flight.enter(Class::Watch, &joe).unwrap();
        assert_eq!(in_flight.enter(Class::Watch, &ann).err(), Some(Rejected::Total));
        drop(first);
        assert!(in_flight.enter(Class::ReadOnly, &ann).is_ok());
    }

    #[test]
    fn masters_and_questions_after_health_are_not_counted() {
        let in_flight =
            InFlight::new(InFlightLimits { read_only: 1, mutating: 1, watches: 1, watches_per_user: 1 });
        let (master, jane) = (Arc::new(Identity::admin()), user("jane"));
        let _held: Vec<Permit> =
            (0..10).map(|_| in_flight.enter(Class::ReadOnly, &master).unwrap()).collect();
        let _health: Vec<Permit> = (0..10).map(|_| in_flight.enter(Class::Exempt, &jane).unwrap()).collect();
        assert!(in_flight.enter(Class::ReadOnly, &jane).is_ok());
    }

    #[test]
    fn zero_is_no_limit_and_nothing_is_left_behind() {
        let in_flight =
            InFlight::new(InFlightLimits { read_only: 0, mutating: 3, watches: 0, watches_per_user: 0 });
        let jane = user("jane");
        let held: Vec<Permit> = [Class::ReadOnly, Class::Watch, Class::Mutating, Class::Lease]
            .into_iter()
            .map(|class| in_flight.enter(class, &jane).unwrap())
            .collect();
        assert_eq!(in_flight.running.lock().users.len(), 1);
        drop(held);
        let running = in_flight.running.lock();
        assert!(running.users.is_empty() && running.total == Counts::default());
    }

    #[test]
    fn requests_are_told_apart_by_what_was_authorized() {
        assert_eq!(of("get", "", "pods"), Class::ReadOnly);
        assert_eq!(of("list", "apps", "deployments"), Class::ReadOnly);
        assert_eq!(of("watch", "", "pods"), Class::Watch);
        assert_eq!(of("watch", "coordination.k8s.io", "leases"), Class::Watch);
        for verb in ["create", "update", "patch", "delete", "deletecollection", ""] {
            assert_eq!(of(verb, "", "pods"), Class::Mutating, "{verb}");
        }
        assert_eq!(of("update", "coordination.k8s.io", "leases"), Class::Lease);
        assert_eq!(of("get", "coordination.k8s.io", "leases"), Class::Lease);
        assert_eq!(of("update", "example.org", "leases"), Class::Mutating);
        let path = |verb, path| Class::of(&Request { verb, about: About::Path(path) });
        assert_eq!(path("get", "/readyz/etcd"), Class::Exempt);
        assert_eq!(path("get", "/openapi/v2"), Class::ReadOnly);
        assert_eq!(path("head", "/metrics"), Class::ReadOnly);
        assert_eq!(path("post", "/apis"), Class::Mutating);
    }
}
