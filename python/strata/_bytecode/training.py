"""backward(), autograd.grad and steps of optimisers inside of what is captured."""

from __future__ import annotations

import strata
from strata import _C, _capture, autograd

from . import instances, values
from .reasons import Break, Control
from .sizes import concrete

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _check_history(tracer: Any, roots: Any) -> None:
    """That a backward stays within what was captured, and is nobody's to answer."""
    if tracer.who_is_asked((roots,), {}):
        raise Break("a backward of a tensor whose class has __torch_function__")
    for t in roots if isinstance(roots, (list, tuple)) else (roots,):
        if not values.is_tensor(t) or not tracer.region.made(t):
            raise Break("a backward of a tensor from outside")
    if _C._recording_histories(tracer.region.recording)[1]:
        raise Break("a backward that goes on outside of what is captured", "detach() what comes from outside, or run backward() outside")


def _backward(tracer: Any, args: tuple, kwargs: dict, f: Any) -> Any:
    _check_history(tracer, args[0])
    tracer.say_where()
    for value in (*args[1:], *kwargs.values()):
        tracer.check_operand(value, "backward")
    tracer.do(instances.backward, args, kwargs)
    args, kwargs = concrete((args, kwargs))
    try:
        tracer.library.call(strata.Tensor.backward, args, kwargs)
    except Exception as error:
        raise Break(f"backward raised {type(error).__name__}: {error}") from None
    tracer.trained = True


def _grad(tracer: Any, args: tuple, kwargs: dict, f: Any) -> Any:
    _check_history(tracer, args[0] if args else kwargs["outputs"])
    for value in (*args, *kwargs.values()):
        tracer.check_operand(value, "grad")
    try:
        found = tracer.library.call(autograd.grad, concrete(args), concrete(kwargs))
    except Control:
        raise
    except Exception as error:
        raise Break(f"autograd.grad raised {type(error).__name__}: {error}") from None
    tracer.keep.append(found)
    if tracer.program is not None:
        return tracer.program.operator(autograd.grad, args, kwargs, found, (), "grad")
    return found


class Spent(autograd.Function):
    """The history of a result whose backward was captured with it."""

    @staticmethod
    def forward(ctx: Any, t: Any, leaf: Any) -> Any:
        ctx.mark_dirty(t)
        return t

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        raise RuntimeError(
            "Trying to backward through the graph a second time: the backward of this result of a compiled function ran inside of it. "
            "Run backward() outside of what is compiled to go through it again (with retain_graph=True)."
        )


def spent(results: tuple, places: tuple[int, ...]) -> list:
    """A graph's results; those that have used up their history require a gradient as they do in eager."""
    found = list(results)
    if _C.is_grad_enabled():
        leaf = strata.empty((), requires_grad=True)
        for i in places:
            if not found[i].requires_grad:
                found[i] = Spent.apply(found[i], leaf)
    return found


def is_optimizer(value: Any) -> bool:
    import sys

    return "strata.optim" in sys.modules and isinstance(value, strata.optim.Optimizer)


def call_optimizer(tracer: Any, function: Callable, args: tuple, kwargs: dict) -> Any:
    """A method of an optimiser, as it is: it reads its groups, its state and the gradients of its parameters."""
    optimizer, name = args[0], function.__name__
    if not type(optimizer).__module__.startswith("strata.optim.") or not tracer.is_outside(optimizer):
        raise Break(f"an optimiser of the class {type(optimizer).__name__}")
    if name not in ("step", "zero_grad") or len(args) > 1 or (name == "step" and kwargs) or kwargs.get("set_to_none", True) is not True:
        raise Break(f"{type(optimizer).__name__}.{name} with these arguments")
    source = tracer.known[id(optimizer)]
    if not tracer.seen.stays(optimizer, source):
        raise Break(f"a {type(optimizer).__name__} that is another one at each call", "make optimisers outside of what is compiled")
    tracer.guards.add("is", source, optimizer)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for p in parameters:
        if not values.is_plain_tensor(p):
            raise Break(f"{type(optimizer).__name__}.{name} of a {type(p).__name__}")
    if name == "step":
        tracer.stepped.append(optimizer)
        from strata.optim import optimizer as home

        if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks or home._global_pre_hooks or home._global_post_hooks:
            raise Break(f"{type(optimizer).__name__}.step with hooks")
        without = [p for p in parameters if p.grad is None]
        for p, at in zip(parameters, sources_of(source, optimizer), strict=True):
            if p.grad is not None and not tracer.region.made(p.grad):
                load_gradient(tracer, p, at)
        if without:
            untouched = [p for p in without if id(p) not in tracer.grads_written]
            tracer.guards.add("call", None, lambda: all(p.grad is None for p in untouched))
    else:
        for p in parameters:
            note_reset(tracer, p)
        tracer.grads_written.update((id(p), p) for p in parameters)
    tracer.optimizers.append(optimizer)
    tracer.say_where()
    before = _capture.state_of(optimizer)
    tracer.do(instances.step_optimizer, optimizer, function, args, kwargs)
    error = None
    try:
        tracer.library.kinds((type(optimizer),))
        with strata.no_grad():
            tracer.library.call(function, args, kwargs)
    except Exception as raised:
        error = raised
    if _capture.restore(optimizer, before):
        keys = state_keys(optimizer, parameters)
        raise Break(
            f"{type(optimizer).__name__} makes its state at this step",
            "the next call compiles the step, or call init_state() before",
            lambda: state_keys(optimizer, parameters) == keys,
        )
    if error is not None:
        raise Break(f"{name} raised {type(error).__name__}: {error}")


def sources_of(source: Any, optimizer: Any) -> list:
    """Where an optimiser's parameters are, in order."""
    groups = source.attr("param_groups")
    return [groups.item(i).item("params").item(j) for i, group in enumerate(optimizer.param_groups) for j in range(len(group["params"]))]


def load_gradient(tracer: Any, t: Any, source: Any) -> Any:
    """The .grad that a tensor of this source has when the call begins."""
    tracer.grads_read.add((id(t), id(t.grad)))
    return tracer.load(t.grad, source.attr("grad"))


def note_reset(tracer: Any, t: Any) -> None:
    """Before t.grad becomes None: where a backward has added to it, what was there when the call began is part of the result."""
    if not tracer.is_outside(t) and tracer.region.made(t):
        return
    grad = t.grad
    if tracer.trained and grad is not None and not _C._recording_cleared(tracer.region.recording, t):
        before = None if tracer.region.made(grad) else grad
        source = tracer.known.get(id(t))
        if source is not None:
            tracer.guards.add("is", source.attr("grad"), before)
        else:
            tracer.guards.add("call", None, lambda: t.grad is before)


def call_noted(tracer: Any, function: Callable, kwargs: dict) -> Any:
    """A step that a schedule has wrapped, to know that it was called."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    optimizer = cells["reference"].cell_contents()
    if kwargs or optimizer is None or not tracer.is_outside(optimizer):
        raise Break("an optimiser's step with a closure")
    tracer.attributes[id(optimizer), "_opt_called"] = (optimizer, True)
    call_optimizer(tracer, cells["function"].cell_contents, (optimizer,), {})


def set_grad_enabled(tracer: Any, args: tuple, kwargs: dict, f: Any) -> None:
    """As a statement it lasts: what the mode is at the stretch's end is an effect of the call."""
    if len(args) != 1 or kwargs or type(args[0]) is not bool:
        raise Break("set_grad_enabled of what is not a bool")
    _C._set_grad_enabled(args[0])
    tracer.do(instances.set_grad_enabled, args[0])


def state_keys(optimizer: Any, parameters: list) -> list:
    return [tuple(optimizer.state.get(p, ())) for p in parameters]


def watch_optimizers(tracer: Any) -> None:
    """At the end of a capture, when it is known which numbers are read anew by each call."""
    from .guards import Watch

    slots = {(id(slot.group), slot.key) for slot in tracer.region.capture.slots.values()}
    for optimizer in {id(o): o for o in tracer.optimizers}.values():
        watch = Watch()
        steps = any(optimizer is o for o in tracer.stepped)
        if steps:
            from strata.optim import optimizer as home

            watch.dict(optimizer.__dict__, frozenset({"_opt_called"}))
            watch.dict(optimizer.state)
            for hooks in (optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks, home._global_pre_hooks, home._global_post_hooks):
                watch.dict(hooks)
            for state in optimizer.state.values():
                watch.dict(state)
        watch.list(optimizer.param_groups)
        for group in optimizer.param_groups:
            if steps:
                watch.dict(group, frozenset(key for at, key in slots if at == id(group)))
            watch.list(group["params"])
            for p in group["params"]:
                watch.tensor(p)
        tracer.guards.add("watch", None, watch)


SPECIAL: dict[Any, Callable] = {
    strata.Tensor.backward: _backward,
    autograd.grad: _grad,
    _C._set_grad_enabled: set_grad_enabled,
}
