//! Where in a document its fields are.

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Sorts what is said about fields (`unknown field "spec.zip"`) by where in a JSON document they are. What is there twice is
/// noticed the second time.
///
/// Only what is on the way to one of the fields is looked at, and no path is written down, so that it takes no more time or
/// memory than to read the document once.
pub(super) fn in_document_order(said: Vec<String>, body: &[u8]) -> Vec<String> {
    let mut sought: Vec<Sought<'_>> = said
        .iter()
        .enumerate()
        .map(|(index, text)| Sought { rest: text.split('"').nth(1).unwrap_or_default(), index })
        .collect();
    sought.sort_by_key(|sought| sought.rest);
    let mut places = Places { found: vec![Vec::new(); said.len()], seen: 0 };
    let mut reader = serde_json::Deserializer::from_slice(body);
    // What cannot be read has been refused before.
    let _ = Walk { sought: &sought, places: &mut places }.deserialize(&mut reader);
    let place = |(index, text): (usize, &String)| {
        let (first, second) = (places.found[index].first(), places.found[index].get(1));
        if text.starts_with("duplicate") { second.or(first).copied() } else { first.copied() }
    };
    let order: Vec<_> = said.iter().enumerate().map(place).collect();
    let mut placed: Vec<_> = order.into_iter().zip(said).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, text)| text).collect()
}

/// A field that is looked for: what is left of its path, and which it is.
#[derive(Clone, Copy)]
struct Sought<'a> {
    rest: &'a str,
    index: usize,
}

/// Where fields were found, counted in fields.
struct Places {
    found: Vec<Vec<usize>>,
    seen: usize,
}

/// Walks a value on the way to fields that are looked for, sorted by what is left of their paths.
struct Walk<'a, 'p> {
    sought: &'a [Sought<'a>],
    places: &'p mut Places,
}

impl<'a> Walk<'a, '_> {
    /// What is looked for below a step of a path, sorted. What is looked for right there is found.
    fn below(&mut self, step: &str, is_field: bool) -> Vec<Sought<'a>> {
        let from = self.sought.partition_point(|sought| sought.rest < step);
        let mut below = Vec::new();
        for sought in &self.sought[from..] {
            let Some(rest) = sought.rest.strip_prefix(step) else { break };
            match rest.as_bytes().first() {
                None if is_field && self.places.found[sought.index].len() < 2 => {
                    self.places.found[sought.index].push(self.places.seen);
                }
                Some(b'.') => below.push(Sought { rest: &rest[1..], ..*sought }),
                Some(b'[') => below.push(Sought { rest, ..*sought }),
                _ => {}
            }
        }
        below.sort_by_key(|sought| sought.rest);
        below
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        if self.sought.is_empty() {
            return reader.deserialize_ignored_any(IgnoredAny).map(|_| ());
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            self.places.seen = self.places.seen.saturating_add(1);
            let sought = self.below(&name, true);
            map.next_value_seed(Walk { sought: &sought, places: &mut *self.places })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        for index in 0.. {
            let sought = self.below(&format!("[{index}]"), false);
            if items.next_element_seed(Walk { sought: &sought, places: &mut *self.places })?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(said: &[&str], body: &str) -> Vec<String> {
        in_document_order(said.iter().map(|text| (*text).to_owned()).collect(), body.as_bytes())
    }

    #[test]
    fn what_is_said_about_fields_comes_in_the_order_of_the_document() {
        let body = r#"{"z": 1, "spec": {"list": [{"q": 0}, {"b": {"c": 1}, "a": 2, "a": 3}], "x.y": 4, "m": {}}, "a": 5}"#;
        let said = [
            r#"unknown field "a""#,
            r#"unknown field "spec.x.y""#,
            r#"duplicate field "spec.list[1].a""#,
            r#"unknown field "spec.list[1].b.c""#,
            r#"unknown field "spec.list[0].q""#,
            r#"unknown field "z""#,
        ];
        let order = [5, 4, 3, 2, 1, 0].map(|index| said[index].to_owned());
        assert_eq!(ordered(&said, body), order);
    }

    #[test]
    fn long_names_around_many_fields_take_no_memory_and_no_time() {
        let fields: Vec<String> = (0..100_000).map(|index| format!(r#""f{index}":0"#)).collect();
        let name = "x".repeat(1_000_000);
        let body = format!(r#"{{"b":0,"{name}":{{{}}},"a":0}}"#, fields.join(","));
        let said = [r#"unknown field "a""#, r#"unknown field "b""#];
        // Every path written down would be 100 GB.
        assert_eq!(ordered(&said, &body), [said[1], said[0]]);
    }

    #[test]
    fn a_thousand_fields_among_many_take_no_time() {
        let fields: Vec<String> = (0..150_000).rev().map(|index| format!(r#""f{index}":0"#)).collect();
        let said: Vec<String> = (0..1_000).map(|index| format!(r#"unknown field "spec.f{index}""#)).collect();
        let sorted =
            in_document_order(said.clone(), format!(r#"{{"spec":{{{}}}}}"#, fields.join(",")).as_bytes());
        assert!(sorted.iter().eq(said.iter().rev()));
    }
}
