use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use watchkeeper_client::{Client, Error};

/// The first address of pods, and how many there are: 10.244.0.0/16.
const FIRST: u32 = u32::from_be_bytes([10, 244, 0, 1]);
const COUNT: u32 = 65_534;

/// Gives every pod an address that no other pod has.
///
/// Which ones are taken stands in the pods: it is read from them once, when the first address is asked for.
#[derive(Default)]
pub(crate) struct Addresses {
    known: OnceCell<()>,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    by_pod: HashMap<String, Ipv4Addr>,
    addresses: HashSet<Ipv4Addr>,
    /// Where to look next: an address that was given back is not given out again at once.
    next: u32,
}

impl Addresses {
    /// The address of a pod: the one that it has, or a new one.
    pub(crate) async fn of(&self, pod: &Pod, client: &Client) -> Result<String, Error> {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let all = self.known.get_or_try_init(|| async {
            let pods = client.list::<Pod>().await?;
            let mut taken = self.taken.lock();
            for pod in pods {
                if let (Some(uid), Some(address)) = (&pod.metadata.uid, address(&pod)) {
                    taken.note(uid.clone(), address);
                }
            }
            Ok::<(), Error>(())
        });
        all.await?;
        Ok(self.taken.lock().give(uid).to_string())
    }

    /// Takes the address of a pod back.
    pub(crate) fn free(&self, pod: &Pod) {
        let mut taken = self.taken.lock();
        if let Some(address) = pod.metadata.uid.as_ref().and_then(|uid| taken.by_pod.remove(uid)) {
            taken.addresses.remove(&address);
        }
    }
}

impl Taken {
    fn note(&mut self, uid: String, address: Ipv4Addr) {
        self.addresses.insert(address);
        self.by_pod.insert(uid, address);
    }

    fn give(&mut self, uid: String) -> Ipv4Addr {
        if let Some(address) = self.by_pod.get(&uid) {
            return *address;
        }
        let candidate = |step: u32| Ipv4Addr::from(FIRST + (self.next + step) % COUNT);
        // With more pods than addresses, some have the same: better than none.
        let free = (0..COUNT).find(|step| !self.addresses.contains(&candidate(*step))).unwrap_or(0);
        let address = candidate(free);
        self.next = (self.next + free + 1) % COUNT;
        self.note(uid, address);
        address
    }
}

fn address(pod: &Pod) -> Option<Ipv4Addr> {
    pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_pods_have_the_same() {
        let mut taken = Taken::default();
        taken.note("there already".into(), Ipv4Addr::new(10, 244, 0, 2));
        let given: Vec<_> = ["a", "b", "c"].map(|uid| taken.give(uid.into()).to_string()).into();
        assert_eq!(given, ["10.244.0.1", "10.244.0.3", "10.244.0.4"]);
        assert_eq!(taken.give("b".into()).to_string(), "10.244.0.3");
    }
}
