"""Derivatives of functions, and calls of modules with other tensors: strata.func.grad(f)(x).

Gradients come from autograd's graphs; jacrev and hessian are one backward pass under vmap (_vmap.py).
"""

from __future__ import annotations

import functools
from contextlib import contextmanager

import strata
from strata import Tensor, _capture
from strata._batched import Level, current_level, lacks_values, learns_outside, without_history
from strata._vmap import vmap
from strata.autograd.function import following
from strata.autograd.graph import _leaves_of
from strata.nn.utils.stateless import functional_call as _functional_call
from strata.utils._pytree import tree_flatten, tree_map, tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "functionalize",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]



def functional_call(
    module: strata.nn.Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with the tensors of those names in place of its own; see strata.nn.utils.stateless."""
    return _functional_call(module, parameter_and_buffer_dicts, args, kwargs, tie_weights=tie_weights, strict=strict)


def _tracked(tree: Any) -> tuple[Any, list[Tensor]]:
    """The tree with aliases that autograd follows in place of its tensors, and these."""
    leaves: list[Tensor] = []

    def follow(value: Any) -> Any:
        if isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex()):
            if value.is_inference():
                value = value.clone()
            level = None if strata.compiler.is_compiling() else current_level()
            if level is not None:
                alias = level.leaf(value)
            else:  # An alias with its history: derivatives of derivatives find their way out.
                alias = value.view_as(value) if value.requires_grad else value.detach().requires_grad_()
            leaves.append(alias)
            return alias
        return value

    return tree_map(follow, tree), leaves


def _reaches_beyond(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> bool:
    """Whether the outputs also come from tensors that learn, beside the leaves and those of transforms inside, which have ended."""
    for leaf in leaves:
        leaf._transform_ended = True
    made = [output for output in outputs if output.grad_fn is not None]
    if any(map(learns_outside, (*outputs, *leaves))):
        return True
    return any(not getattr(leaf, "_transform_ended", False) for leaf in _leaves_of(made))


@contextmanager
def _recorded() -> Iterator[bool]:
    """Records what runs inside, whatever the modes around it are; gives whether gradients were recorded before."""
    if strata.is_inference_mode_enabled():
        with strata.inference_mode(False), strata.enable_grad():
            yield False
    else:
        outer = strata.is_grad_enabled()
        with strata.enable_grad():
            yield outer


def _without_history(t: Tensor) -> Tensor:
    return t.detach() if strata.compiler.is_compiling() else without_history(t)


def _outside(tensors: Sequence[Tensor], keep: bool) -> list[Tensor]:
    return [t if keep else _without_history(t) for t in tensors]


# Forward derivatives in PyTorch, where these refuse integers with another class of error than the rest.
_FORWARD = ("jvp", "jacfwd", "hessian")


def _wrapped(name: str, argnums: int | tuple[int, ...], args: tuple) -> tuple[list, Any, list[Tensor]]:
    """Arguments with the ones to derive by replaced; these as one tree; its tensors."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise RuntimeError(f"Got argnum={number}, but only {len(args)} positional inputs")
    chosen = [args[number] for number in numbers]
    for leaf in tree_flatten(chosen)[0]:
        if not isinstance(leaf, Tensor):
            raise ValueError(f"{name}: Expected all inputs to derive by to be tensors, but got {type(leaf).__name__}")
        if not (leaf.is_floating_point() or leaf.is_complex()):
            raise (ValueError if name in _FORWARD else RuntimeError)(
                f"{name}: Expected all inputs to derive by to be floating point or complex, but got {leaf.dtype}: "
                "convert it with .float(), or leave it out of what is derived by (argnums, or a closure)"
            )
    tree, leaves = _tracked(chosen)
    replaced = list(args)
    for number, value in zip(numbers, tree, strict=True):
        replaced[number] = value
    return replaced, (tree[0] if isinstance(argnums, int) else tuple(tree)), leaves


def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that gives (gradient of func's result by the argument, result); has_aux: (result, aux) for result.

    argnums: the argument, a tensor or a tree of them, or several. RuntimeError where the result is no 0-dim tensor.
    """

    @functools.wraps(func)
    def derived(*args: Any, **kwargs: Any) -> Any:
        with _recorded() as outer:
            replaced, tree, leaves = _wrapped("grad", argnums, args)
            result = func(*replaced, **kwargs)
            aux = None
            if has_aux:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) "
                        "if has_aux is True"
                    )
                result, aux = result
            if not isinstance(result, Tensor):
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return tensor, got type {type(result).__name__}"
                )
            if result.dim() != 0:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with "
                    f"{result.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            keep = outer and _reaches_beyond([result], leaves)
            grads = _gradients([result], leaves, None, keep)
        kept = _outside(grads, keep)
        _, spec = tree_flatten(tree)
        value = result if keep else _without_history(result)
        aux = _aux_outside(aux, keep)
        return tree_unflatten(kept, spec), ((value, aux) if has_aux else value)

    return derived


def _aux_outside(aux: Any, keep: bool) -> Any:
    return aux if keep else tree_map(lambda a: _without_history(a) if isinstance(a, Tensor) else a, aux)


def _gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], seeds: Sequence[Tensor] | None, graph: bool
) -> list[Tensor]:
    """Gradients, zeros where there is no way from an output to the input."""
    live = [i for i, output in enumerate(outputs) if output.requires_grad]
    if not live or not inputs:
        return [strata.zeros_like(x) for x in inputs]
    found = strata.autograd.grad(
        [outputs[i] for i in live],
        inputs,
        None if seeds is None else [seeds[i] for i in live],
        create_graph=graph,
        retain_graph=True,
        allow_unused=True,
    )
    return [strata.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that gives the gradient of func's 0-dim result by an argument; with has_aux (gradient, aux).

    argnums: the argument, a tensor or a tree of them, or several. grad(grad(f)) works.
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def derived(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return derived


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """(func(*primals), pull) where pull(cotangents) gives the products of cotangents with the Jacobian, one a primal.

    cotangents: a tree like the result (RuntimeError otherwise); None stands for 1 where the result has one element. With has_aux func gives (result, aux), and aux comes as the third value.
    """
    with _recorded() as outer:
        replaced, _, leaves = _wrapped("vjp", tuple(range(len(primals))), primals)
        result = func(*replaced)
        aux = None
        if has_aux:
            result, aux = result
    outputs, spec = tree_flatten(result)
    beyond = outer and _reaches_beyond(outputs, leaves)
    _, primal_spec = tree_flatten(tuple(replaced))

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        seeds, seed_spec = tree_flatten(cotangents)
        if seed_spec != spec:
            raise RuntimeError(
                "vjp: Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {seed_spec}, primal output: {spec}"
            )
        with _recorded() as outer:
            learns = outer and any(isinstance(seed, Tensor) and seed.requires_grad for seed in seeds)
            keep = beyond or learns if create_graph is None else create_graph
            found = _gradients(outputs, leaves, seeds, keep)
        grads = tree_unflatten(_outside(found, keep), primal_spec)
        return grads if len(primals) != 1 else (grads[0],)

    shown = tree_unflatten(_outside(outputs, beyond), spec)
    return (shown, pull, _aux_outside(aux, beyond)) if has_aux else (shown, pull)


def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """(func(*primals), the product of its Jacobian with the tangents); with has_aux also aux.

    The product is the derivative of vjp by its cotangents, so operators need derivatives of second order. RuntimeError
    where primals and tangents do not fit.
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals). "
            f"Got {type(primals).__name__}: write (primal,) for one"
        )
    flat, spec = tree_flatten(tuple(tangents))
    if not flat:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to contain at least one Tensor.")
    if tree_flatten(primals)[1] != spec:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals and tangents to have the same python structure")
    with _recorded() as outer, following():
        replaced, _, leaves = _wrapped("jvp", tuple(range(len(primals))), primals)
        result = func(*replaced)
        aux = None
        if has_aux:
            result, aux = result
        outputs, result_spec = tree_flatten(result)
        seeds = [strata.zeros_like(output).requires_grad_(output.requires_grad) for output in outputs]
        keep = _reaches_beyond(outputs, leaves) and outer
        learns = keep or (outer and any(tangent.requires_grad for tangent in flat))
        pulled = _gradients(outputs, leaves, seeds, True)
        products = _gradients(pulled, seeds, flat, learns)
    values = tree_unflatten(_outside(outputs, keep), result_spec)
    products = tree_unflatten(_outside(products, learns), result_spec)
    return (values, products, _aux_outside(aux, keep)) if has_aux else (values, products)


def linearize(func: Callable, *primals: Any) -> tuple[Any, Callable]:
    """func(*primals), and a function that gives its derivative there along tangents; each call computes func anew."""
    output = func(*primals)

    def along(*tangents: Any) -> Any:
        return jvp(func, primals, tangents)[1]

    return output, along


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """The function: what it gives is the same; graphs of it are made functional where they are captured.

    RuntimeError for a `remove` other than "mutations" and "mutations_and_views".
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize(f, remove='mutations'): valid options for argument \"remove\" are: [\"mutations\", \"mutations_and_views\"], got {remove}")

    @functools.wraps(func)
    def same(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return same


def jacfwd(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable:
    """jacrev, whose result it has: derivatives go backwards here.

    randomness: "error" or "same"; func runs once, so its random numbers are the same in all columns. RuntimeError for
    an unknown one, NotImplementedError for "different".
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"jacfwd: Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )
    if randomness == "different":
        raise NotImplementedError(
            "jacfwd: randomness='different' is not provided, as func runs once: use randomness='same', or call "
            "strata.func.jvp for each column"
        )
    return _jacobian("jacfwd", func, argnums, has_aux)


def jacrev(
    func: Callable, argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Callable:
    """A function that gives the Jacobian of func's tensor by an argument: shape (*result, *argument). Of a tree of tensors it is
    that tree, with a Jacobian in the place of each; where arguments are a tree or several, a tree of them.

    One backward pass for all elements of the result, whatever chunk_size is (ValueError below 1); in graphs one for each.
    RuntimeError for complex arguments and results, as jacfwd and hessian give: their derivative is no one number.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"jacrev: `chunk_size` should be greater than 0, got {chunk_size}; None takes all at once")
    return _jacobian("jacrev", func, argnums, has_aux)


def _all_real(name: str, tree: Any, kind: str) -> None:
    """RuntimeError for a complex tensor in a tree of arguments or results, whose kind is told."""
    for i, leaf in enumerate(tree_flatten(tree)[0]):
        if isinstance(leaf, Tensor) and leaf.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {kind} to be real but received complex tensor at flattened input idx: {i}; "
                "derive a function of strata.view_as_real(tensor)"
            )


def _jacobian(name: str, func: Callable, argnums: int | tuple[int, ...], has_aux: bool) -> Callable:
    @functools.wraps(func)
    def derived(*args: Any, **kwargs: Any) -> Any:
        _all_real(name, args, "inputs")
        with _recorded() as outer:
            replaced, tree, leaves = _wrapped(name, argnums, args)
            result = func(*replaced, **kwargs)
            aux = None
            if has_aux:
                result, aux = result
            _all_real(name, result, "outputs")
            outputs, result_spec = tree_flatten(result)
            if strange := [type(o).__name__ for o in outputs if not isinstance(o, Tensor)]:
                raise RuntimeError(f"{name}(f)(*args): Expected f(*args) to return tensors, or a tree of them, got {strange[0]}")
            keep = _reaches_beyond(outputs, leaves) and outer
            found = [_rows(output, leaves, keep, name != "jacrev") for output in outputs]
        _, spec = tree_flatten(tree)
        jacobian = tree_unflatten([tree_unflatten(_outside(whole, keep), spec) for whole in found], result_spec)
        return (jacobian, _aux_outside(aux, keep)) if has_aux else jacobian

    return derived


def _rows(output: Tensor, leaves: list[Tensor], keep: bool, forward: bool) -> list[Tensor]:
    """The derivatives of an output by each leaf, of all elements in one backward pass; forward derivatives are of the output's dtype."""
    count = output.numel()
    if count == 0:
        found = [leaf.new_zeros((*output.shape, *leaf.shape)) for leaf in leaves]
    else:
        rows = None if strata.compiler.is_compiling() or _capture.current() is not None else _rows_at_once(output, leaves, keep)
        if rows is None:
            each = [_gradients([element], leaves, None, keep) for element in output.reshape(-1).unbind(0)]
            rows = [strata.stack([row[i] for row in each]) for i in range(len(leaves))]
        found = [row.reshape((*output.shape, *leaf.shape)) for row, leaf in zip(rows, leaves, strict=True)]
    return [t.to(output.dtype) for t in found] if forward and output.is_floating_point() else found


def _rows_at_once(output: Tensor, leaves: list[Tensor], keep: bool) -> list[Tensor] | None:
    """The gradients of each element of an output, along dim 0; None where they are to be asked for one by one."""
    count = output.numel()
    seeds = strata.eye(count, dtype=output.dtype, device=output.device).reshape((count, *output.shape))
    try:
        with Level(count, keep) as level:
            rows = [level.whole(g) for g in _gradients([output], leaves, [level.wrap(seeds)], keep)]
    except Exception:  # the passes one by one say what is wrong, if something is
        return None
    return None if any(map(lacks_values, rows)) and not lacks_values(output) else rows


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """A function that gives the second derivatives of func's 0-dim result: shape (*argument, *argument), or trees of them."""
    return _jacobian("hessian", jacrev(func, argnums), argnums, False)


def stack_module_state(models: Sequence[strata.nn.Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, buffers) of models of one kind by name, stacked along a new first dim.

    RuntimeError for no models, models of several classes, or some in training mode and some not.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = {
        name: strata.stack([dict(m.named_parameters())[name] for m in models]).detach().requires_grad_(p.requires_grad)
        for name, p in models[0].named_parameters()
    }
    buffers = {
        name: strata.stack([dict(m.named_buffers())[name] for m in models]).detach()
        for name, _ in models[0].named_buffers()
    }
    return parameters, buffers


def replace_all_batch_norm_modules_(root: strata.nn.Module) -> strata.nn.Module:
    """Takes the running statistics from all batch norms of a module, which vmap could not write; returns the module."""
    for module in root.modules():
        if isinstance(module, strata.nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
