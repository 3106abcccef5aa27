//! What is measured.

mod delays;
mod events;
mod footprint;
mod informers;
mod queue;
mod reconcile;
mod relist;

/// The rows that are measured together.
pub(crate) const GROUPS: [&str; 3] = ["informers", "queue-peers", "reconcile"];

/// What has to be known to judge the numbers.
pub(crate) const NOTES: [&str; 4] = [
    "*Clients, both sides*: ours is a program on our crates, the peer's one on client-go 0.36 and controller-runtime 0.24, each a \
     process of its own that watches the same objects of the same server over loopback (HTTP/2 with TLS; the re-list rows through \
     a plain HTTP proxy). Both drop `managedFields` (ours by default, the peer by a transform, except where a row says so), never resync, list by streaming (WatchList), are not limited in requests, \
     and have handlers that do the same: count, and look at the version; where a row says so, also at a field of the spec. CPU \
     time is user and system time of the process as the kernel counts it. Our program counts its allocations, which costs it a \
     little and the peer nothing. `GOGC` and `GOMAXPROCS` are Go's defaults; so are tokio's worker threads.",
    "*Informers*: a first sync is from the start of the informer until a handler was called for every object. Heap is what is \
     live: after a forced collection with Go, asked of the allocator and not given back with ours; without what the program held \
     before. RSS is read from the kernel right after that, again without what was there before. Custom resources have neither \
     generated clients nor protobuf; Pods are asked for as protobuf by client-go typed, which our server answers with JSON and \
     kube-apiserver with protobuf. A re-list is forced by a proxy that ends the watch and answers the next with 410 Expired; \
     steady is after a forced collection. For events, 16 clients send merge patches as fast as the server takes them; a change \
     counts once, however many handlers it is delivered to. Our subscriptions may deliver several changes of one object as one. \
     kube-apiserver's etcd does not sync to disk here, for it is not what is measured.",
    "*Queue*: keys are requests with namespace and name, metrics are on in all three. One worker: all keys are added, then each is \
     taken, forgotten and done. Four: as many goroutines or tasks add while as many take. What counts is CPU time per item.",
    "*Reconcile*: one worker, an idle reconciler that reads its object from the cache; controller-runtime with its defaults \
     (priority queue), and its copy of what is read. Changes are merge patches by 16 clients at a steady rate, each of another \
     object. Latency is from the moment at which the patch is sent (so it includes the write and, with our server, its sync to \
     disk), or answered, to the begin of the reconcile; a reconcile that begins before the answer arrives counts as 0. *In \
     process* is a server with its storage in memory, behind function calls, and the controller, in one process; from sending.",
];
