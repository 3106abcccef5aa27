use crate::kind::row::kind;
use crate::{Kind, Verbs};

pub(crate) const KIND: Kind = kind("", "v1", "Binding", "bindings", "binding").verbs(Verbs::CreateOnly);
