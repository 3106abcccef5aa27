//! Annotations on a pod, mostly set in the template of its owner, that shape what becomes of it.
//!
//! ```yaml
//! spec:
//!   template:
//!     metadata:
//!       annotations:
//!         simulate.watchkeeper.dev/ready-after: 5s
//! ```
//!
//! Times are written as Go writes them: `500ms`, `5s`, `1m30s`, `2h`. What cannot be read counts as not written.
//!
//! Without any annotation, a container whose image says `does-not-exist` anywhere in its name or tag cannot be pulled, and
//! one whose image is not a valid reference is not even tried.

/// `"true"`: the containers of the pod exit with 1 after they have run for their time. What follows depends on the restart
/// policy: the pod fails, or it crashes again and again.
pub const FAILS: &str = "simulate.watchkeeper.dev/fails";

/// How long after the start the pod becomes ready; `never` if it does not.
pub const READY_AFTER: &str = "simulate.watchkeeper.dev/ready-after";

/// How long the containers of the pod run before they exit; `forever` if they do not. Pods whose restart policy is `Never` or
/// `OnFailure`, such as those of Jobs, have a [default](crate::Timing::run); other pods run for ever without this.
pub const RUNS_FOR: &str = "simulate.watchkeeper.dev/runs-for";
