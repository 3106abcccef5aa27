//! The alarm for controllers that wake themselves: an object that is reconciled again and again because of what its own
//! reconciles write.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use watchkeeper_core::Change;
use watchkeeper_informer::Object;

use crate::request::WorkKey;

/// The time over which own writes are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// What is done about a loop: the work, what was written, and the field that moved.
pub(crate) type Alarm<R> = Box<dyn Fn(&R, &Loop) + Send + Sync>;

/// An object that keeps its own controller busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    /// What is written, by the name of its source.
    pub(crate) source: Arc<str>,
    /// The first field that the write changed, as a path: `spec.template.labels`.
    pub(crate) field: String,
    pub(crate) times: u32,
}

/// Counts, per piece of work, the changes that were this program's own writes.
pub(crate) struct HotLoops<R> {
    /// More than so many a minute are a loop.
    limit: u32,
    windows: Mutex<HashMap<R, Window>>,
    alarm: Alarm<R>,
}

struct Window {
    begun: Instant,
    writes: u32,
}

impl<R: WorkKey> HotLoops<R> {
    pub(crate) fn new(limit: u32, alarm: Alarm<R>) -> Self {
        Self { limit, windows: Mutex::default(), alarm }
    }

    /// Takes note of an own write that comes back as work. Raises the alarm once a minute and piece of work.
    pub(crate) fn note(&self, work: &R, source: &Arc<str>, change: &Change<Object>) {
        let Some(times) = self.count(work, Instant::now()) else { return };
        let field = match (&change.old, &change.new) {
            (Some(old), Some(new)) => moved_field(old, new),
            _ => None,
        };
        let field = field.unwrap_or_else(|| "unknown".to_owned());
        (self.alarm)(work, &Loop { source: Arc::clone(source), field, times });
    }

    /// How many writes it were, if this is the one that is too many.
    fn count(&self, work: &R, now: Instant) -> Option<u32> {
        let mut windows = self.windows.lock();
        if let Some(window) = windows.get_mut(work)
            && now.duration_since(window.begun) < WINDOW
        {
            window.writes += 1;
            return (window.writes - 1 == self.limit).then_some(window.writes);
        }
        // A new window is the occasion to forget those that are over: they cannot become more than those that began
        // within the last minute, and this one.
        if windows.len() >= 64 && windows.len().is_power_of_two() {
            windows.retain(|_, window| now.duration_since(window.begun) < WINDOW);
        }
        windows.insert(work.clone(), Window { begun: now, writes: 1 });
        (self.limit == 0).then_some(1)
    }
}

/// The path of the first field that differs, apart from those that every write moves.
fn moved_field(old: &Object, new: &Object) -> Option<String> {
    let value = |object: &Object| serde_json::from_slice::<Value>(&object.json()?).ok();
    difference(&value(old)?, &value(new)?, String::new())
}

const ALWAYS: [&str; 3] = ["metadata.resourceVersion", "metadata.generation", "metadata.managedFields"];

fn difference(old: &Value, new: &Value, path: String) -> Option<String> {
    if old == new || ALWAYS.contains(&path.as_str()) {
        return None;
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let of = |from: &serde_json::Map<String, Value>| from.get(name).cloned().unwrap_or_default();
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                difference(&of(old), &of(new), path)
            })
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            let items = old.iter().zip(new).enumerate();
            items.into_iter().find_map(|(at, (old, new))| difference(old, new, format!("{path}[{at}]")))
        }
        _ => Some(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_field_that_moves_is_named() {
        let state = |version: u32, value: u32| json!({ "metadata": { "resourceVersion": version }, "spec": { "ports": [{ "port": 1 }, { "port": value }] } });
        assert_eq!(difference(&state(1, 80), &state(2, 81), String::new()).unwrap(), "spec.ports[1].port");
        assert_eq!(difference(&state(1, 80), &state(2, 80), String::new()), None);
        let without = json!({ "metadata": {} });
        assert_eq!(difference(&state(1, 80), &without, String::new()).unwrap(), "spec");
    }

    #[test]
    fn one_alarm_a_minute_and_only_beyond_the_limit() {
        let loops = HotLoops::<String>::new(3, Box::new(|_, _| {}));
        let start = Instant::now();
        let count = |second: u64| loops.count(&"a".to_owned(), start + Duration::from_secs(second));
        assert_eq!([count(0), count(1), count(2), count(3), count(4)], [None, None, None, Some(4), None]);
        assert_eq!([count(60), count(61), count(62), count(63)], [None, None, None, Some(4)]);
        assert_eq!(loops.count(&"b".to_owned(), start), None, "others are counted apart");
    }

    #[test]
    fn windows_that_are_over_are_forgotten() {
        let loops = HotLoops::<u32>::new(3, Box::new(|_, _| {}));
        let start = Instant::now();
        for work in 0..100_000u32 {
            loops.count(&work, start + Duration::from_millis(u64::from(work) * 100));
        }
        assert!(loops.windows.lock().len() <= 2048, "{}", loops.windows.lock().len());
    }
}
