use super::directive::deletes;
use super::elements::Identity;
use serde_json::Value;
use std::collections::HashMap;

/// An order of elements by what they are looked up by; the first of equal ones counts.
pub(super) struct Ordering {
    ranks: HashMap<String, usize>,
}

impl Ordering {
    pub(super) fn new(names: Vec<String>) -> Self {
        let mut ranks = HashMap::with_capacity(names.len());
        for (rank, name) in names.into_iter().enumerate() {
            ranks.entry(name).or_insert(rank);
        }
        Self { ranks }
    }

    fn rank(&self, name: &str) -> Option<usize> {
        self.ranks.get(name).copied()
    }
}

struct Element {
    name: String,
    value: Value,
}

/// Orders a merged list: elements named by the patch in its order, elements only the server has in the order of the
/// server, and the latter put between the former where the server had them.
pub(super) fn arrange(
    merged: Vec<Value>,
    identity: Identity<'_>,
    patch: &Ordering,
    server: &Ordering,
) -> Vec<Value> {
    let elements =
        merged.into_iter().map(|value| Element { name: identity.of(&value).unwrap_or_default(), value });
    let (named, others): (Vec<Element>, Vec<Element>) =
        elements.partition(|element| patch.rank(&element.name).is_some());
    let by_key = matches!(identity, Identity::Key(_));
    interleave(sort(others, server, by_key), sort(named, patch, by_key), server)
}

/// Sorts by an order. Elements it does not name keep moving to the front, as in Go, where the comparison calls
/// anything smaller than them.
fn sort(elements: Vec<Element>, order: &Ordering, by_key: bool) -> Vec<Element> {
    let (unwanted, mut kept): (Vec<Element>, Vec<Element>) =
        elements.into_iter().partition(|element| by_key && deletes(&element.value));
    if kept.iter().all(|element| order.rank(&element.name).is_some()) {
        kept.sort_by_key(|element| order.rank(&element.name));
    } else {
        let smaller =
            |left: &Element, right: &Element| match (order.rank(&left.name), order.rank(&right.name)) {
                (Some(left), Some(right)) => left < right,
                _ => true,
            };
        // Long lists would take quadratic time; Go itself sorts them in blocks of twenty.
        for block in kept.chunks_mut(20) {
            for end in 1..block.len() {
                let mut at = end;
                while at > 0 && smaller(&block[at], &block[at - 1]) {
                    block.swap(at, at - 1);
                    at -= 1;
                }
            }
        }
    }
    kept.extend(unwanted);
    kept
}

fn interleave(left: Vec<Element>, right: Vec<Element>, order: &Ordering) -> Vec<Value> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        let takes_left = match (left.peek(), right.peek()) {
            (Some(l), Some(r)) => match (order.rank(&l.name), order.rank(&r.name)) {
                (Some(l), Some(r)) => l < r,
                _ => false,
            },
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return out,
        };
        out.extend(if takes_left { left.next() } else { right.next() }.map(|element| element.value));
    }
}
