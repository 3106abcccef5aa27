use watchkeeper_wire::field::Path;

/// A path that is written down only when somebody asks: a list on the stack, from the leaf to the root.
///
/// Walking a valid object then costs no allocation for the places it passes.
#[derive(Clone, Copy)]
pub(crate) enum Trail<'a> {
    /// Where the walk began.
    Start,
    /// A field the schema names.
    Property(&'a Trail<'a>, &'a str),
    /// A field that falls under `additionalProperties`.
    Entry(&'a Trail<'a>, &'a str),
    /// An element of an array.
    Item(&'a Trail<'a>, usize),
}

impl<'a> Trail<'a> {
    /// As a [`Path`] below `base`: entries of maps in brackets.
    pub(crate) fn path(&self, base: &Path) -> Path {
        match self {
            Self::Start => base.clone(),
            Self::Property(parent, name) => parent.path(base).child(name),
            Self::Entry(parent, key) => parent.path(base).key(key),
            Self::Item(parent, index) => parent.path(base).index(*index),
        }
    }

    /// As the value validator names places in its sentences: dots everywhere, an entry of the root with a dot in
    /// front.
    pub(crate) fn name(&self) -> String {
        let mut out = String::new();
        self.write_name(&mut out);
        out
    }

    fn write_name(&self, out: &mut String) {
        match self {
            Self::Start => {}
            Self::Property(parent, name) => {
                parent.write_name(out);
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Self::Entry(parent, key) => {
                parent.write_name(out);
                out.push('.');
                out.push_str(key);
            }
            Self::Item(parent, index) => {
                parent.write_name(out);
                out.push_str(&format!("[{index}]"));
            }
        }
    }

    /// As the pruner names unknown fields: dots everywhere.
    pub(crate) fn dotted(&self, field: &str) -> String {
        Trail::Property(self, field).name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_validator_writes_map_entries_with_a_dot_even_at_the_root() {
        let spec = Trail::Property(&Trail::Start, "spec");
        let entry = Trail::Entry(&spec, "k");
        let item = Trail::Item(&entry, 0);
        assert_eq!(item.name(), "spec.k[0]");
        assert_eq!(item.path(&Path::root()).to_string(), "spec[k][0]");
        assert_eq!(Trail::Entry(&Trail::Start, "k").name(), ".k");
    }
}
