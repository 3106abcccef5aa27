use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Attribute, Path, Token};

/// What a type derives already, and how serde is told to name its fields.
pub(crate) struct Derives {
    named: Vec<String>,
    renames: bool,
}

impl Derives {
    pub(crate) fn of(attributes: &[Attribute]) -> Self {
        let mut named = Vec::new();
        let mut renames = false;
        for attribute in attributes {
            if attribute.path().is_ident("derive")
                && let Ok(paths) = attribute.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated)
            {
                named.extend(paths.iter().filter_map(|path| Some(path.segments.last()?.ident.to_string())));
            }
            // Only looked for: mistakes in it are serde's to report.
            if attribute.path().is_ident("serde") && quote!(#attribute).to_string().contains("rename_all") {
                renames = true;
            }
        }
        Self { named, renames }
    }

    fn has(&self, name: &str) -> bool {
        self.named.iter().any(|named| named == name)
    }

    /// The attributes that add what is missing, over what the facade re-exports.
    pub(crate) fn missing(&self, facade: &Path, schema: bool, is_struct: bool) -> TokenStream {
        let serde = quote!(#facade::__private::serde);
        let schemars = quote!(#facade::__private::schemars);
        let mut derives = Vec::new();
        let mut helpers = Vec::new();
        for name in ["Clone", "Debug"] {
            if !self.has(name) {
                let name = Ident::new(name, Span::call_site());
                derives.push(quote!(#name));
            }
        }
        let (serialize, deserialize) = (self.has("Serialize"), self.has("Deserialize"));
        if !serialize {
            derives.push(quote!(#serde::Serialize));
        }
        if !deserialize {
            derives.push(quote!(#serde::Deserialize));
        }
        // Whoever derives one of them by hand has the crate, and says where it is if need be.
        if !serialize && !deserialize {
            let path = serde.to_string().replace(' ', "");
            helpers.push(quote!(#[serde(crate = #path)]));
        }
        if is_struct && !self.renames {
            helpers.push(quote!(#[serde(rename_all = "camelCase")]));
        }
        if schema && !self.has("JsonSchema") {
            derives.push(quote!(#schemars::JsonSchema));
            let path = schemars.to_string().replace(' ', "");
            helpers.push(quote!(#[schemars(crate = #path)]));
        }
        quote!(#[derive(#(#derives),*)] #(#helpers)*)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn missing(attributes: &[Attribute]) -> String {
        Derives::of(attributes).missing(&parse_quote!(::watchkeeper), true, true).to_string()
    }

    #[test]
    fn nothing_is_derived_twice() {
        let added =
            missing(&[parse_quote!(#[derive(PartialEq, Clone)]), parse_quote!(#[derive(serde::Serialize)])]);
        assert!(!added.contains("Clone"), "{added}");
        assert!(!added.contains(":: Serialize"), "{added}");
        assert!(added.contains(":: Deserialize") && added.contains("Debug"), "{added}");
        // The derive by hand refers to the crate of its own.
        assert!(!added.contains("__private::serde\""), "{added}");
    }

    #[test]
    fn fields_are_in_camel_case_unless_they_are_said_to_be_otherwise() {
        assert!(missing(&[]).contains("camelCase"));
        assert!(!missing(&[parse_quote!(#[serde(rename_all = "snake_case")])]).contains("camelCase"));
        let of_an_enum = Derives::of(&[]).missing(&parse_quote!(::watchkeeper), true, false).to_string();
        assert!(!of_an_enum.contains("camelCase"));
    }
}
