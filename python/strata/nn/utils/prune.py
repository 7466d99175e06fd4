"""Pruning: masks over parameters. A pruned `<name>` is `<name>_orig` (the parameter) times `<name>_mask` (a buffer),
computed before each forward. Sizes of what goes: an int counts elements, a float between 0 and 1 is their share.
"""

from __future__ import annotations

import strata
from strata import Tensor

from ..modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


def _check_amount(amount: Any) -> None:
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (isinstance(amount, float) and amount > 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0.0, 1.0] or a non-negative integer")


def _count(amount: float, size: int) -> int:
    """How many of `size` go. ValueError for more than there are."""
    if not isinstance(amount, int):
        return round(amount * size)
    if amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return amount


class BasePruningMethod:
    """A subclass gives `compute_mask(tensor, default_mask)`: the mask after it, of zeros and ones.

    PRUNING_TYPE: "unstructured" looks at what is left of the tensor, "structured" at the slices left, "global" at all.
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} defines no compute_mask(t, default_mask)")

    def apply_mask(self, module: Module) -> Tensor:
        """The pruned parameter."""
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(original.dtype) * original

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """t times the mask; importance_scores decide in place of t."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        mask = strata.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, mask)

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prunes `module.<name>`, further where it is pruned already, and gives the hook."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        present = _hook_of(module, name)
        tensor = getattr(module, name)
        scores = tensor.detach() if importance_scores is None else importance_scores
        if scores.shape != tensor.shape:
            raise AssertionError("importance_scores should have the same shape as the parameter")
        if present is None:
            before, hook = strata.ones_like(module._parameters[name].detach()), method
        else:
            before = getattr(module, name + "_mask")
            chain = present[1].methods if isinstance(present[1], PruningContainer) else [present[1]]
            hook = PruningContainer(*chain, method)
        with strata.no_grad():
            mask = hook.compute_mask(scores, before).to(before.dtype)
        strata.broadcast_shapes(mask.shape, tensor.shape)  # RuntimeError where they do not fit
        # Nothing was changed up to here: what is refused leaves the module as it was.
        if present is None:
            module.register_parameter(name + "_orig", module._parameters.pop(name))
        else:
            del module._forward_pre_hooks[present[0]]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, hook.apply_mask(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Makes the pruning permanent: `<name>` is a parameter again, `<name>_orig` and the mask are gone."""
        name = self._tensor_name
        with strata.no_grad():
            weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Methods one after the other on the same parameter."""

    PRUNING_TYPE = "container"

    def __init__(self, *methods: BasePruningMethod) -> None:
        self.methods = list(methods)
        self._tensor_name = methods[0]._tensor_name

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self.methods)

    def __len__(self) -> int:
        return len(self.methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self.methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The last method's mask on what the present mask leaves."""
        method = self.methods[-1]
        mask = default_mask.to(t.dtype)
        if method.PRUNING_TYPE == "global":
            return method.compute_mask(t, mask)
        if method.PRUNING_TYPE == "unstructured":
            left = mask == 1
        else:
            dim = method.dim % t.dim()
            kept = mask.movedim(dim, 0).flatten(1).sum(1) != 0
            left = kept.reshape([-1 if d == dim else 1 for d in range(t.dim())]).expand_as(mask)
            shape = [int(kept.sum()) if d == dim else n for d, n in enumerate(t.shape)]
            result = mask.clone()
            result[left] = method.compute_mask(t[left].reshape(shape), mask[left].reshape(shape)).reshape(-1)
            return result
        result = mask.clone()
        result[left] = method.compute_mask(t[left], mask[left])
        return result


class Identity(BasePruningMethod):
    """Prunes nothing: gives the parameter its mask."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _Unstructured(BasePruningMethod):
    def __init__(self, amount: float) -> None:
        _check_amount(amount)
        self.amount = amount

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        mask = default_mask.clone(memory_format=strata.contiguous_format)
        count = _count(self.amount, t.numel())
        if count:
            mask.view(-1)[self._scores(t).reshape(-1).topk(count, largest=False).indices] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Elements by chance."""

    def _scores(self, t: Tensor) -> Tensor:
        return strata.rand(t.shape, device=t.device)


class L1Unstructured(_Unstructured):
    """The elements of least absolute value."""

    def _scores(self, t: Tensor) -> Tensor:
        return t.abs()


class _Structured(BasePruningMethod):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.dim = dim

    def _scores(self, slices: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.dim()} dims"
            )
        size = t.size(self.dim)
        count = _count(self.amount, size)
        if not count:
            return default_mask
        kept = self._scores(t.movedim(self.dim, 0).flatten(1)).topk(size - count).indices
        mask = strata.zeros(size, dtype=default_mask.dtype, device=t.device).index_fill_(0, kept, 1)
        dim = self.dim % t.dim()
        return default_mask * mask.reshape([-1 if d == dim else 1 for d in range(t.dim())])


class RandomStructured(_Structured):
    """Slices along dim by chance."""

    def _scores(self, slices: Tensor) -> Tensor:
        return strata.rand(slices.size(0), device=slices.device)


class LnStructured(_Structured):
    """The slices along dim of least n-norm."""

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, slices: Tensor) -> Tensor:
        return strata.norm(slices, p=self.n, dim=1)


class CustomFromMask(BasePruningMethod):
    """A mask that the caller gives."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask * self.mask.to(default_mask.dtype)


def _hook_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


def identity(module: Module, name: str) -> Module:
    """Gives the parameter a mask of ones; the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prunes elements by chance; the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prunes the elements of least absolute value (or importance); the module."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prunes slices along dim by chance; the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prunes the slices along dim of least n-norm; the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prunes where the mask is 0; the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes the elements that the method picks from all (module, name) parameters together."""
    parameters = list(parameters)
    given = importance_scores or {}
    vectors = [given.get((module, name), getattr(module, name)).detach().reshape(-1) for module, name in parameters]
    masks = [
        getattr(module, name + "_mask", strata.ones_like(getattr(module, name).detach())) for module, name in parameters
    ]
    scores, before = strata.cat(vectors), strata.cat([mask.reshape(-1) for mask in masks])
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    left = before == 1
    after = before.clone()
    after[left] = method.compute_mask(scores[left], before[left])
    for (module, name), mask, part in zip(parameters, masks, after.split([m.numel() for m in masks]), strict=True):
        custom_from_mask(module, name, part.view_as(mask))


def remove(module: Module, name: str) -> Module:
    """Makes the pruning of a parameter permanent; the module. ValueError where it is not pruned."""
    found = _hook_of(module, name)
    if found is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    found[1].remove(module)
    del module._forward_pre_hooks[found[0]]
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module, or of one below it, is pruned."""
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())
