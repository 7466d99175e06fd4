"""Selective activation checkpointing: a checkpointed region keeps the results of some operators, and computes the rest again.

The first run notes, of each call that is kept, its results and which tensors it saved for backward. The second run does not do
the call: it gives the results that were kept, and packs the same tensors, found among that call's arguments and results.
"""

from __future__ import annotations

import enum
import functools

import strata
from strata import Tensor, ops
from strata.utils import checkpoint
from strata.utils._python_dispatch import TorchDispatchMode
from strata.utils._pytree import tree_flatten, tree_map

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's results. PREFER_... is as MUST_...: there is no compiler that knows better; ..._CPU_OFFLOAD, which
    is for one, is as RECOMPUTE."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told: op_output, what the operator gave. It is asked in the first run, so that is_recompute is False."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


@functools.cache
def _written_as() -> dict[Any, tuple]:
    """Operators of PyTorch's by which policies name what is one operator here: it shows a mode what these are made of."""
    aten = ops.aten
    convolutions = {getattr(aten, f"conv{n}d").default: (aten.convolution.default,) for n in (1, 2, 3)}
    return {
        aten.linear.default: (aten.addmm.default, aten.mm.default),
        aten.matmul.default: (aten.mm.default, aten.bmm.default, aten.mv.default),
        aten.scaled_dot_product_attention.default: (aten._scaled_dot_product_flash_attention_for_cpu.default,),
        **convolutions,
    }


class _Call:
    """A call whose results are kept. saved: of each tensor that it saved for backward: ("argument" or "result", place), or
    ("tensor", it). states: of the generators after it, if it drew."""

    def __init__(self, results: Any, saved: list, states: list[Tensor] | None) -> None:
        self.results, self.saved, self.states = results, saved, states
        self.versions = [t._version for t in _tensors(results)]


_USED = object()  # in the place of a call whose results the second run has taken


def _generators() -> tuple:
    return strata.default_generator, *strata.random._of_devices()


def _tensors(nest: Any) -> list[Tensor]:
    return [leaf for leaf in tree_flatten(nest)[0] if isinstance(leaf, Tensor)]


def _same(a: Tensor, b: Tensor) -> bool:
    if a is b:
        return True
    alike = a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride() and a.device == b.device
    return alike and not a.is_meta and a.storage_offset() == b.storage_offset() and a.untyped_storage()._cdata == b.untyped_storage()._cdata


class _Kept(strata.autograd.Function):
    """A kept result in the second run: it needs a gradient as the first one did, and has no history."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, kept: Tensor) -> Tensor:
        return kept.view_as(kept)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        raise NotImplementedError("selective checkpoint: a backward inside of the region, through an operator whose results are kept")


class _First(TorchDispatchMode):
    """The first run. calls: of each operator its calls, None for those that are computed again."""

    def __init__(self, policy: Callable, calls: dict[Any, list]) -> None:
        self.policy, self.calls = policy, calls

    def keeps(self, func: Any, args: tuple, kwargs: dict[str, Any], out: Any) -> bool:
        context = SelectiveCheckpointContext(is_recompute=False, op_output=out)
        for op in (func, *_written_as().get(func, ())):
            found = self.policy(context, op, *args, **kwargs)
            if not isinstance(found, (CheckpointPolicy, bool)):
                raise RuntimeError(f"selective checkpoint: expected the policy to give a CheckpointPolicy or a bool, got {found!r}")
            if found in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, True):
                return True
        return False

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func is ops.aten.detach.default:  # a second run has other ones: of what checkpoint itself saves
            return func(*args, **kwargs)
        before = [generator.get_state() for generator in _generators()]
        with checkpoint.packing() as packed:
            out = func(*args, **kwargs)
        call = None
        if self.keeps(func, args, kwargs, out):
            if func._schema.is_mutable:
                raise RuntimeError(f"selective checkpoint: {func} writes its arguments, so that its results cannot be kept")
            now = [generator.get_state() for generator in _generators()]
            given, made = _tensors((args, kwargs)), _tensors(out)
            saved = [next((("argument", i) for i, a in enumerate(given) if _same(a, t)), None)
                     or next((("result", i) for i, r in enumerate(made) if _same(r, t)), ("tensor", t)) for t in packed]  # fmt: skip
            results = tree_map(lambda leaf: (leaf.detach(), leaf.requires_grad) if isinstance(leaf, Tensor) else leaf, out)
            call = _Call(results, saved, None if all(map(strata.equal, before, now)) else now)
        self.calls.setdefault(func, []).append(call)
        return out


class _Second(TorchDispatchMode):
    """A second run, which takes each operator's calls in their order."""

    def __init__(self, calls: dict[Any, list], mutation: bool) -> None:
        self.calls, self.mutation = calls, mutation

    def __enter__(self) -> TorchDispatchMode:
        self.done = dict.fromkeys(self.calls, 0)
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func is ops.aten.detach.default:
            return func(*args, **kwargs)
        place = self.done.get(func, 0)
        if place >= len(self.calls.get(func, ())):
            raise RuntimeError(
                f"selective checkpoint: the second run calls {func} more often than the first one did: the region must compute the same twice"
            )
        self.done[func], call = place + 1, self.calls[func][place]
        if call is None:
            return func(*args, **kwargs)
        if call is _USED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under selective activation "
                f"checkpoint (the results of {func} that were kept are used up)."
            )
        self.calls[func][place] = _USED
        kept = _tensors(call.results)
        if not self.mutation and [t._version for t in kept] != call.versions:
            raise RuntimeError(
                f"Tensor cached during selective activation checkpoint has been mutated: a result of {func} was written in place. Let the "
                "policy recompute it, or pass allow_cache_entry_mutation=True"
            )
        places = {"argument": _tensors((args, kwargs)), "result": kept}
        for kind, place in call.saved:
            checkpoint.pack(place if kind == "tensor" else places[kind][place])
        for generator, state in zip(_generators(), call.states or (), strict=False):
            generator.set_state(state)
        return _given(call.results)


def _given(results: Any) -> Any:
    """Kept results as the call gave them."""
    if isinstance(results, tuple) and len(results) == 2 and isinstance(results[0], Tensor) and isinstance(results[1], bool):
        t, needs_grad = results
        return _Kept.apply(strata.empty(0, requires_grad=True), t) if needs_grad else t
    if isinstance(results, (tuple, list)):
        return type(results)(map(_given, results))
    return results


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> tuple[Any, Any]:
    """The two contexts that `checkpoint(context_fn=...)` takes, of a policy: pass `functools.partial(this, policy)`.

    policy_fn_or_list: a function (context, operator, *args, **kwargs) -> CheckpointPolicy or bool, or a list of operators (OpOverloads)
    whose results are kept. It is asked once, in the first run, of each operator that the region calls except detach; of `linear`,
    `matmul` and convolutions by the names of what PyTorch makes them of, too. Kept results are used once: a second backward through
    them raises. TypeError for other policies; in the region RuntimeError for a kept operator that writes its arguments, and in backward
    where the second run calls other operators.
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, strata._C.OpOverload):
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op!r} of type {type(op).__name__}; write op.default")
        wanted = frozenset(policy_fn_or_list)

        def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in wanted else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    calls: dict[Any, list] = {}
    return _First(policy, calls), _Second(calls, allow_cache_entry_mutation)
