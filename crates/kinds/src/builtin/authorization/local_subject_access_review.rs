use crate::kind::row::kind;
use crate::{Kind, Verbs};

pub(crate) const KIND: Kind = kind(
    "authorization.k8s.io",
    "v1",
    "LocalSubjectAccessReview",
    "localsubjectaccessreviews",
    "localsubjectaccessreview",
)
.verbs(Verbs::CreateOnly);
