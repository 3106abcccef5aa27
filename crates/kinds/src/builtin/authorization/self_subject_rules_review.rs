use crate::kind::row::kind;
use crate::{Kind, Verbs};

pub(crate) const KIND: Kind = kind(
    "authorization.k8s.io",
    "v1",
    "SelfSubjectRulesReview",
    "selfsubjectrulesreviews",
    "selfsubjectrulesreview",
)
.cluster_wide()
.verbs(Verbs::CreateOnly);
