use serde_json::Value;

use crate::error::Error;

/// A CustomResourceDefinition, with the fields that renderers need.
#[derive(Clone, Debug)]
pub struct Definition<'a> {
    /// The whole definition.
    pub value: &'a Value,
    /// The name: `shops.example.com`.
    pub name: &'a str,
    /// The group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The plural.
    pub plural: &'a str,
    /// Whether the objects are in namespaces.
    pub namespaced: bool,
}

/// A version of a definition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: &'a Value,
}

impl<'a> Definition<'a> {
    /// Reads a definition; `at` is its place among others, for those without a name.
    ///
    /// # Errors
    ///
    /// If something is missing that every definition has.
    pub fn read(at: usize, value: &'a Value) -> Result<Self, Error> {
        let name = value.pointer("/metadata/name").and_then(Value::as_str);
        let text = |field: &'static str| {
            let pointer = format!("/{}", field.replace('.', "/"));
            let missing = || Error::Definition {
                name: name.map_or_else(|| format!("number {}", at + 1), str::to_owned),
                field,
            };
            value.pointer(&pointer).and_then(Value::as_str).ok_or_else(missing)
        };
        Ok(Self {
            value,
            name: text("metadata.name")?,
            group: text("spec.group")?,
            kind: text("spec.names.kind")?,
            plural: text("spec.names.plural")?,
            namespaced: text("spec.scope")? == "Namespaced",
        })
    }

    /// The object, for an operator in this namespace: that is where its conversion is asked for.
    pub(crate) fn placed(&self, namespace: &str) -> Value {
        let mut value = self.value.clone();
        if let Some(place) = value.pointer_mut("/spec/conversion/webhook/clientConfig/service/namespace") {
            *place = namespace.into();
        }
        value
    }

    /// Its versions, in order.
    pub(crate) fn versions(&self) -> impl Iterator<Item = Version<'a>> + use<'a> {
        let versions = self.value.pointer("/spec/versions").and_then(Value::as_array);
        versions
            .into_iter()
            .flatten()
            .filter_map(|value| Some(Version { name: value.get("name")?.as_str()?, value }))
    }

    /// The version that is stored, or the first.
    pub(crate) fn storage(&self) -> Option<Version<'a>> {
        self.versions().find(|version| version.is("storage")).or_else(|| self.versions().next())
    }
}

impl<'a> Version<'a> {
    pub(crate) fn is(&self, flag: &str) -> bool {
        self.value.get(flag).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(crate) fn schema(&self) -> Option<&'a Value> {
        self.value.pointer("/schema/openAPIV3Schema")
    }

    pub(crate) fn has_status(&self) -> bool {
        self.value.pointer("/subresources/status").is_some()
    }
}
