use std::fmt;
use std::ops::BitOr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A set of verbs of RBAC. Sets are joined with `|`.
///
/// ```
/// use watchkeeper_description::Verbs;
/// assert_eq!((Verbs::CREATE | Verbs::DELETE).to_string(), "create, delete");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Verbs(u16);

/// As RBAC spells them, in the order in which they are written.
const NAMES: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

impl Verbs {
    /// Reads one object.
    pub const GET: Self = Self(1);
    /// Reads all objects.
    pub const LIST: Self = Self(1 << 1);
    /// Watches objects.
    pub const WATCH: Self = Self(1 << 2);
    /// Creates objects: `Client::create`.
    pub const CREATE: Self = Self(1 << 3);
    /// Replaces objects: `Client::update`.
    pub const UPDATE: Self = Self(1 << 4);
    /// Changes parts of objects: `Client::patch`, `Client::modify`.
    pub const PATCH: Self = Self(1 << 5);
    /// Deletes single objects: `Client::delete`.
    pub const DELETE: Self = Self(1 << 6);
    /// Deletes many objects at once: `Client::delete_all_of`.
    pub const DELETE_COLLECTION: Self = Self(1 << 7);
    /// The verbs that `Client::apply` needs: create and patch.
    pub const APPLY: Self = Self(Self::CREATE.0 | Self::PATCH.0);
    /// The verbs that a cache needs: get, list and watch.
    pub const READ: Self = Self(Self::GET.0 | Self::LIST.0 | Self::WATCH.0);
    /// No verb.
    pub const NONE: Self = Self(0);

    /// The verb with this name in RBAC.
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().position(|known| *known == name).map(|bit| Self(1 << bit))
    }

    /// Whether all of these verbs are in the set.
    pub fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The verbs of this set that are not among the others.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// The single verbs of the set.
    pub fn iter(self) -> impl Iterator<Item = Self> {
        (0..NAMES.len()).map(|bit| Self(1 << bit)).filter(move |verb| self.contains(*verb))
    }

    /// The names of the verbs.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().enumerate().filter(move |(bit, _)| self.0 & 1 << bit != 0).map(|(_, name)| *name)
    }

    /// The set as Rust code: `Verbs::CREATE | Verbs::DELETE`.
    pub fn source(self) -> String {
        const SOURCE: [&str; 8] =
            ["GET", "LIST", "WATCH", "CREATE", "UPDATE", "PATCH", "DELETE", "DELETE_COLLECTION"];
        let verbs = SOURCE.iter().enumerate().filter(|(bit, _)| self.0 & 1 << bit != 0);
        verbs.map(|(_, name)| format!("Verbs::{name}")).collect::<Vec<_>>().join(" | ")
    }
}

impl BitOr for Verbs {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for Verbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Debug for Verbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Verbs({self})")
    }
}

impl Serialize for Verbs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

impl<'de> Deserialize<'de> for Verbs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        names.iter().try_fold(Self::NONE, |verbs, name| match Self::named(name) {
            Some(verb) => Ok(verbs | verb),
            None => Err(serde::de::Error::custom(format!("there is no verb {name:?}"))),
        })
    }
}
