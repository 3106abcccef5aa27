//! The functions of a kind: what kube-apiserver calls its strategy.

use crate::prepare::Subresource;
use crate::validate::field::{Errors, Field};
use serde_json::{Map, Value};

/// The fields of an object.
pub(crate) type Fields = Map<String, Value>;

/// A function that sets fields.
pub(crate) type Fill = fn(&mut Fields);

/// A function that changes an object that replaces another.
pub(crate) type Prepare = fn(new: &mut Fields, old: &Fields);

/// The rules of a kind for an object that is created, or that replaces `old`.
pub(crate) type Validate = fn(new: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors);

/// The rules of a kind for a change.
pub(crate) type ValidateUpdate = fn(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors);

/// A warning about an object that replaces `old`.
pub(crate) type Warn = fn(new: &Value, old: Option<&Value>) -> Option<&'static str>;

/// The seconds that an object is given to end in, when the client asks for so many.
pub(crate) type GracePeriod = fn(object: &Value, asked: Option<i64>) -> i64;

/// What a kind does in each step of a write. The fields are in the order of the steps. Kinds set what they need with the
/// methods of [`Kind`](crate::Kind) in [`row`](super::row); the default of each is to do nothing more than every kind does.
#[derive(Debug)]
pub(crate) struct Strategy {
    /// Makes fields that have two names or two forms agree, after an object was read.
    pub(crate) unify: Option<Fill>,
    /// The defaults that depend on other fields.
    pub(crate) default: Option<Fill>,
    /// The same for types of the kind's group and version that are parts of objects, by the name of the type. They hold
    /// wherever the type occurs, in other kinds as well.
    pub(crate) type_defaults: &'static [(&'static str, Fill)],
    /// Whether the status of a new object is what its writer says.
    pub(crate) keeps_status_on_create: bool,
    /// Resets and sets fields of a new object.
    pub(crate) prepare_create: Option<Fill>,
    /// Resets and sets fields of an object that replaces another.
    pub(crate) prepare_update: Option<Prepare>,
    /// The same for a write of the status.
    pub(crate) prepare_status_update: Option<Prepare>,
    /// The fields of the metadata that a write of the status leaves as they are.
    pub(crate) status_keeps: &'static [&'static str],
    /// Whether two versions of an object differ in what `metadata.generation` counts.
    pub(crate) counts: fn(new: &Fields, old: &Fields) -> bool,
    /// The rule for names, instead of the [rule of the kind](crate::Kind#structfield.name_rule). It is given the object, on
    /// updates too.
    pub(crate) validate_name: Option<fn(object: &Field<'_>, errors: &mut Errors)>,
    /// The rules for objects.
    pub(crate) validate: Option<Validate>,
    /// The fields that stay as they are, as paths.
    pub(crate) immutable: &'static [&'static str],
    /// The rules for changes, after those for [immutable](Self::immutable) fields.
    pub(crate) validate_update: Option<ValidateUpdate>,
    /// Whether the rules for changes come before those for objects.
    pub(crate) validates_changes_first: bool,
    /// The rules for writes of subresources.
    pub(crate) validate_subresources: &'static [(Subresource, ValidateUpdate)],
    /// How an object becomes one of the kind it is [stored as](crate::Kind#structfield.stored_as), and the way back.
    pub(crate) conversion: Option<Conversion>,
    /// A warning about an object that is accepted, and that replaces `old`.
    pub(crate) warning: Option<Warn>,
    /// The seconds that an object is given to end in when it is deleted, and the client asks for so many.
    pub(crate) grace_period: Option<GracePeriod>,
    /// Sets fields of an object that is deleted.
    pub(crate) prepare_delete: Option<fn(&mut Value)>,
    /// Whether something else than finalizers in its metadata keeps an object from being deleted.
    pub(crate) is_held: Option<fn(&Value) -> bool>,
    /// The fields that writers of the object or of a subresource do not come to own, if they are not the usual ones.
    pub(crate) resets: &'static [(Subresource, &'static [&'static [&'static str]])],
    /// The answer to a field selector that names a field it may not, if it is not the usual one.
    pub(crate) unsupported_field: Option<fn(label: &str) -> String>,
}

/// The two directions between a kind and the one it is stored as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversion {
    pub(crate) to_stored: fn(Value) -> Value,
    pub(crate) from_stored: fn(Value) -> Value,
}

impl Strategy {
    /// The strategy of a kind without functions of its own.
    pub(crate) const NONE: Self = Self {
        unify: None,
        default: None,
        type_defaults: &[],
        keeps_status_on_create: false,
        prepare_create: None,
        prepare_update: None,
        prepare_status_update: None,
        status_keeps: &[],
        counts: crate::prepare::spec_differs,
        validate_name: None,
        validate: None,
        immutable: &[],
        validate_update: None,
        validates_changes_first: false,
        validate_subresources: &[],
        conversion: None,
        warning: None,
        grace_period: None,
        prepare_delete: None,
        is_held: None,
        resets: &[],
        unsupported_field: None,
    };
}
