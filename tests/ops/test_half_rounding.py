"""Contract 1: what is composed of several operators is rounded to a half type once, as if it had been computed in float32."""

from __future__ import annotations

import pytest
import strata
from strata.nn import functional as F

PAIRS = {
    "l1_loss": lambda a, b, w: F.l1_loss(a, b),
    "binary_cross_entropy": lambda a, b, w: F.binary_cross_entropy(a, b),
    "binary_cross_entropy weighted": lambda a, b, w: F.binary_cross_entropy(a, b, w, reduction="none"),
    "binary_cross_entropy_with_logits": lambda a, b, w: F.binary_cross_entropy_with_logits(a, b),
    "binary_cross_entropy_with_logits weighted": lambda a, b, w: F.binary_cross_entropy_with_logits(a, b, w, reduction="none"),
    "binary_cross_entropy_with_logits positive": lambda a, b, w: F.binary_cross_entropy_with_logits(a, b, pos_weight=w),
    "kl_div": lambda a, b, w: F.kl_div(a, b, reduction="none"),
    "kl_div of logarithms": lambda a, b, w: F.kl_div(a, b, reduction="sum", log_target=True),
    "poisson_nll_loss": lambda a, b, w: F.poisson_nll_loss(a, b, full=True, reduction="none"),
    "soft_margin_loss": lambda a, b, w: F.soft_margin_loss(a, b, reduction="none"),
    "hinge_embedding_loss": lambda a, b, w: F.hinge_embedding_loss(a, (b > 0.5) * 2.0 - 1),
    "margin_ranking_loss": lambda a, b, w: F.margin_ranking_loss(a, b, w),
    "triplet_margin_loss": lambda a, b, w: F.triplet_margin_loss(a, b, w),
    "cosine_embedding_loss": lambda a, b, w: F.cosine_embedding_loss(a, b, strata.ones(a.shape[0])),
    "cosine_similarity": lambda a, b, w: F.cosine_similarity(a, b),
    "pairwise_distance": lambda a, b, w: F.pairwise_distance(a, b),
    "cross": lambda a, b, w: strata.linalg.cross(a[:, :3], b[:, :3]),
}


@pytest.mark.parametrize("dtype", [strata.bfloat16, strata.float16], ids=str)
@pytest.mark.parametrize("name", PAIRS)
def test_one_rounding(name, dtype):
    strata.manual_seed(3)
    a, b, w = (strata.rand(40, 8).to(dtype) for _ in "abw")
    f = PAIRS[name]
    for rows in range(0, 40, 8):  # a reduced one has few elements to differ in
        given = [t[rows : rows + 8] for t in (a, b, w)]
        narrow, wide = f(*given), f(*(t.float() for t in given))
        assert narrow.dtype == dtype and strata.equal(narrow, wide.to(dtype))
    f(a.requires_grad_(), b, w).sum().backward()
    assert a.grad.dtype == dtype
