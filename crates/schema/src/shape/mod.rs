//! How the values of a kind are put together and taken apart: what merges, what is replaced as a whole, who is who in a
//! list.

mod keywords;
mod metadata;
mod read;

use crate::Error;
use serde_json::Value;

/// The shape of a kind, as merges need it: the types of its fields, which lists are sets or maps, which values are taken
/// as a whole, and the strategies and merge keys of strategic merge patch.
///
/// Made from an OpenAPI schema: of a custom resource ([`Shape::of_custom_resource`]), or of a built-in kind with its
/// extensions ([`Shape::read`], [`Shape::read_with`]). Where nothing is known about a kind, [`Shape::deduced`] takes
/// objects as mergeable and lists as a whole.
///
/// Unlike a [`Schema`](crate::Schema) it knows no limits and no formats. It may be recursive. It is immutable and can be
/// shared between threads.
#[derive(Clone, Debug)]
pub struct Shape {
    types: Vec<Type>,
    root: TypeId,
}

/// A place in the table of types of a [`Shape`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeId(usize);

/// Anything, taken as a whole.
const ATOMIC: TypeId = TypeId(0);
/// Anything; objects are mergeable, lists are not.
const DEDUCED: TypeId = TypeId(1);

/// What a value may be: any of the alternatives that are there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Type {
    pub(crate) scalar: Option<Scalar>,
    pub(crate) list: Option<List>,
    pub(crate) map: Option<Map>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    String,
    Boolean,
    Untyped,
}

#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) items: TypeId,
    pub(crate) identity: Identity,
}

/// What makes an element of a list the same element in another list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Identity {
    /// Nothing: the list is taken as a whole.
    Whole,
    /// Its value.
    Value,
    /// Some of its fields, each with what it is when it is missing.
    Keys(Vec<Key>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    pub(crate) name: Box<str>,
    pub(crate) default: Option<Value>,
}

#[derive(Clone, Debug)]
pub(crate) struct Map {
    /// Sorted by name.
    fields: Vec<Field>,
    /// The type of fields that are not named; without it there may be none.
    pub(crate) others: Option<TypeId>,
    pub(crate) atomic: bool,
    /// Nothing is said about this object but that it is one.
    pub(crate) open: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: Box<str>,
    pub(crate) kind: TypeId,
    pub(crate) patch: Patch,
}

/// The strategy of a strategic merge patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Patch {
    /// Without `retainKeys`, which matters only to those who make patches.
    pub(crate) strategy: Box<str>,
    pub(crate) merge_key: Box<str>,
}

/// The alternative of a [`Type`] that a value is handled as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form<'s> {
    Map(&'s Map),
    Scalar(Scalar),
    List(&'s List),
    /// The type allows nothing.
    Nothing,
}

impl Shape {
    /// Reads the schema of a built-in kind, complete with `apiVersion`, `kind` and `metadata` and without references.
    ///
    /// Understood are `type`, `format`, `properties`, `additionalProperties`, `items`, `default` and the extensions
    /// `x-kubernetes-list-type`, `-list-map-keys`, `-map-type`, `-preserve-unknown-fields`, `-int-or-string`,
    /// `-patch-strategy` and `-patch-merge-key`. A value without a type may be anything. A string with a format may be any
    /// scalar: that is how quantities and times are told.
    pub fn read(openapi: &Value) -> Result<Self, Error> {
        read::read(openapi, &Value::Null)
    }

    /// Like [`read`](Self::read), where `$ref` names an entry of `definitions` by its last segment. Definitions may refer
    /// to each other and to themselves.
    pub fn read_with(openapi: &Value, definitions: &Value) -> Result<Self, Error> {
        read::read(openapi, definitions)
    }

    /// Reads the `openAPIV3Schema` of a custom resource. `apiVersion`, `kind` and `metadata` are added to it, and to every
    /// object embedded in it.
    pub fn of_custom_resource(openapi: &Value) -> Result<Self, Error> {
        read::custom_resource(openapi)
    }

    /// A kind of which nothing is known.
    pub fn deduced() -> Self {
        Self { types: read::common_types(), root: DEDUCED }
    }

    pub(crate) fn root(&self) -> TypeId {
        self.root
    }

    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0]
    }
}

impl Type {
    /// The alternative that fits a value; for null, and for what fits none, the first there is.
    pub(crate) fn form(&self, value: &Value) -> Form<'_> {
        match (value, self) {
            (Value::Object(_), Self { map: Some(map), .. }) => Form::Map(map),
            (Value::Array(_), Self { list: Some(list), .. }) => Form::List(list),
            (Value::Bool(_) | Value::Number(_) | Value::String(_), Self { scalar: Some(scalar), .. }) => {
                Form::Scalar(*scalar)
            }
            _ => self.first_form(),
        }
    }

    pub(crate) fn first_form(&self) -> Form<'_> {
        match self {
            Self { map: Some(map), .. } => Form::Map(map),
            Self { scalar: Some(scalar), .. } => Form::Scalar(*scalar),
            Self { list: Some(list), .. } => Form::List(list),
            _ => Form::Nothing,
        }
    }
}

impl Form<'_> {
    /// Whether both are the same alternative.
    pub(crate) fn is(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl Map {
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        let at = self.fields.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        Some(&self.fields[at])
    }

    /// Whether any field is named.
    pub(crate) fn has_fields(&self) -> bool {
        !self.fields.is_empty()
    }

    /// The type of a field by its name, or of the others.
    pub(crate) fn kind(&self, name: &str) -> Option<TypeId> {
        self.field(name).map(|field| field.kind).or(self.others)
    }
}
