use crate::kind::row::kind;
use crate::{Kind, Verbs};

pub(crate) const KIND: Kind =
    kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", "tokenreview")
        .cluster_wide()
        .verbs(Verbs::CreateOnly);
