use crate::FieldError;
use serde_json::Value;

/// How many findings are kept, and how many bytes of text they may have together. A hostile object must not make a list
/// that is larger than itself by orders of magnitude: a long name above many small mistakes would be repeated in each.
const MAX_FINDINGS: usize = 10_000;
const MAX_TEXT: usize = 8 << 20;

/// The first findings of a walk; those that do not fit are not even put into words.
#[derive(Debug)]
pub(crate) struct Bounded<T> {
    found: Vec<T>,
    text: usize,
}

/// About how many bytes something takes.
pub(crate) trait Weight {
    fn weight(&self) -> usize;
}

impl Weight for String {
    fn weight(&self) -> usize {
        self.len()
    }
}

impl Weight for FieldError {
    fn weight(&self) -> usize {
        let value = self.value.as_ref().and_then(Value::as_str).map_or(0, str::len);
        self.field.len() + self.detail.len() + value
    }
}

impl<T: Weight> Bounded<T> {
    pub(crate) fn new() -> Self {
        Self { found: Vec::new(), text: 0 }
    }

    /// Whether nothing more is kept.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MAX_FINDINGS || self.text >= MAX_TEXT
    }

    /// Adds what `find` makes, unless there is no room.
    pub(crate) fn add(&mut self, find: impl FnOnce() -> T) {
        if !self.is_full() {
            let found = find();
            self.text += found.weight();
            self.found.push(found);
        }
    }

    pub(crate) fn push(&mut self, found: T) {
        self.add(|| found);
    }

    pub(crate) fn extend(&mut self, found: impl IntoIterator<Item = T>) {
        found.into_iter().for_each(|found| self.push(found));
    }

    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }

    /// Forgets all but the first `length`.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.found.truncate(length);
    }

    pub(crate) fn into_vec(self) -> Vec<T> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_not_made() {
        let mut texts = Bounded::new();
        for _ in 0..20 {
            texts.add(|| "x".repeat(1 << 20));
        }
        assert_eq!(texts.len(), MAX_TEXT >> 20);
        texts.add(|| panic!());
        let mut many = Bounded::new();
        many.extend(vec![String::new(); MAX_FINDINGS + 1]);
        assert_eq!(many.into_vec().len(), MAX_FINDINGS);
    }
}
