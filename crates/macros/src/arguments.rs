use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Lit, LitStr, Meta, Path, Result, Token};

/// The arguments of an attribute, sorted by who reads them.
pub(crate) struct Arguments {
    /// Where the facade crate is.
    pub(crate) facade: Path,
    /// What the derive of the `kube` crate is told.
    pub(crate) kube: Vec<TokenStream>,
    /// Whether a JSON schema is to be derived.
    pub(crate) schema: bool,
}

impl Arguments {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let list = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens)?;
        let mut arguments = Self { facade: syn::parse_quote!(::watchkeeper), kube: Vec::new(), schema: true };
        for argument in list {
            arguments.take(&argument)?;
        }
        Ok(arguments)
    }

    fn take(&mut self, argument: &Meta) -> Result<()> {
        if argument.path().is_ident("crate") {
            self.facade = text(argument)?.parse()?;
            return Ok(());
        }
        if argument.path().is_ident("schema") {
            self.schema = text(argument)?.value() == "derived";
        }
        self.kube.push(match argument {
            Meta::List(list) if list.path.is_ident("printcolumn") => column(argument, &list.tokens)?,
            other => quote!(#other),
        });
        Ok(())
    }

    /// Fails unless nothing is left that only a kind can be told.
    pub(crate) fn expect_none(&self) -> Result<()> {
        match self.kube.first() {
            None => Ok(()),
            Some(first) => Err(Error::new(first.span(), "schema takes no arguments but `crate`")),
        }
    }
}

/// The value of `name = "value"`.
fn text(argument: &Meta) -> Result<LitStr> {
    match &argument.require_name_value()?.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.clone()),
        other => Err(Error::new(other.span(), "expected a string literal")),
    }
}

/// `printcolumn("Name", ".path")` as the derive of the `kube` crate wants it; its own form as it is.
fn column(argument: &Meta, tokens: &TokenStream) -> Result<TokenStream> {
    let Ok(words) = Punctuated::<LitStr, Token![,]>::parse_terminated.parse2(tokens.clone()) else {
        return Ok(quote!(#argument));
    };
    let words: Vec<&LitStr> = words.iter().collect();
    let string = LitStr::new("string", argument.span());
    let (name, path, kind) = match words.as_slice() {
        [name, path] => (name, path, &string),
        [name, path, kind] => (name, path, *kind),
        _ => {
            let message = "a column has a name, a path and, if it is no string, a type: \
                           printcolumn(\"Replicas\", \".spec.replicas\", \"integer\")";
            return Err(Error::new(argument.span(), message));
        }
    };
    Ok(quote_spanned!(argument.span()=> printcolumn(name = #name, type_ = #kind, json_path = #path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kube(tokens: TokenStream) -> Result<String> {
        let kube = Arguments::parse(tokens)?.kube;
        Ok(quote!(#(#kube),*).to_string())
    }

    #[test]
    fn a_column_may_be_written_short() {
        let short = kube(quote!(printcolumn("Text", ".spec.text"))).unwrap();
        let long = quote!(printcolumn(name = "Text", type_ = "string", json_path = ".spec.text"));
        assert_eq!(short, long.to_string());
        let typed = kube(quote!(printcolumn("Size", ".spec.size", "integer"))).unwrap();
        assert!(typed.contains("\"integer\""), "{typed}");
        assert_eq!(kube(long.clone()).unwrap(), long.to_string());
        assert!(kube(quote!(printcolumn("Text"))).unwrap_err().to_string().contains("a name, a path"));
    }

    #[test]
    fn the_facade_can_be_elsewhere_and_the_rest_is_handed_on() {
        let arguments = Arguments::parse(quote!(crate = "::wk", kind = "Page", namespaced)).unwrap();
        let facade = &arguments.facade;
        assert_eq!(quote!(#facade).to_string(), quote!(::wk).to_string());
        assert_eq!(arguments.kube.len(), 2);
        assert!(arguments.expect_none().is_err());
    }

    #[test]
    fn a_schema_that_is_made_by_hand_is_not_derived() {
        assert!(Arguments::parse(quote!(kind = "Page")).unwrap().schema);
        assert!(!Arguments::parse(quote!(schema = "manual")).unwrap().schema);
    }
}
