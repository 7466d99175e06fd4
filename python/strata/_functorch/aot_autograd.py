"""aot_function, aot_module, aot_module_simplified: the operators of a forward and of its backward as two graphs, each for a
compiler of the program's own."""

from __future__ import annotations

import strata
from strata.fx.experimental.proxy_tensor import make_fx
from strata.utils._pytree import tree_flatten, tree_unflatten

from .compilers import called_with_list, make_boxed_compiler, make_boxed_func, nop
from .partitioners import default_partition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["aot_function", "aot_module", "aot_module_simplified", "make_boxed_compiler", "make_boxed_func", "nop"]


class Compilers:
    """What is made of the graphs; inference: where nothing needs a gradient."""

    def __init__(self, fw: Callable, bw: Callable | None, partition: Callable, inference: Callable | None, decompositions: Any):
        if decompositions:
            raise NotImplementedError("aot_autograd: decompositions is not provided; composite operators of the table are decomposed as they are")
        self.fw, self.bw, self.partition, self.inference = fw, bw or fw, partition, inference or fw


def compiled(f: Callable, args: list, compilers: Compilers) -> Callable[[list], list]:
    """f, a function of tensors that gives a list of tensors, as its graphs' compiled forms; for arguments like these."""
    args, given_args, drawn = [_like(t) for t in args], list(args), strata.get_rng_state()
    try:
        return _compiled(f, args, given_args, compilers)
    finally:
        strata.set_rng_state(drawn)


def _compiled(f: Callable, args: list, examples: list, compilers: Compilers) -> Callable[[list], list]:
    """args are written and drawn from while they are traced."""
    learned = [i for i, t in enumerate(args) if isinstance(t, strata.Tensor) and t.requires_grad]
    if not learned or not strata.is_grad_enabled():
        run = called_with_list(compilers.inference(make_fx(lambda *a: tuple(f(*a)))(*args), examples))

        def without_gradients(given: list) -> list:
            with strata.no_grad():
                return list(run(list(given)))

        return without_gradients

    facts: list = []

    def alone(*primals: Any) -> tuple:
        outputs = f(*_leaves(primals, learned))
        facts[:] = [(tuple(t.shape), t.dtype, t.device, t.requires_grad) for t in outputs]
        return tuple(outputs)

    make_fx(alone)(*args)
    differentiable = [i for i, fact in enumerate(facts) if fact[3]]
    tangents = [strata.ones(facts[i][0], dtype=facts[i][1], device=facts[i][2]) for i in differentiable]

    def joint(*flat: Any) -> tuple:
        primals = _leaves(flat[: len(args)], learned)
        outputs = f(*primals)
        ends = [outputs[i] for i in differentiable]
        grads = strata.autograd.grad(ends, [primals[i] for i in learned], flat[len(args) :], allow_unused=True) if ends else [None] * len(learned)
        return (*outputs, *grads)

    module = make_fx(joint)(*args, *tangents)
    forward, backward = compilers.partition(module, [*args, *tangents], num_fwd_outputs=len(facts), num_primals=len(args))
    run_forward = called_with_list(compilers.fw(forward, examples))
    made: dict[str, Callable] = {}

    class CompiledFunction(strata.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *given: Any) -> tuple:
            results = list(run_forward(list(given)))
            ctx.save_for_backward(*results[len(facts) :])
            outputs = results[: len(facts)]
            ctx.mark_non_differentiable(*(t for t, fact in zip(outputs, facts, strict=True) if not fact[3]))
            return tuple(outputs)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple:
            inputs = [*ctx.saved_tensors, *(grads[i].contiguous() for i in differentiable)]
            if "run" not in made:
                made["run"] = called_with_list(compilers.bw(backward, list(inputs)))
            found = iter(made["run"](inputs))
            return tuple(next(found) if i in learned else None for i in range(len(args)))

    return lambda given: list(CompiledFunction.apply(*given))


def _like(t: Any) -> Any:
    """An argument in memory of its own, of the same strides."""
    if not isinstance(t, strata.Tensor):
        return t
    made = strata.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)
    with strata.no_grad():
        return made.copy_(t).requires_grad_(t.requires_grad)


def _leaves(primals: Any, learned: list[int]) -> list:
    """The arguments, apart from what made them."""
    return [t.detach().requires_grad_(i in learned) if isinstance(t, strata.Tensor) else t for i, t in enumerate(primals)]


def aot_function(
    fn: Callable,
    fw_compiler: Callable,
    bw_compiler: Callable | None = None,
    partition_fn: Callable = default_partition,
    decompositions: dict | None = None,
    num_params_buffers: int = 0,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Callable | None = None,
    *,
    dynamic: bool = False,
) -> Callable:
    """fn, whose first call makes graphs of its forward and backward (fw_compiler(graph module, example inputs) and bw_compiler, at
    the first backward), which later calls use without a look at their arguments.

    Arguments and results are nests of tensors; what else is in them is a constant. A compiler gives a function of the
    graph's inputs that returns the list of its results. NotImplementedError for decompositions and dynamic=True.
    """
    if dynamic:
        raise NotImplementedError("aot_function: dynamic=True is not provided: sizes are those of the first call")
    compilers = Compilers(fw_compiler, bw_compiler, partition_fn, inference_compiler, decompositions)
    kept: dict[str, Any] = {}

    def returned(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        tensors = [i for i, v in enumerate(leaves) if isinstance(v, strata.Tensor)]
        if not kept:
            constants = list(leaves)

            def flat(*given: Any) -> list:
                now = list(constants)
                for i, t in zip(tensors, given, strict=True):
                    now[i] = t
                a, k = tree_unflatten(now, spec)
                found, kept["out"] = tree_flatten(fn(*a, **k))
                kept["constants"] = [None if isinstance(v, strata.Tensor) else (v,) for v in found]
                return [v for v in found if isinstance(v, strata.Tensor)]

            kept["run"] = compiled(flat, [leaves[i] for i in tensors], compilers)
        results = iter(kept["run"]([leaves[i] for i in tensors]))
        return tree_unflatten([next(results) if c is None else c[0] for c in kept["constants"]], kept["out"])

    return returned


def aot_module(mod: strata.nn.Module, *args: Any, **kwargs: Any) -> strata.nn.Module:
    """The module, its forward as aot_function makes it; parameters and buffers are inputs of the graphs, in the order of
    named_parameters() and named_buffers()."""

    def functional(named: dict, inputs: tuple, keywords: dict) -> Any:
        return strata.func.functional_call(mod, named, inputs, keywords)

    run = aot_function(functional, *args, **kwargs)

    class AOTModule(strata.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.orig_module = mod

        def forward(self, *inputs: Any, **keywords: Any) -> Any:
            return run(_state(mod), inputs, keywords)

    return AOTModule()


def aot_module_simplified(
    mod: strata.nn.Module,
    args: list,
    fw_compiler: Callable,
    bw_compiler: Callable | None = None,
    partition_fn: Callable = default_partition,
    decompositions: dict | None = None,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Callable | None = None,
    **_: Any,
) -> Callable:
    """A function of the module's inputs, for compilers of strata.compile: args are example inputs, and graphs are made at once.

    As aot_function; the module takes tensors and gives tensors. Its parameters and buffers are the graphs' first inputs.
    """
    compilers = Compilers(fw_compiler, bw_compiler, partition_fn, inference_compiler, decompositions)
    state = _state(mod)
    names, owned = list(state), list(state.values())
    kept: dict[str, Any] = {}

    def flat(*given: Any) -> list:
        found = strata.func.functional_call(mod, dict(zip(names, given)), tuple(given[len(names) :]))
        kept["single"] = isinstance(found, strata.Tensor)
        return [found] if kept["single"] else list(found)

    run = compiled(flat, [*owned, *args], compilers)

    def forward(*inputs: Any) -> Any:
        found = run([*owned, *inputs])
        return found[0] if kept["single"] else tuple(found)

    return forward


def _state(mod: strata.nn.Module) -> dict:
    return {**dict(mod.named_parameters()), **dict(mod.named_buffers())}
