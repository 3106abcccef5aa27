//! Follows a kind.
//!
//! Lines: `start` is answered when every handler was called for every object; `heap`; `reach VERSION` is answered when every
//! handler has seen it.

use std::hint::black_box;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use tokio::runtime::Runtime;
use watchkeeper_core::{Change, Delivery};
use watchkeeper_informer::{Handler, Informer, Object, Policy, Readable};

use crate::Result;
use crate::flags::Flags;
use crate::lines::{Answer, each, unknown};
use crate::reached::Reached;
use crate::widget::Widget;

/// Something of an object that is not metadata.
trait Field: Readable {
    fn field(&self) -> i64;
}

impl Field for Pod {
    fn field(&self) -> i64 {
        self.spec.as_ref().and_then(|spec| spec.node_name.as_ref()).map_or(0, |name| name.len() as i64)
    }
}

impl Field for Widget {
    fn field(&self) -> i64 {
        self.spec.replicas
    }
}

/// What one handler was given.
#[derive(Default)]
struct Seen {
    events: Reached,
    initial: Reached,
    newest: Reached,
}

/// Runs it.
pub(crate) fn run(flags: &Flags, runtime: &Runtime) -> Result<()> {
    match flags.text("kind", "Widget") {
        "Pod" => follow::<Pod>(flags, runtime),
        _ => follow::<Widget>(flags, runtime),
    }
}

fn follow<K: Field>(flags: &Flags, runtime: &Runtime) -> Result<()> {
    let source = runtime.block_on(flags.source())?;
    let (source, policy) = match flags.text("mode", "packed") {
        "packed" => (source, Policy::Packed),
        "compressed" => (source, Policy::Compressed),
        "typed" => (source, Policy::Typed),
        "metadata" => (source.metadata_only(), Policy::Metadata),
        other => return Err(format!("what mode is {other:?}?").into()),
    };
    let (expect, spec) = (flags.get("expect", 0_u64)?, flags.get("spec", false)?);
    let seen: Vec<Arc<Seen>> = (0..flags.get("handlers", 1)?).map(|_| Arc::default()).collect();
    let events = || seen.iter().map(|seen| seen.events.now()).sum();
    let mut running: Option<(Informer<K>, Vec<Handler>)> = None;
    Answer::default().heap().print()?;
    each(|word, number| {
        match word {
            "start" => {
                let source = source.clone();
                running = Some(runtime.block_on(async {
                    let informer = Informer::<K>::builder().policy(policy).start(source);
                    let handlers =
                        seen.iter().map(|seen| handle(&informer, Arc::clone(seen), spec)).collect();
                    for seen in &seen {
                        seen.initial.wait(expect).await;
                    }
                    (informer, handlers)
                }));
            }
            "reach" => runtime.block_on(async {
                for seen in &seen {
                    seen.newest.wait(number).await;
                }
            }),
            "heap" => return Answer { events: events(), ..Answer::default() }.heap().print(),
            other => return unknown(other),
        }
        let objects = running.as_ref().map_or(0, |(informer, _)| informer.store().len());
        Answer { objects, events: events(), ..Answer::default() }.print()
    })
}

fn handle<K: Field>(informer: &Informer<K>, seen: Arc<Seen>, spec: bool) -> Handler {
    informer.subscribe("bench").handle(move |change: Change<Object<K>>| {
        if let Some(object) = &change.new {
            if spec && let Ok(value) = object.get() {
                black_box(value.field());
            }
            seen.newest.raise(object.version().number().unwrap_or(0));
        }
        seen.events.add_one();
        if change.delivery == Delivery::Initial {
            seen.initial.add_one();
        }
        std::future::ready(())
    })
}
