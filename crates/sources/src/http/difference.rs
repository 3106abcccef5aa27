//! The items that a feed has reported, and the difference to those just read. Without I/O.

use std::collections::{HashMap, HashSet};

use watchkeeper_core::{Event, Key, Rejection};

use super::items::Items;
use super::settings::SHRINK;
use crate::print::Print;

/// What was told of each item.
#[derive(Debug, Default)]
pub(super) struct Told {
    items: HashMap<Key, Print>,
    rejections: HashSet<Rejection>,
}

impl Told {
    /// Tells everything.
    pub(super) fn everything(&mut self, items: Items) -> Vec<Event> {
        let version = items.print().version();
        self.items =
            items.objects.iter().map(|(print, document)| (document.header.key.clone(), *print)).collect();
        self.rejections = items.rejections.iter().cloned().collect();
        let objects = items.objects.into_iter().map(|(_, document)| Event::Item(document));
        let rejections = items.rejections.into_iter().map(Event::Rejected);
        std::iter::once(Event::Begin)
            .chain(objects)
            .chain(rejections)
            .chain([Event::Complete(version)])
            .collect()
    }

    /// Tells what is new; or everything, if so much is gone that the reader has to judge for itself. As long as something in the list
    /// cannot be named, nothing is gone.
    pub(super) fn news(&mut self, items: Items) -> Vec<Event> {
        let listed: HashSet<&Key> = items.objects.iter().map(|(_, document)| &document.header.key).collect();
        let mut gone: Vec<Key> = self.items.keys().filter(|key| !listed.contains(key)).cloned().collect();
        if items.has_nameless() {
            gone.clear();
        }
        let held = self.items.len();
        if !gone.is_empty() && (gone.len() == held || gone.len() as f32 > SHRINK * held as f32) {
            return self.everything(items);
        }
        gone.sort();
        let mut events = Vec::new();
        for (print, document) in items.objects {
            let key = document.header.key.clone();
            if self.items.insert(key, print) != Some(print) {
                events.push(Event::Put { document, position: None });
            }
        }
        for key in gone {
            self.items.remove(&key);
            events.push(Event::Gone { key, position: None });
        }
        // A rejection without a name makes the reader ask for everything: once is enough.
        let new = items.rejections.iter().filter(|rejection| !self.rejections.contains(*rejection));
        events.extend(new.cloned().map(Event::Rejected));
        self.rejections = items.rejections.into_iter().collect();
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::settings::Settings;
    use serde_json::{Value, json};

    fn items(mut page: Value) -> Items {
        let settings = Settings { key: Some("/id".into()), ..Settings::new("http://host/") };
        let mut items = Items::default();
        items.add(&settings, &mut page).unwrap();
        items
    }

    fn show(events: &[Event]) -> Vec<String> {
        let show = |event: &Event| match event {
            Event::Item(document) => format!("item {}", document.header.key),
            Event::Put { document, .. } => format!("put {}", document.header.key),
            Event::Gone { key, .. } => format!("gone {key}"),
            Event::Rejected(_) => "rejected".into(),
            Event::Begin => "begin".into(),
            _ => "complete".into(),
        };
        events.iter().map(show).collect()
    }

    #[test]
    fn only_what_differs_is_told_and_much_that_is_gone_as_everything() {
        let mut told = Told::default();
        let list =
            |values: &[(u64, u64)]| items(values.iter().map(|(id, v)| json!({"id": id, "v": v})).collect());
        assert_eq!(
            show(&told.everything(list(&[(1, 1), (2, 1), (3, 1)]))),
            ["begin", "item 1", "item 2", "item 3", "complete"]
        );
        assert!(told.news(list(&[(3, 1), (1, 1), (2, 1)])).is_empty());
        assert_eq!(show(&told.news(list(&[(1, 2), (2, 1), (4, 1)]))), ["put 1", "put 4", "gone 3"]);
        assert_eq!(show(&told.news(list(&[(1, 2)]))), ["begin", "item 1", "complete"]);
        assert_eq!(show(&told.news(list(&[]))), ["begin", "complete"]);
    }

    #[test]
    fn nothing_is_gone_as_long_as_something_has_no_name() {
        let mut told = Told::default();
        told.everything(items(json!([{"id": 1}, {"id": 2}, {"id": 3}])));
        let nameless = || items(json!([{"id": 1}, {"di": 2}, {"id": 3}]));
        assert_eq!(show(&told.news(nameless())), ["rejected"]);
        assert!(told.news(nameless()).is_empty(), "once is enough");
        assert_eq!(show(&told.news(items(json!([{"id": 1}, {"id": 3}])))), ["gone 2"]);
    }

    #[test]
    fn a_hundred_thousand_items_without_a_name_take_no_longer_than_others() {
        let all = || items((0..100_000).map(|number| json!({"di": number})).collect());
        let began = std::time::Instant::now();
        let mut told = Told::default();
        told.everything(all());
        assert!(told.news(all()).is_empty());
        // With a look at all for each, it is minutes.
        assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    }
}
