use crate::Path;
use crate::format::Format;
use crate::pattern::Pattern;
use serde_json::Value;

/// One place in a schema.
///
/// The branches of `allOf`, `anyOf`, `oneOf` and `not` are nodes like all others; that they may hold less is a rule of
/// the check, not of the type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) kind: Option<Type>,
    pub(crate) int_or_string: bool,
    pub(crate) nullable: bool,
    pub(crate) preserve_unknown: Option<bool>,
    pub(crate) embedded: bool,
    pub(crate) list_type: Option<Box<str>>,
    pub(crate) list_map_keys: Vec<String>,
    pub(crate) map_type: Option<Box<str>>,
    pub(crate) properties: Properties,
    pub(crate) additional: Option<Additional>,
    pub(crate) items: Option<Box<Node>>,
    /// As written; what is filled in is [`Node::filling`].
    pub(crate) default: Option<Value>,
    /// The default without unknown fields, if it has any.
    pub(crate) pruned_default: Option<Value>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) checks: Checks,
    pub(crate) keywords: Keywords,
    /// Whether there is an embedded object here or below.
    pub(crate) has_embedded: bool,
    /// Whether there is a list here or below that has no duplicates.
    pub(crate) has_unique_lists: bool,
}

/// The declared type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    Unknown(Box<str>),
}

impl Type {
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            other => Self::Unknown(other.into()),
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Unknown(name) => name,
        }
    }
}

/// What fields that are not named may be.
#[derive(Clone, Debug)]
pub(crate) enum Additional {
    Schema(Box<Node>),
    Allowed,
    Refused,
}

/// Named fields, sorted by name so that they can be walked side by side with an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Properties {
    sorted: Vec<(Box<str>, Node)>,
}

impl Properties {
    pub(crate) fn new(mut fields: Vec<(Box<str>, Node)>) -> Self {
        fields.sort_by(|(left, _), (right, _)| left.cmp(right));
        Self { sorted: fields }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.sorted.binary_search_by(|(known, _)| (**known).cmp(name)).ok().map(|at| &self.sorted[at].1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.sorted.iter().map(|(name, node)| (&**name, node))
    }

    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
}

/// What a value is checked for besides its type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checks {
    /// As written; what it means for the declared type is `format`.
    pub(crate) format_name: Box<str>,
    pub(crate) format: Option<Format>,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) unique_items: bool,
    pub(crate) max_properties: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) required: Vec<String>,
    pub(crate) one_of_values: Vec<Value>,
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Box<Node>>,
}

impl Checks {
    /// Whether nothing is checked.
    pub(crate) fn is_empty(&self) -> bool {
        let limits = [
            self.maximum.is_some(),
            self.minimum.is_some(),
            self.multiple_of.is_some(),
            self.max_length.is_some(),
            self.min_length.is_some(),
            self.max_items.is_some(),
            self.min_items.is_some(),
            self.max_properties.is_some(),
            self.min_properties.is_some(),
            self.exclusive_maximum,
            self.exclusive_minimum,
            self.unique_items,
            self.pattern.is_some(),
            self.not.is_some(),
        ];
        !limits.contains(&true)
            && self.format_name.is_empty()
            && self.required.is_empty()
            && self.one_of_values.is_empty()
            && self.all_of.is_empty()
            && self.any_of.is_empty()
            && self.one_of.is_empty()
    }
}

/// Keywords that matter only to whether the schema is a good one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keywords {
    pub(crate) title: bool,
    pub(crate) description: bool,
    pub(crate) example: bool,
    pub(crate) external_docs: bool,
    /// `items` is an array of schemas.
    pub(crate) items_array: bool,
    pub(crate) id: bool,
    pub(crate) schema: bool,
    pub(crate) reference: bool,
    pub(crate) additional_items: bool,
    pub(crate) pattern_properties: bool,
    pub(crate) definitions: bool,
    pub(crate) dependencies: bool,
}

/// One rule of `x-kubernetes-validations`, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The CEL expression.
    pub rule: String,
    /// The message when it is false.
    pub message: Option<String>,
    /// A CEL expression that says it.
    pub message_expression: Option<String>,
    /// The reason of the cause, `FieldValueInvalid` unless set.
    pub reason: Option<String>,
    /// The field to name instead of the place of the rule.
    pub field_path: Option<String>,
    /// Whether the rule also runs when there is no old value.
    pub optional_old_self: Option<bool>,
}

/// A [`Rule`] and where in the schema it stands.
#[derive(Clone, Debug)]
pub struct PlacedRule<'a> {
    /// The place, below `openAPIV3Schema`.
    pub at: Path,
    /// The rule.
    pub rule: &'a Rule,
}

impl Node {
    /// The schema of a field by its name or by `additionalProperties`.
    pub(crate) fn field(&self, name: &str) -> Option<&Node> {
        self.property(name).or_else(|| self.additional_schema())
    }

    pub(crate) fn property(&self, name: &str) -> Option<&Node> {
        self.properties.get(name)
    }

    pub(crate) fn additional_schema(&self) -> Option<&Node> {
        match &self.additional {
            Some(Additional::Schema(node)) => Some(node),
            _ => None,
        }
    }

    pub(crate) fn preserves_unknown(&self) -> bool {
        self.preserve_unknown == Some(true)
    }

    pub(crate) fn is_list_map(&self) -> bool {
        self.list_type.as_deref() == Some("map")
    }

    /// Remembers what is below, so that walks which look for it can turn back.
    pub(crate) fn look_below(&mut self) {
        let below = || {
            let properties = self.properties.iter().map(|(_, property)| property);
            properties.chain(self.additional_schema()).chain(self.items.as_deref())
        };
        let has_embedded = self.embedded || below().any(|node| node.has_embedded);
        let is_unique = matches!(self.list_type.as_deref(), Some("set" | "map"));
        let has_unique_lists = is_unique || below().any(|node| node.has_unique_lists);
        self.has_embedded = has_embedded;
        self.has_unique_lists = has_unique_lists;
    }

    /// What a missing value is replaced by.
    pub(crate) fn filling(&self) -> Option<&Value> {
        self.pruned_default.as_ref().or(self.default.as_ref())
    }

    /// Whether `null` is not a value here.
    pub(crate) fn refuses_null(&self) -> bool {
        !self.nullable
    }

    /// Whether a branch holds its type and nothing else.
    pub(crate) fn says_only_its_type(&self) -> bool {
        let keywords = &self.keywords;
        !(self.int_or_string
            || self.nullable
            || self.preserves_unknown()
            || self.embedded
            || self.list_type.is_some()
            || self.map_type.is_some()
            || !self.list_map_keys.is_empty()
            || !self.properties.is_empty()
            || self.additional.is_some()
            || self.items.is_some()
            || self.default.is_some()
            || !self.rules.is_empty()
            || keywords.title
            || keywords.description
            || keywords.example
            || keywords.external_docs)
            && self.checks.is_empty()
    }

    pub(crate) fn type_name(&self) -> &str {
        self.kind.as_ref().map_or("", Type::name)
    }

    pub(crate) fn collect_rules<'a>(&'a self, at: &Path, found: &mut Vec<PlacedRule<'a>>) {
        found.extend(self.rules.iter().map(|rule| PlacedRule { at: at.clone(), rule }));
        for (name, node) in self.properties.iter() {
            node.collect_rules(&at.child("properties").key(name), found);
        }
        if let Some(node) = self.additional_schema() {
            node.collect_rules(&at.child("additionalProperties"), found);
        }
        if let Some(items) = &self.items {
            items.collect_rules(&at.child("items"), found);
        }
    }
}
