use quote::quote;
use syn::{Attribute, Data, DeriveInput, Field, Type, parse_quote};

/// Has fields that are `None` left out: a server takes `null` for a value that somebody set, and applying one takes the field from its owner.
/// A field whose serde attributes say when to skip it is left as it is.
pub(crate) fn skip_none(item: &mut DeriveInput) {
    match &mut item.data {
        Data::Struct(data) => data.fields.iter_mut().for_each(skip),
        Data::Enum(data) => data.variants.iter_mut().flat_map(|one| one.fields.iter_mut()).for_each(skip),
        Data::Union(_) => {}
    }
}

fn skip(field: &mut Field) {
    // A field without a name is a place in a tuple, which cannot be left out.
    if field.ident.is_none() || !is_option(&field.ty) || says(&field.attrs, "skip") {
        return;
    }
    field.attrs.push(parse_quote!(#[serde(skip_serializing_if = "::core::option::Option::is_none")]));
    if !says(&field.attrs, "default") {
        field.attrs.push(parse_quote!(#[serde(default)]));
    }
}

fn is_option(of: &Type) -> bool {
    let Type::Path(path) = of else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Option" && !last.arguments.is_empty())
}

/// Whether serde is told something with this word. Only looked for: mistakes in it are serde's to report.
fn says(attributes: &[Attribute], word: &str) -> bool {
    let of_serde = attributes.iter().filter(|attribute| attribute.path().is_ident("serde"));
    of_serde.map(|attribute| quote!(#attribute).to_string()).any(|text| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_none_is_left_out_unless_its_field_says_otherwise() {
        let mut item: DeriveInput = parse_quote! {
            struct PageSpec {
                text: String,
                size: Option<i32>,
                #[serde(default = "two", rename = "x")]
                count: std::option::Option<i32>,
                #[serde(skip_serializing_if = "never")]
                shown: Option<bool>,
                #[serde(skip)]
                hidden: Option<bool>,
            }
        };
        skip_none(&mut item);
        let Data::Struct(data) = &item.data else { panic!() };
        let attributes: Vec<String> = data
            .fields
            .iter()
            .map(|field| field.attrs.iter().map(|one| quote!(#one).to_string().replace(' ', "")).collect())
            .collect();
        let none = "#[serde(skip_serializing_if=\"::core::option::Option::is_none\")]";
        assert_eq!(
            attributes,
            [
                "".to_owned(),
                format!("{none}#[serde(default)]"),
                format!("#[serde(default=\"two\",rename=\"x\")]{none}"),
                "#[serde(skip_serializing_if=\"never\")]".to_owned(),
                "#[serde(skip)]".to_owned(),
            ]
        );
        // Variants of enums have fields, too; places in tuples do not.
        let mut item: DeriveInput = parse_quote!(
            enum Part {
                Named { size: Option<i32> },
                Tuple(Option<i32>),
            }
        );
        skip_none(&mut item);
        assert_eq!(quote!(#item).to_string().matches("is_none").count(), 1);
    }
}
