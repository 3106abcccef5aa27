//! Tells new events, repetitions and excess apart. Pure: the time is a parameter.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use watchkeeper_go::Time;

use crate::{Event, EventOptions, EventType, ObjectRef};

/// So many different events are remembered; after that, the one that was quiet for longest is forgotten.
const REMEMBERED: usize = 4_096;

/// What makes two events the same: not what they say to people.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    event_type: EventType,
    reason: String,
    action: String,
    regarding: ObjectRef,
    related: Option<ObjectRef>,
}

/// An event that was told.
struct Told {
    object: Value,
    /// How often it was seen, and how often the server knows that it was.
    count: u32,
    written: u32,
    seen: Duration,
    seen_at: String,
    written_at: Duration,
}

/// How many more new events about an object are let through.
struct Bucket {
    tokens: f64,
    filled: Duration,
}

/// What to send.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Write {
    /// A new object.
    Create(Value),
    /// A series that has grown: the whole object, with its series.
    Grow(Value),
}

/// What became of an event.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    New(Write),
    /// A repetition; to be written at once or, mostly, later.
    Repeated(Option<Write>),
    Limited,
}

pub(crate) struct Series {
    options: EventOptions,
    told: HashMap<Key, Told>,
    buckets: HashMap<ObjectRef, Bucket>,
    named: u64,
}

impl Series {
    pub(crate) fn new(options: EventOptions) -> Self {
        Self { options, told: HashMap::new(), buckets: HashMap::new(), named: 0 }
    }

    /// Takes an event in.
    pub(crate) fn take(
        &mut self,
        now: Duration,
        wall: SystemTime,
        regarding: ObjectRef,
        event: Event,
    ) -> Verdict {
        let event = event.fitted();
        let key = Key {
            event_type: event.event_type,
            reason: event.reason.clone(),
            action: event.action.clone(),
            regarding,
            related: event.related.clone(),
        };
        let (lasting, pause) = (self.options.series, self.options.series_pause);
        if let Some(told) = self.told.get_mut(&key).filter(|told| now < told.seen + lasting) {
            told.count += 1;
            (told.seen, told.seen_at) = (now, stamp(wall));
            let due = told.count == 2 || now >= told.written_at + pause;
            return Verdict::Repeated(due.then(|| told.grow(now)));
        }
        if !self.allow(now, &key.regarding) {
            return Verdict::Limited;
        }
        let object = self.object(wall, &key, &event.note);
        let told = Told {
            object: object.clone(),
            count: 1,
            written: 1,
            seen: now,
            seen_at: stamp(wall),
            written_at: now,
        };
        self.make_room();
        self.told.insert(key, told);
        Verdict::New(Write::Create(object))
    }

    /// What is due: series that have grown or have come to their end. With `all`, whatever the server does not know.
    pub(crate) fn due(&mut self, now: Duration, all: bool) -> Vec<Write> {
        let (lasting, pause) = (self.options.series, self.options.series_pause);
        let mut due = Vec::new();
        self.told.retain(|_, told| {
            let over = now >= told.seen + lasting;
            if told.count > told.written && (all || over || now >= told.written_at + pause) {
                due.push(told.grow(now));
            }
            !over
        });
        let (burst, refill) = (f64::from(self.options.burst), self.options.refill.as_secs_f64());
        self.buckets.retain(|_, bucket| bucket.tokens + (now - bucket.filled).as_secs_f64() / refill < burst);
        due
    }

    fn allow(&mut self, now: Duration, object: &ObjectRef) -> bool {
        let burst = f64::from(self.options.burst);
        let bucket = self.buckets.entry(object.clone()).or_insert(Bucket { tokens: burst, filled: now });
        let gained = now.saturating_sub(bucket.filled).as_secs_f64() / self.options.refill.as_secs_f64();
        bucket.tokens = (bucket.tokens + gained).min(burst);
        bucket.filled = now;
        let allowed = bucket.tokens >= 1.0;
        if allowed {
            bucket.tokens -= 1.0;
        }
        allowed
    }

    fn make_room(&mut self) {
        if self.told.len() >= REMEMBERED
            && let Some(oldest) =
                self.told.iter().min_by_key(|(_, told)| told.seen).map(|(key, _)| key.clone())
        {
            self.told.remove(&oldest);
        }
    }

    fn object(&mut self, wall: SystemTime, key: &Key, note: &str) -> Value {
        self.named += 1;
        let nanos = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let suffix = format!(".{:x}", nanos + u128::from(self.named));
        let regarding = &key.regarding;
        let stem = regarding
            .name
            .to_lowercase()
            .replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-' && letter != '.', "-");
        let stem = stem.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let stem = if stem.is_empty() { "event" } else { stem };
        let name =
            format!("{}{suffix}", stem[..stem.len().min(253 - suffix.len())].trim_end_matches(['-', '.']));
        // Objects that are in no namespace have their events in this one.
        let namespace = if regarding.namespace.is_empty() { "default" } else { &regarding.namespace };
        let action = if key.action.is_empty() { &key.reason } else { &key.action };
        let mut object = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": stamp(wall), "type": key.event_type.name(), "reason": key.reason, "action": action, "note": note,
            "regarding": regarding.json(),
            "reportingController": self.options.controller, "reportingInstance": self.options.instance,
        });
        if let Some(related) = &key.related {
            object["related"] = related.json();
        }
        object
    }
}

impl Told {
    fn grow(&mut self, now: Duration) -> Write {
        (self.written, self.written_at) = (self.count, now);
        let mut object = self.object.clone();
        object["series"] = json!({"count": self.count, "lastObservedTime": self.seen_at});
        Write::Grow(object)
    }
}

fn stamp(time: SystemTime) -> String {
    /// The last second whose year has four digits.
    const LAST: Time = Time::from_unix(253_402_300_799);
    Time::from(time).min(LAST).rfc3339_micro()
}
