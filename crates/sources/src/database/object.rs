//! Rows as JSON objects.

/// The names of columns as they stand in JSON, made once for all rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names(Vec<Vec<u8>>);

impl Names {
    pub(crate) fn new<'a>(columns: impl IntoIterator<Item = &'a str>) -> Self {
        let member = |column: &str| {
            let mut member = Vec::new();
            text(column, &mut member);
            member.push(b':');
            member
        };
        Self(columns.into_iter().map(member).collect())
    }

    /// An object with a member for each name, whose values are written one after the other. The first that cannot be written ends it.
    pub(crate) fn object<E>(
        &self,
        mut value: impl FnMut(usize, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        let mut object = Vec::with_capacity(64);
        object.push(b'{');
        for (index, name) in self.0.iter().enumerate() {
            if index > 0 {
                object.push(b',');
            }
            object.extend_from_slice(name);
            value(index, &mut object)?;
        }
        object.push(b'}');
        Ok(object)
    }
}

/// Writes a text as JSON does.
pub(crate) fn text(text: &str, out: &mut Vec<u8>) {
    // Writing to a vector does not fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_the_columns_in_their_order() {
        let names = Names::new(["id", "a\"b"]);
        let object = names.object(|index, out| -> Result<(), ()> {
            text(&format!("v{index}\n"), out);
            Ok(())
        });
        assert_eq!(String::from_utf8(object.unwrap()).unwrap(), r#"{"id":"v0\n","a\"b":"v1\n"}"#);
        assert_eq!(names.object(|index, _| if index == 1 { Err(7) } else { Ok(()) }), Err(7));
    }
}
