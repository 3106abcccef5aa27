use serde_json::{Value, json};

/// The most bytes that the server takes of a note, and of the other texts.
const NOTE: usize = 1024;
const WORD: usize = 128;

/// A reference to the object that an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ObjectRef {
    /// The API version: `apps/v1`.
    pub api_version: String,
    /// The kind: `Deployment`.
    pub kind: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The uid, if known: without a uid, `kubectl describe` does not show the event.
    pub uid: String,
}

impl ObjectRef {
    /// A reference to a cluster-scoped object.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>, name: impl Into<String>) -> Self {
        let (api_version, kind, name) = (api_version.into(), kind.into(), name.into());
        Self { api_version, kind, name, ..Self::default() }
    }

    /// Sets the namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the uid.
    #[must_use]
    pub fn with_uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = uid.into();
        self
    }

    pub(crate) fn json(&self) -> Value {
        let mut value = json!({"apiVersion": self.api_version, "kind": self.kind, "name": self.name});
        if !self.namespace.is_empty() {
            value["namespace"] = self.namespace.as_str().into();
        }
        if !self.uid.is_empty() {
            value["uid"] = self.uid.as_str().into();
        }
        value
    }
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Things are as they should be.
    Normal,
    /// A person should look at the object.
    Warning,
}

impl EventType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// An event about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The type of the event.
    pub event_type: EventType,
    /// The reason, in one word for machines: `FailedMount`.
    pub reason: String,
    /// The action that was done or tried, in one word: `Mount`.
    pub action: String,
    /// The text for people. Cut after 1,024 bytes.
    pub note: String,
    /// Another object that the event is about.
    pub related: Option<ObjectRef>,
}

impl Event {
    /// An event of type `Normal`.
    pub fn normal(reason: impl Into<String>, action: impl Into<String>, note: impl Into<String>) -> Self {
        Self::of(EventType::Normal, reason.into(), action.into(), note.into())
    }

    /// An event of type `Warning`.
    pub fn warning(reason: impl Into<String>, action: impl Into<String>, note: impl Into<String>) -> Self {
        Self::of(EventType::Warning, reason.into(), action.into(), note.into())
    }

    fn of(event_type: EventType, reason: String, action: String, note: String) -> Self {
        Self { event_type, reason, action, note, related: None }
    }

    /// Sets another object that the event is about.
    ///
    /// ```
    /// # use watchkeeper_events::{Event, ObjectRef};
    /// let pod = ObjectRef::new("v1", "Pod", "web-0").in_namespace("shop");
    /// let failed = Event::warning("PodFailed", "Restart", "web-0 ended with code 1").related_to(pod);
    /// ```
    #[must_use]
    pub fn related_to(mut self, related: ObjectRef) -> Self {
        self.related = Some(related);
        self
    }

    /// The same in the length that the server takes.
    pub(crate) fn fitted(mut self) -> Self {
        cut(&mut self.reason, WORD);
        cut(&mut self.action, WORD);
        cut(&mut self.note, NOTE);
        self
    }
}

/// Cuts between characters.
fn cut(text: &mut String, limit: usize) {
    text.truncate(text.floor_char_boundary(limit));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_cut_between_characters() {
        let event = Event::normal("R", "A", "ä".repeat(600) + "b").fitted();
        assert_eq!(event.note, "ä".repeat(512));
        let event = Event::normal("R", "A", "x".to_owned() + &"ä".repeat(600)).fitted();
        assert_eq!(event.note.len(), 1023);
        assert_eq!(Event::normal("r".repeat(200), "A", "").fitted().reason.len(), 128);
    }
}
