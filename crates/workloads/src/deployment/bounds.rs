use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::percent::{Round, share};

/// How many pods a Deployment is to have, and how far a rollout may go beyond and below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) replicas: i32,
    pub(crate) max_surge: i32,
    pub(crate) max_unavailable: i32,
}

impl Bounds {
    pub(crate) fn of(deployment: &Deployment) -> Self {
        let replicas = deployment.spec.replicas.unwrap_or(1);
        if is_recreate(deployment) {
            return Self { replicas, max_surge: 0, max_unavailable: 0 };
        }
        let rolling = deployment.spec.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
        let quarter = IntOrString::String("25%".into());
        let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref()).unwrap_or(&quarter);
        let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref()).unwrap_or(&quarter);
        let (max_surge, unavailable) = resolve(surge, unavailable, replicas);
        let max_unavailable = if replicas == 0 { 0 } else { unavailable.min(replicas) };
        Self { replicas, max_surge, max_unavailable }
    }

    /// The most pods that there may be during a rollout.
    pub(crate) fn most(self) -> i32 {
        self.replicas.saturating_add(self.max_surge)
    }

    /// The fewest that have to be available.
    pub(crate) fn fewest(self) -> i32 {
        self.replicas.saturating_sub(self.max_unavailable)
    }
}

pub(crate) fn is_recreate(deployment: &Deployment) -> bool {
    let strategy = deployment.spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
    strategy == Some("Recreate")
}

/// Both bounds as numbers. The surge is rounded up and the other one down; if nothing is left of either, one pod may be
/// unavailable, since otherwise nothing could ever move.
fn resolve(max_surge: &IntOrString, max_unavailable: &IntOrString, replicas: i32) -> (i32, i32) {
    let surge = share(max_surge, replicas, Round::Up);
    let unavailable = share(max_unavailable, replicas, Round::Down);
    if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Surge, unavailable, replicas, and what Kubernetes 1.36 makes of them.
    const CASES: &[(&str, &str, i32, (i32, i32))] = &include!("bounds.in");

    #[test]
    fn shares_are_rounded_as_kubernetes_does() {
        let read = |text: &str| match text.parse() {
            Ok(number) => IntOrString::Int(number),
            Err(_) => IntOrString::String(text.into()),
        };
        for (surge, unavailable, replicas, expected) in CASES {
            let resolved = resolve(&read(surge), &read(unavailable), *replicas);
            assert_eq!(resolved, *expected, "surge {surge}, unavailable {unavailable} of {replicas}");
        }
    }

    #[test]
    fn bounds_stay_within_what_can_be_counted() {
        let bounds = Bounds { replicas: i32::MAX, max_surge: i32::MAX, max_unavailable: i32::MAX };
        assert_eq!((bounds.most(), bounds.fewest()), (i32::MAX, 0));
    }
}
