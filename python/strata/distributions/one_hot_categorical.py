"""The categorical distribution whose samples are rows of zeros with a single 1."""

from __future__ import annotations

import strata
import strata.nn.functional as F
from strata import Tensor

from . import constraints
from .categorical import ByClass, Categorical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(ByClass):
    """A Categorical whose samples are rows of zeros with a single 1, (*, classes)."""

    support = constraints.one_hot

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self._event_shape = strata.Size([self._classes])

    @property
    def _categorical(self) -> Categorical:
        made = Categorical.__new__(Categorical)
        made.__dict__.update({**self.__dict__, "_event_shape": strata.Size(())})
        return made

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return F.one_hot(self.probs.argmax(dim=-1), self._classes).to(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return F.one_hot(self._categorical.sample(sample_shape), self._classes).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        return self._categorical.log_prob(value.argmax(-1))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._classes
        values = strata.eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view(n, *[1] * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose rsample passes gradients to probs as if it were them. Source: arXiv:1308.3432."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
