//! The promises about memory are exact, so every test run can check them.

use k8s_openapi::api::core::v1::Pod;
use watchkeeper_bench::rows::memory::{our_footprint, peer_footprint};
use watchkeeper_bench::sample::Sample;
use watchkeeper_bench::server::Fixture;
use watchkeeper_informer::Policy;

/// One test: the allocator counts the whole process.
#[test]
fn a_pod_costs_what_is_promised() {
    let fixture = Fixture::expiring(Sample::Pod, 4_000);
    let peer = peer_footprint::<Pod>(&fixture);
    println!("peer: {peer:?}");
    for (policy, share) in [(Policy::Packed, 6.0), (Policy::Compressed, 20.0), (Policy::Typed, 1.0)] {
        let ours = our_footprint::<Pod>(&fixture, policy);
        println!("{policy:?}: {ours:?}");
        let bound = peer.per_object / share;
        // The dictionary and the buffers of its users weigh on a small store; see the benchmark for a large one.
        let bound = if policy == Policy::Compressed { bound * 1.5 } else { bound };
        assert!(ours.per_object <= bound, "{policy:?}: {} of {bound}", ours.per_object);
        let peak = if policy == Policy::Compressed { 2.0 } else { 1.15 };
        assert!(ours.relist_peak <= peak, "{policy:?}: {}", ours.relist_peak);
    }
}
