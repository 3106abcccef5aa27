use crate::Kind;
use crate::kind::row::{TOKEN, kind};

pub(crate) const KIND: Kind = kind("", "v1", "ServiceAccount", "serviceaccounts", "serviceaccount")
    .short(&["sa"])
    .with(&[TOKEN])
    .returns_deleted();
