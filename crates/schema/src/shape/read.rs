use super::keywords::{Elements, keys, map_type, map_type_of, patch, reference, type_name, wrong};
use super::metadata::{metadata, scalar};
use super::{ATOMIC, DEDUCED, Field, Identity, Key, List, Map, Patch, Scalar, Shape, Type, TypeId};
use crate::Error;
use crate::trail::Trail;
use serde_json::{Map as Fields, Value};
use std::collections::HashMap;

pub(super) fn read(openapi: &Value, definitions: &Value) -> Result<Shape, Error> {
    Reader::new(definitions).finish(openapi, false)
}

pub(super) fn custom_resource(openapi: &Value) -> Result<Shape, Error> {
    let mut reader = Reader::new(&Value::Null);
    reader.embeds = true;
    reader.finish(openapi, true)
}

/// The types every shape begins with: [`ATOMIC`] and [`DEDUCED`].
pub(super) fn common_types() -> Vec<Type> {
    let any = |of: TypeId, atomic: bool| Type {
        scalar: Some(Scalar::Untyped),
        list: Some(List { items: ATOMIC, identity: Identity::Whole }),
        map: Some(Map { fields: Vec::new(), others: Some(of), atomic, open: !atomic }),
    };
    vec![any(ATOMIC, true), any(DEDUCED, false)]
}

pub(super) struct Reader<'d> {
    types: Vec<Type>,
    definitions: &'d Value,
    /// The definitions that have a place already, read or not.
    named: HashMap<&'d str, TypeId>,
    waiting: Vec<(&'d str, TypeId)>,
    /// References that say of themselves whether they are taken as a whole: the copy, the definition, what is said.
    overrides: Vec<(TypeId, TypeId, bool)>,
    pub(super) metadata: Option<TypeId>,
    /// Whether `x-kubernetes-embedded-resource` adds the fields of an object.
    embeds: bool,
}

impl<'d> Reader<'d> {
    fn new(definitions: &'d Value) -> Self {
        Self {
            types: common_types(),
            definitions,
            named: HashMap::new(),
            waiting: Vec::new(),
            overrides: Vec::new(),
            metadata: None,
            embeds: false,
        }
    }

    fn finish(mut self, openapi: &'d Value, is_resource: bool) -> Result<Shape, Error> {
        let root = self.node(openapi, &Trail::Start, false, is_resource)?;
        while let Some((name, place)) = self.waiting.pop() {
            let kind = match name.rsplit('.').next() {
                Some("Quantity") => scalar(Scalar::Untyped),
                Some("RawExtension") => self.types[ATOMIC.0].clone(),
                _ => {
                    self.schema(&self.definitions[name], &Trail::Property(&Trail::Start, name), false, false)?
                }
            };
            self.types[place.0] = kind;
        }
        for (copy, of, atomic) in std::mem::take(&mut self.overrides) {
            let mut kind = self.types[of.0].clone();
            match &mut kind {
                Type { map: Some(map), .. } => map.atomic = atomic,
                Type { list: Some(list), .. } if atomic => list.identity = Identity::Whole,
                _ => {}
            }
            self.types[copy.0] = kind;
        }
        Ok(Shape { types: self.types, root })
    }

    pub(super) fn add(&mut self, kind: Type) -> TypeId {
        self.types.push(kind);
        TypeId(self.types.len() - 1)
    }

    /// A schema or a reference to one.
    fn node(&mut self, value: &'d Value, at: &Trail<'_>, keeps: bool, object: bool) -> Result<TypeId, Error> {
        if let Some(name) = reference(value) {
            let known = self.definition(name, at)?;
            return Ok(match map_type(value, at)? {
                Some(atomic) => {
                    let copy = self.add(Type::default());
                    self.overrides.push((copy, known, atomic));
                    copy
                }
                None => known,
            });
        }
        let kind = self.schema(value, at, keeps, object)?;
        Ok(self.add(kind))
    }

    fn definition(&mut self, name: &'d str, at: &Trail<'_>) -> Result<TypeId, Error> {
        if let Some(known) = self.named.get(name) {
            return Ok(*known);
        }
        if self.definitions.get(name).is_none() {
            return Err(wrong(at, "a reference to a definition"));
        }
        let place = self.add(Type::default());
        self.named.insert(name, place);
        self.waiting.push((name, place));
        Ok(place)
    }

    /// `keeps`: an object above keeps unknown fields. `object`: this is a whole Kubernetes object.
    fn schema(&mut self, value: &'d Value, at: &Trail<'_>, keeps: bool, object: bool) -> Result<Type, Error> {
        let Value::Object(keywords) = value else {
            return Err(wrong(at, "a schema"));
        };
        let keeps = keeps || keywords.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
        let object = object
            || self.embeds && keywords.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
        Ok(match type_name(keywords) {
            "object" => Type { map: Some(self.map(keywords, at, keeps, object)?), ..Type::default() },
            "array" => Type { list: Some(self.list(keywords, at, keeps)?), ..Type::default() },
            "integer" | "number" => scalar(Scalar::Numeric),
            "boolean" => scalar(Scalar::Boolean),
            "string" => match keywords.get("format").and_then(Value::as_str) {
                None | Some("" | "byte") => scalar(Scalar::String),
                Some(_) => scalar(Scalar::Untyped),
            },
            "" => Type {
                scalar: Some(Scalar::Untyped),
                list: Some(self.list(keywords, at, keeps)?),
                map: Some(self.map(keywords, at, keeps, object)?),
            },
            _ => return Err(wrong(at, "a known type")),
        })
    }

    fn map(
        &mut self,
        keywords: &'d Fields<String, Value>,
        at: &Trail<'_>,
        keeps: bool,
        object: bool,
    ) -> Result<Map, Error> {
        let properties = match keywords.get("properties") {
            None | Some(Value::Null) => None,
            Some(Value::Object(properties)) => Some(properties),
            Some(_) => return Err(wrong(at, "an object of properties")),
        };
        let mut fields = Vec::new();
        for (name, property) in properties.into_iter().flatten() {
            if object && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let at = Trail::Property(at, name);
            let kind = self.node(property, &at, keeps, false)?;
            fields.push(Field { name: name.as_str().into(), kind, patch: patch(property, &at)? });
        }
        if object {
            let text = self.add(scalar(Scalar::String));
            let metadata = metadata(self);
            let own = [("apiVersion", text), ("kind", text), ("metadata", metadata)];
            fields.extend(own.map(|(name, kind)| Field { name: name.into(), kind, patch: Patch::default() }));
        }
        fields.sort_by(|left, right| left.name.cmp(&right.name));
        let others = match keywords.get("additionalProperties") {
            None | Some(Value::Null) if keeps || fields.is_empty() => Some(DEDUCED),
            Some(Value::Bool(true)) => Some(DEDUCED),
            None | Some(Value::Null | Value::Bool(false)) => None,
            Some(schema) => {
                Some(self.node(schema, &Trail::Property(at, "additionalProperties"), keeps, false)?)
            }
        };
        let untyped = others.is_some_and(|others| {
            others == DEDUCED
                || !self.is_named(others) && self.types[others.0].scalar == Some(Scalar::Untyped)
        });
        let atomic = map_type_of(keywords, at)? == Some(true);
        Ok(Map { open: untyped && fields.is_empty(), fields, others, atomic })
    }

    fn is_named(&self, id: TypeId) -> bool {
        id == ATOMIC || self.named.values().any(|named| *named == id)
    }

    fn list(
        &mut self,
        keywords: &'d Fields<String, Value>,
        at: &Trail<'_>,
        keeps: bool,
    ) -> Result<List, Error> {
        let items = match keywords.get("items") {
            None | Some(Value::Null) => ATOMIC,
            Some(items) => self.node(items, &Trail::Property(at, "items"), keeps, false)?,
        };
        let identity = match keys(keywords, at)? {
            Elements::Whole => Identity::Whole,
            Elements::Set => Identity::Value,
            Elements::Map(names) => {
                let mut keys: Vec<Key> = Vec::with_capacity(names.len());
                for name in names {
                    if keys.iter().all(|key| &*key.name != name) {
                        let default = keywords.get("items").and_then(|items| self.default_of(items, name));
                        keys.push(Key { name: name.into(), default });
                    }
                }
                Identity::Keys(keys)
            }
        };
        Ok(List { items, identity })
    }

    /// What a key of an element is when it is missing.
    fn default_of(&self, items: &Value, key: &str) -> Option<Value> {
        let items = reference(items).map_or(items, |name| &self.definitions[name]);
        let default = items.get("properties")?.get(key)?.get("default")?;
        (!default.is_null()).then(|| default.clone())
    }
}
