use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Path, Result};

use crate::arguments::Arguments;
use crate::derives::Derives;
use crate::options;

pub(crate) fn kind(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let arguments = Arguments::parse(arguments)?;
    let mut item: DeriveInput = syn::parse2(item)?;
    if !matches!(item.data, Data::Struct(_)) {
        let message =
            "a kind is made of the struct that is its spec: #[watchkeeper::kind(..)] struct PageSpec { .. }";
        return Err(Error::new_spanned(&item.ident, message));
    }
    let Arguments { facade, kube, schema } = &arguments;
    let derives = Derives::of(&item.attrs).missing(facade, *schema, true);
    options::skip_none(&mut item);
    let crates = crates(facade);
    Ok(quote! {
        #[derive(#facade::__private::kube::CustomResource)]
        #derives
        #[kube(#(#kube,)* crates(#crates))]
        #item
    })
}

pub(crate) fn schema(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let arguments = Arguments::parse(arguments)?;
    arguments.expect_none()?;
    let mut item: DeriveInput = syn::parse2(item)?;
    options::skip_none(&mut item);
    let is_struct = matches!(item.data, Data::Struct(_));
    let derives = Derives::of(&item.attrs).missing(&arguments.facade, true, is_struct);
    Ok(quote!(#derives #item))
}

/// Where the code that the derive of the `kube` crate writes finds what it refers to.
fn crates(facade: &Path) -> TokenStream {
    let path = |part: &str| format!("{}::__private::{part}", quote!(#facade).to_string().replace(' ', ""));
    let (kube, core) = (path("kube"), path("kube::core"));
    let (k8s_openapi, schemars) = (path("k8s_openapi"), path("schemars"));
    let (serde, serde_json) = (path("serde"), path("serde_json"));
    quote! {
        kube = #kube,
        kube_core = #core,
        k8s_openapi = #k8s_openapi,
        schemars = #schemars,
        serde = #serde,
        serde_json = #serde_json
    }
}
