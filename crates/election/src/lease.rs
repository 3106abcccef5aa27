use std::fmt;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use watchkeeper_go::Time;

/// The namespace and name of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseName {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
}

impl LeaseName {
    /// The Lease of this namespace and name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A Lease as the server has it, with all that others have put into it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lease(Value);

/// What a candidate writes into a lease.
pub(crate) struct Claim<'a> {
    /// Who holds it: nobody, if empty.
    pub(crate) holder: &'a str,
    pub(crate) duration: Duration,
    pub(crate) stamp: &'a str,
    /// Whether this begins a term; otherwise it goes on.
    pub(crate) begins: bool,
}

impl Lease {
    pub(crate) fn new(object: Value) -> Self {
        Self(object)
    }

    /// One that is not there yet.
    pub(crate) fn first(name: &LeaseName, claim: &Claim<'_>) -> Self {
        let mut lease = Self(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": name.namespace, "name": name.name},
            "spec": {"leaseTransitions": 0, "acquireTime": claim.stamp},
        }));
        lease.write(&Claim { begins: false, ..*claim });
        lease
    }

    /// The same, claimed. It keeps its version, so that it can only be written if nobody else has.
    pub(crate) fn claimed(&self, claim: &Claim<'_>) -> Self {
        let mut lease = self.clone();
        lease.write(claim);
        lease
    }

    fn write(&mut self, claim: &Claim<'_>) {
        if claim.begins {
            let transitions = self.spec()["leaseTransitions"].as_i64().unwrap_or(0);
            self.0["spec"]["leaseTransitions"] = transitions.saturating_add(1).into();
            self.0["spec"]["acquireTime"] = claim.stamp.into();
        }
        self.0["spec"]["holderIdentity"] = claim.holder.into();
        self.0["spec"]["leaseDurationSeconds"] = claim.duration.as_secs().into();
        self.0["spec"]["renewTime"] = claim.stamp.into();
    }

    fn spec(&self) -> &Value {
        &self.0["spec"]
    }

    /// Whether it says the same about the election, whatever else may differ.
    pub(crate) fn says_the_same_as(&self, other: &Self) -> bool {
        self.spec() == other.spec() && self.0["metadata"]["uid"] == other.0["metadata"]["uid"]
    }

    /// Who holds it.
    pub(crate) fn holder(&self) -> Option<&str> {
        self.spec()["holderIdentity"].as_str().filter(|holder| !holder.is_empty())
    }

    /// How long after its last renewal others may take it.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs(self.spec()["leaseDurationSeconds"].as_u64().unwrap_or(0))
    }

    /// When it was last renewed, as its holder put it.
    pub(crate) fn stamp(&self) -> Option<&str> {
        self.spec()["renewTime"].as_str()
    }

    pub(crate) fn into_json(self) -> Value {
        self.0
    }
}

/// Makes the times that renewals carry. No two in a row are the same, even if the clock stands still: by them others see
/// that the leader is alive.
pub(crate) struct Stamps {
    now: fn() -> SystemTime,
    last: SystemTime,
}

impl Stamps {
    pub(crate) fn new(now: fn() -> SystemTime) -> Self {
        Self { now, last: SystemTime::UNIX_EPOCH }
    }

    pub(crate) fn next(&mut self) -> String {
        let now = (self.now)();
        let ahead = self.last.duration_since(now);
        // A clock that is set back is believed, one that hardly moves is not.
        let stands = ahead.is_ok_and(|ahead| ahead < Duration::from_secs(1));
        let moved = now.duration_since(self.last).is_ok_and(|moved| moved >= MICROSECOND);
        self.last = if stands && !moved { self.last + MICROSECOND } else { now };
        stamp(self.last)
    }
}

const MICROSECOND: Duration = Duration::from_micros(1);

/// A time as leases have it: `2006-01-02T15:04:05.000000Z`.
fn stamp(time: SystemTime) -> String {
    /// The last second whose year has four digits.
    const LAST: Time = Time::from_unix(253_402_300_799);
    Time::from(time).min(LAST).rfc3339_micro()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn times_have_six_digits_of_a_second() {
        assert_eq!(
            stamp(UNIX_EPOCH + Duration::from_millis(1_763_187_821_120)),
            "2025-11-15T06:23:41.120000Z"
        );
    }

    #[test]
    fn a_clock_that_stands_still_makes_different_times() {
        let mut stamps = Stamps::new(|| UNIX_EPOCH + Duration::from_secs(1_763_187_821));
        let made = [stamps.next(), stamps.next(), stamps.next()].map(|stamp| stamp[17..].to_owned());
        assert_eq!(made, ["41.000000Z", "41.000001Z", "41.000002Z"]);
    }

    #[test]
    fn a_claim_keeps_what_others_wrote() {
        let lease = Lease::new(json!({
            "metadata": {"name": "l", "resourceVersion": "7", "labels": {"a": "b"}},
            "spec": {"holderIdentity": "x", "leaseTransitions": 3, "acquireTime": "then", "strategy": "s"},
        }));
        let claim = Claim { holder: "me", duration: Duration::from_secs(15), stamp: "now", begins: true };
        let expected = json!({
            "metadata": {"name": "l", "resourceVersion": "7", "labels": {"a": "b"}},
            "spec": {"holderIdentity": "me", "leaseTransitions": 4, "acquireTime": "now", "renewTime": "now",
                "leaseDurationSeconds": 15, "strategy": "s"},
        });
        assert_eq!(lease.claimed(&claim).into_json(), expected);
        let goes_on = lease.claimed(&Claim { begins: false, ..claim }).into_json();
        assert_eq!(
            (&goes_on["spec"]["leaseTransitions"], &goes_on["spec"]["acquireTime"]),
            (&json!(3), &json!("then"))
        );
    }
}
