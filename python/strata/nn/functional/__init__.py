"""Functions of strata.nn: the operators behind the layers, by PyTorch's names.

A name is loaded on first use: functions from the family files beside this one, operators that need no Python around
them straight from the table. Families and their names are listed below; `dir()` shows all.
"""

from __future__ import annotations

from strata import _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_FAMILIES = {
    "activation": (
        "celu elu glu gumbel_softmax hardsigmoid hardswish hardtanh leaky_relu log_softmax mish relu relu6 rrelu rrelu_ selu "
        "sigmoid silu softmax softmin softsign tanh tanhshrink threshold"
    ),
    "attention": "multi_head_attention_forward _canonical_mask _none_or_dtype",  # copies of PyTorch's modules call the latter
    "distance": "cosine_similarity normalize pairwise_distance",
    "dropout": "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout",
    "grid": "affine_grid grid_sample",
    "grouped": "grouped_mm",
    "loss": (
        "binary_cross_entropy binary_cross_entropy_with_logits cross_entropy gaussian_nll_loss huber_loss kl_div "
        "l1_loss linear_cross_entropy mse_loss multilabel_soft_margin_loss nll_loss poisson_nll_loss smooth_l1_loss "
        "soft_margin_loss"
    ),
    "loss_ctc": "ctc_loss",
    "loss_margin": (
        "cosine_embedding_loss hinge_embedding_loss margin_ranking_loss triplet_margin_loss "
        "triplet_margin_with_distance_loss"
    ),
    "loss_multi": "multi_margin_loss multilabel_margin_loss",
    "norm": "batch_norm group_norm instance_norm layer_norm local_response_norm rms_norm",
    "pooling": (
        "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool1d_with_indices "
        "adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d "
        "adaptive_max_pool3d_with_indices lp_pool1d lp_pool2d lp_pool3d max_pool1d max_pool1d_with_indices max_pool2d "
        "max_pool2d_with_indices max_pool3d max_pool3d_with_indices"
    ),
    "pooling_fractional": (
        "fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d "
        "fractional_max_pool3d_with_indices"
    ),
    "resample": "interpolate upsample upsample_bilinear upsample_nearest",
    "sparse": "embedding embedding_bag",
    "unpooling": "max_unpool1d max_unpool2d max_unpool3d",
    "vision": "channel_shuffle fold pad unfold",
}
# Names that are operators of the table as they stand, and the one that is called otherwise there.
_OPERATOR_NAMES = (
    "adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear celu_ conv1d conv2d conv3d conv_transpose1d "
    "conv_transpose2d conv_transpose3d elu_ gelu hardshrink hardtanh_ leaky_relu_ linear one_hot pdist "
    "pixel_shuffle pixel_unshuffle prelu relu_ scaled_dot_product_attention selu_ softplus softshrink threshold_"
)
_OPERATORS = {name: name for name in _OPERATOR_NAMES.split()} | {"logsigmoid": "log_sigmoid"}

__all__ = [*(name for name in _lazy.listed(_FAMILIES) if not name.startswith("_")), *_OPERATORS]


def _operator(name: str) -> Callable:
    wanted = _OPERATORS[name]
    from .. import _ops

    return getattr(_ops, wanted)


__getattr__, __dir__ = _lazy.of(globals(), _FAMILIES, otherwise=_operator, public=True)
