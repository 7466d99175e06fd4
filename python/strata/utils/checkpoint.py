"""Activation checkpointing: a region keeps its inputs alone, and backward computes what it needs of the rest again.

Without reentrance (the recommended way) every tensor that the region saves for backward is replaced by a holder; the
first holder that a backward pass opens runs the region again, and the tensors that it saves this time, in the same
order, stand for the holders until they are used or the pass ends. The inputs are kept as saved tensors themselves, so a checkpoint inside another one leaves them to
the outer.
"""

import functools
import os
import sys
import threading
import warnings
import weakref
from contextlib import contextmanager, nullcontext

import strata
from strata import _C, _lazy
from strata.utils._surroundings import Surroundings, get_device_states, set_device_states

__all__ = [
    "CheckpointError",
    "checkpoint",
    "checkpoint_sequential",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

_early_stop = None
_debug = None
_here = threading.local()  # packed: what the innermost run has saved, where someone asks; pack: how the innermost run saves a tensor

_SELECTIVE = {"._selective": "CheckpointPolicy SelectiveCheckpointContext create_selective_checkpoint_contexts"}
__all__ += _lazy.listed(_SELECTIVE)
__getattr__, __dir__ = _lazy.of(globals(), _SELECTIVE)


class CheckpointError(RuntimeError):
    """The second run of a checkpointed region saved other tensors than the first."""


class _Stop(BaseException):
    """Ends a second run once every needed tensor is there. Not an Exception, so that user code lets it pass."""

    def __init__(self, frame):
        self.frame = frame


@contextmanager
def set_checkpoint_early_stop(enable):
    """Whether a region's second run ends with the last tensor it needs, over what `checkpoint` is told."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled):
    """Whether errors tell where each tensor was saved, over what `checkpoint` is told; None leaves it to that."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


def noop_context_fn():
    """The default `context_fn`: no context for either run."""
    return nullcontext(), nullcontext()


def _metadata(t):
    return {"shape": tuple(t.shape), "dtype": t.dtype, "device": t.device}


_CHECKS = {"default": _metadata, "none": None}


@contextmanager
def packing():
    """The tensors that the innermost region saves inside the block, as a list."""
    before, _here.packed = getattr(_here, "packed", None), []
    try:
        yield _here.packed
    finally:
        _here.packed = before


@contextmanager
def _packs_with(function):
    before, _here.pack = getattr(_here, "pack", None), function
    try:
        yield
    finally:
        _here.pack = before


def pack(t):
    """Saves a tensor as the innermost run of a region does."""
    _here.pack(t)


class _Holder:
    """What the graph keeps in place of a saved tensor."""

    __slots__ = ("__weakref__", "frame")

    def __init__(self, frame):
        self.frame = frame


def _keeper_function():
    class KeepInputs(strata.autograd.Function):
        """Saves the inputs of a region under whatever hooks are active around it."""

        @staticmethod
        def forward(ctx, anchor, *tensors):
            ctx.save_for_backward(*tensors)
            return anchor.new_empty(())

        @staticmethod
        def backward(ctx, grad):
            raise AssertionError("KeepInputs is never part of a backward pass")

    return KeepInputs


_keeper = None


def _keep(tensors):
    """A function that returns `tensors`, which are meanwhile saved tensors of the graph."""
    global _keeper
    _keeper = _keeper or _keeper_function()
    node = _keeper.apply(strata.empty(0, requires_grad=True), *tensors).grad_fn
    return lambda: node.saved_tensors


class _Frame:
    """One call of a checkpointed function."""

    def __init__(self, function, args, kwargs, metadata, early_stop, debug, surroundings, again):
        self.function, self.kwargs = function, kwargs
        self.metadata, self.early_stop, self.debug = metadata, early_stop, debug
        self.surroundings, self.again = surroundings, again
        self.places = [i for i, a in enumerate(args) if isinstance(a, strata.Tensor)]
        self.constants = [None if isinstance(a, strata.Tensor) else a for a in args]
        self.tensors = _keep([args[i] for i in self.places])
        self.holders = []
        self.facts = []
        self.lines = []
        self.done = False
        # The backward pass that ran last, and what its second run brought back and no one has taken yet, by holder. It ends
        # with the pass: what the region reads may have changed by the next one.
        self.found = None, {}

    # First run

    def pack(self, t):
        packed = getattr(_here, "packed", None)
        if packed is not None:
            packed.append(t)
        holder = _Holder(self)
        self.holders.append(weakref.ref(holder))
        self.facts.append(self.metadata(t) if self.metadata else None)
        if self.debug:
            self.lines.append(_user_line())
        return holder

    @staticmethod
    def unpack(holder):
        value = holder.frame.brought_back(holder)
        if value is None:
            raise CheckpointError("checkpoint: the second run did not bring back a tensor that backward needs")
        return value

    # Second run

    def brought_back(self, holder):
        """The holder's tensor of this backward pass; outside of one, of a run for this tensor alone."""
        now = _C._current_graph_task_id()
        if now == -1:
            return self.run_again().get(holder)
        backward, found = self.found
        if backward != now or holder not in found:
            found = self.run_again()
            self.found = now, found
            _C._queue_backward_callback(functools.partial(_Frame.forget, weakref.ref(self), now))
        return found.pop(holder, None)

    @staticmethod
    def forget(reference, backward):
        frame = reference()
        if frame is not None and frame.found[0] == backward:
            frame.found = None, {}

    def run_again(self):
        """What the region saves, run once more, by holder."""
        args = list(self.constants)
        for i, t in zip(self.places, self.tensors(), strict=True):
            args[i] = t.detach().requires_grad_(t.requires_grad)
        run = _SecondRun(self)
        try:
            with (
                _packs_with(run.pack),
                strata.enable_grad(),
                strata.autograd.graph.saved_tensors_hooks(run.pack, _same),
                self.surroundings.restored(),
                self.again,
            ):
                self.function(*args, **self.kwargs)
        except _Stop as stop:
            if stop.frame is not self:
                raise
        run.check()
        return run.found


class _SecondRun:
    def __init__(self, frame):
        self.frame = frame
        self.found = weakref.WeakKeyDictionary()
        self.count = 0
        self.excess = False
        self.differences = []
        self.lines = []

    def pack(self, t):
        frame, index = self.frame, self.count
        self.count += 1
        if frame.debug:
            self.lines.append(_user_line())
        if index >= len(frame.holders):
            # A backward inside the region's first run is still to save more; afterwards it is a mismatch.
            self.excess = frame.done
            return t
        holder = frame.holders[index]()
        t = t.detach()
        if holder is not None:
            self.found[holder] = t
            if frame.metadata:
                fresh = frame.metadata(t)
                if fresh != frame.facts[index]:
                    self.differences.append((index, frame.facts[index], fresh))
        if frame.early_stop and self.count == len(frame.holders):
            raise _Stop(frame)
        return t

    def check(self):
        frame = self.frame
        if self.differences:
            lines = [
                f"tensor at position {i}:\nsaved metadata: {old}\nrecomputed metadata: {new}\n"
                for i, old, new in self.differences
            ]
            raise CheckpointError(
                "checkpoint: Recomputed values for the following tensors have different metadata than during the "
                "forward pass.\n" + "".join(lines) + self._story()
            )
        if self.excess or self.count < len(frame.holders):
            raise CheckpointError(
                "checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(frame.holders)}\n"
                f"Number of tensors saved during recomputation: {self.count}.\n" + self._story()
            )

    def _story(self):
        """Where the two runs part, or how to see that."""
        if not self.frame.debug:
            return "The region must compute the same twice; debug=True shows where the two runs part.\n"
        pairs = list(zip(self.frame.lines, self.lines, strict=False))
        at = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
        rows = [f"  {i}: {line}" for i, line in enumerate(self.frame.lines)]
        again = [f"  {i}: {line}" for i, line in enumerate(self.lines)]
        return (
            f"The runs part at tensor {at}.\nSaved by the original forward:\n"
            + "\n".join(rows)
            + "\nSaved by the recomputation:\n"
            + "\n".join(again)
            + "\n"
        )


def _same(t):
    return t


_HOME = os.path.dirname(strata.__file__)


def _user_line():
    """The innermost line outside this library."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_HOME, __file__)):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    preserve_rng_state=True,
    **kwargs,
):
    """`function(*args, **kwargs)`, whose intermediate results are computed again in backward instead of kept.

    Args:
        use_reentrant: False is recommended; True runs a backward inside backward, supports neither keyword arguments
            nor `autograd.grad`, and needs an input with `requires_grad`. Left out it warns and means True.
        preserve_rng_state: the second run draws the same random numbers.
        context_fn: returns the contexts for the first and the second run.
        determinism_check: "default" compares shape, dtype and device of what the two runs save, "none" nothing.
        debug: errors tell where each tensor was saved.
        early_stop: the second run ends with the last tensor that is needed.

    Raises:
        CheckpointError: in backward, if the second run saves other tensors.
        RuntimeError: the context of the first run suppresses an error of the region.
        ValueError: arguments that use_reentrant=True does not support; an unknown determinism_check.
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint: pass use_reentrant explicitly; use_reentrant=False is recommended, True is what leaving it "
            "out means",
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}; use_reentrant=False supports them")
        if context_fn is not noop_context_fn or debug:
            raise ValueError("checkpoint: context_fn and debug are only supported with use_reentrant=False")
        return _reentrant_function().apply(function, preserve_rng_state, *args)
    if determinism_check not in _CHECKS:
        raise ValueError(
            f"checkpoint: determinism_check should be one of {list(_CHECKS)}, but got {determinism_check!r}"
        )
    first, again = context_fn()
    recording = strata._C._recording()
    # Of a program that is exported what a run saves is its own business.
    if not strata.is_grad_enabled() or (recording is not None and recording[1]):
        with first:
            return function(*args, **kwargs)
    frame = _Frame(
        function,
        args,
        kwargs,
        _CHECKS[determinism_check],
        early_stop if _early_stop is None else _early_stop,
        debug if _debug is None else _debug,
        Surroundings((args, kwargs), preserve_rng_state),
        again,
    )
    with _packs_with(frame.pack), strata.autograd.graph.saved_tensors_hooks(frame.pack, frame.unpack), first:
        result = function(*args, **kwargs)
        frame.done = True
    if not frame.done:
        raise RuntimeError(
            "checkpoint: the context of context_fn for the first run suppressed an error of the region, which has no result"
        )
    return result


_reentrant = None


def _reentrant_function():
    global _reentrant
    if _reentrant is None:
        _reentrant = _make_reentrant()
    return _reentrant


def _make_reentrant():
    class CheckpointFunction(strata.autograd.Function):
        @staticmethod
        def forward(ctx, function, preserve_rng_state, *args):
            if not any(isinstance(a, strata.Tensor) and a.requires_grad for a in args):
                warnings.warn(
                    "checkpoint: no input has requires_grad=True, so all gradients will be None", stacklevel=4
                )
            ctx.function = function
            ctx.surroundings = Surroundings(args, preserve_rng_state)
            ctx.places = [i for i, a in enumerate(args) if isinstance(a, strata.Tensor)]
            ctx.constants = [None if isinstance(a, strata.Tensor) else a for a in args]
            ctx.save_for_backward(*(args[i] for i in ctx.places))
            with strata.no_grad():
                return function(*args)

        @staticmethod
        def backward(ctx, *grads):
            if not strata.autograd._is_checkpoint_valid():
                raise RuntimeError(
                    "checkpoint: use_reentrant=True works neither with autograd.grad nor with the inputs argument of "
                    "backward; use_reentrant=False does"
                )
            args = list(ctx.constants)
            for i, t in zip(ctx.places, ctx.saved_tensors, strict=True):
                args[i] = t.detach().requires_grad_(t.requires_grad)
            with strata.enable_grad(), ctx.surroundings.restored():
                results = ctx.function(*args)
            results = results if isinstance(results, tuple) else (results,)
            live = [
                (r, g) for r, g in zip(results, grads, strict=True) if isinstance(r, strata.Tensor) and r.requires_grad
            ]
            if not live:
                raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
            strata.autograd.backward(*map(list, zip(*live, strict=True)))
            return None, None, *(a.grad if isinstance(a, strata.Tensor) else None for a in args)

    return CheckpointFunction


def checkpoint_sequential(functions, segments, input, use_reentrant=None, preserve_rng_state=True):
    """Applies `functions` (a Sequential or a list) one after the other, all but the last of `segments` equal groups
    checkpointed. The arguments are those of `checkpoint`.

    Raises:
        ValueError: segments is not between 1 and the number of functions.
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint_sequential: pass use_reentrant explicitly; use_reentrant=False is recommended, True is what "
            "leaving it out means",
            stacklevel=2,
        )
        use_reentrant = True
    functions = list(functions.children()) if isinstance(functions, strata.nn.Sequential) else list(functions)
    if not 1 <= segments <= max(1, len(functions)):
        raise ValueError(
            f"checkpoint_sequential: segments must lie in [1, {len(functions)}] for {len(functions)} functions, "
            f"got {segments}"
        )

    def chain(part):
        def run(x):
            for f in part:
                x = f(x)
            return x

        return run

    size = len(functions) // segments
    for start in range(0, size * (segments - 1), size):
        part = chain(functions[start : start + size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return chain(functions[size * (segments - 1) :])(input)
