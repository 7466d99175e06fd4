"""Jacobians, Hessians and their products with vectors, all by reverse mode.

Products with a vector on the right (jvp, hvp) use that backward is linear in its output gradients: differentiating it
with respect to those gives the Jacobian's transpose transposed.
"""

import strata

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tensors(x, what, where):
    """(whether x is a tuple, x as a tuple); all elements must be tensors."""
    many = isinstance(x, tuple)
    items = x if many else (x,)
    for i, item in enumerate(items):
        if not isinstance(item, strata.Tensor):
            at = f"element {i} of {what}" if many else what
            raise TypeError(f"{where}: {at} must be a Tensor, got {type(item).__name__}")
    return many, items


def _points(inputs, create_graph):
    """The inputs as differentiable points: cut from their history, or views that keep it for `create_graph`."""
    if create_graph:
        return tuple(x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in inputs)
    return tuple(x.detach().requires_grad_() for x in inputs)


def _grads(outputs, inputs, weights, create_graph):
    """autograd.grad that takes outputs without a graph: None where nothing depends on an input."""
    live = [(o, w) for o, w in zip(outputs, weights, strict=True) if o is not None and o.requires_grad]
    if not live:
        return (None,) * len(inputs)
    outs, seeds = zip(*live, strict=True)
    return strata.autograd.grad(outs, inputs, seeds, create_graph=create_graph, allow_unused=True)


def _zeros_for_none(grads, like):
    return tuple(strata.zeros_like(x) if g is None else g for g, x in zip(grads, like, strict=True))


def _require(found, strict, where, what):
    """In strict mode each of `found` must exist and be differentiable."""
    if strict:
        for i, t in enumerate(found):
            if t is None or not t.requires_grad:
                raise RuntimeError(f"{where}: {what.format(i)}; strict=True does not allow that")


_NO_GRAPH = "output {} of the function does not depend on the inputs"
_UNUSED = "the output of the function is independent of input {}"
_CONSTANT = "the derivative with respect to input {} is independent of the inputs"


def _check_grads(grads, strict, create_graph, where):
    if strict and None in grads:
        raise RuntimeError(f"{where}: {_UNUSED.format(grads.index(None))}; strict=True does not allow that")
    if create_graph:
        _require(grads, strict, where, _CONSTANT)


def _finish(items, many, create_graph):
    items = tuple(items) if create_graph else tuple(t.detach() for t in items)
    return items if many else items[0]


def _vector(v, like, where, many):
    """The vector of a product, checked against what it multiplies; ones only where that is one number."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"{where}: v may be left out only where it would hold a single element")
        # None lets the tape refuse complex outputs, which have no gradient of their own.
        return (None,) if where == "vjp" else (strata.ones_like(like[0]),)
    _, v = _tensors(v, "v", where)
    if len(v) != len(like):
        raise RuntimeError(f"{where}: v must hold {len(like)} tensor(s), got {len(v)}")
    for i, (x, y) in enumerate(zip(v, like, strict=True)):
        if x.shape != y.shape:
            raise RuntimeError(
                f"{where}: v{f'[{i}]' if many else ''} must have the shape {tuple(y.shape)}, got {tuple(x.shape)}"
            )
    return v


def _single(outputs, where):
    if len(outputs) != 1 or outputs[0].numel() != 1:
        raise RuntimeError(f"{where}: the function must return one Tensor with a single element")


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v^T J): v has the outputs' shapes, the product the inputs'.

    Raises:
        RuntimeError: v does not fit; with `strict`, an output or input takes no part.
    """
    with strata.enable_grad():
        many_in, inputs = _tensors(inputs, "inputs", "vjp")
        points = _points(inputs, create_graph)
        many_out, outputs = _tensors(func(*points), "outputs", "vjp")
        _require(outputs, strict, "vjp", _NO_GRAPH)
        v = _vector(v, outputs, "vjp", many_out)
        grads = _grads(outputs, points, v, create_graph)
        _check_grads(grads, strict, create_graph, "vjp")
        product = _zeros_for_none(grads, points)
    return _finish(outputs, many_out, create_graph), _finish(product, many_in, create_graph)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), J v): v has the inputs' shapes, the product the outputs'. Raises as `vjp`."""
    with strata.enable_grad():
        many_in, inputs = _tensors(inputs, "inputs", "jvp")
        v = _vector(v, inputs, "jvp", many_in)
        points = _points(inputs, create_graph)
        many_out, outputs = _tensors(func(*points), "outputs", "jvp")
        _require(outputs, strict, "jvp", _NO_GRAPH)
        seeds = tuple(strata.zeros_like(o).requires_grad_() for o in outputs)
        grads = _grads(outputs, points, seeds, True)
        _check_grads(grads, strict, False, "jvp")
        product = _grads(grads, seeds, v, create_graph)
        if create_graph:
            _require(product, strict, "jvp", "the Jacobian's product for output {} is independent of the inputs")
        product = _zeros_for_none(product, outputs)
    return _finish(outputs, many_out, create_graph), _finish(product, many_out, create_graph)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """J of each output and input: a tensor of shape output.shape + input.shape.

    A tuple over outputs of tuples over inputs; a level is left out where `func` returns, or `inputs` is, one tensor.
    `vectorize` and `strategy` are accepted; the rows are computed one after the other by backward passes in any case.

    Raises:
        NotImplementedError: strategy="forward-mode" without `vectorize`, or with `create_graph`.
        RuntimeError: with `strict`, an output or input takes no part; for "forward-mode" with `strict`.
        ValueError: for another strategy.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise ValueError(f"jacobian: Expected strategy to be either 'forward-mode' or 'reverse-mode', got {strategy!r}")
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError("jacobian: `create_graph=True` and `strategy='forward-mode'` are not both supported; use 'reverse-mode'")
        if strict:
            raise RuntimeError("jacobian: `strict=True` and `strategy='forward-mode'` are not supported together; use 'reverse-mode'")
        if not vectorize:
            raise NotImplementedError(
                "jacobian: Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`."
            )
    with strata.enable_grad():
        many_in, inputs = _tensors(inputs, "inputs", "jacobian")
        points = _points(inputs, create_graph)
        many_out, outputs = _tensors(func(*points), "outputs", "jacobian")
        _require(outputs, strict, "jacobian", _NO_GRAPH)
        table = []
        for out in outputs:
            rows = [_row(element, points, create_graph, strict) for element in out.reshape(-1).unbind()]
            blocks = []
            for i, x in enumerate(points):
                block = strata.stack([row[i] for row in rows]) if rows else x.new_zeros((0, *x.shape))
                blocks.append(block.reshape(tuple(out.shape) + tuple(x.shape)))
            table.append(_finish(blocks, many_in, create_graph))
    return tuple(table) if many_out else table[0]


def _row(element, points, create_graph, strict):
    if not element.requires_grad:
        return _zeros_for_none((None,) * len(points), points)
    grads = strata.autograd.grad(element, points, retain_graph=True, create_graph=create_graph, allow_unused=True)
    _check_grads(grads, strict, create_graph, "jacobian")
    return _zeros_for_none(grads, points)


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """Second derivatives of a function with one number as result: blocks of shape input_i.shape + input_j.shape.

    A tuple of tuples, or one tensor where `inputs` is one tensor. Raises as `jacobian`.
    """
    many, inputs = _tensors(inputs, "inputs", "hessian")

    def scalar(*points):
        _, outputs = _tensors(func(*points), "outputs", "hessian")
        _single(outputs, "hessian")
        return outputs[0].reshape(())

    def gradient(*points):
        return jacobian(scalar, points, create_graph=True, strict=strict)

    blocks = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return blocks if many else blocks[0][0]


def _gradient(func, inputs, where, create_graph, strict):
    points = _points(inputs, create_graph)
    _, outputs = _tensors(func(*points), "outputs", where)
    _require(outputs, strict, where, _NO_GRAPH)
    _single(outputs, where)
    grads = _grads(outputs, points, (None,), True)
    _check_grads(grads, strict, True, where)
    return points, outputs, grads


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v^T H) for a function with one number as result; v has the inputs' shapes. Raises as `vjp`."""
    with strata.enable_grad():
        many, inputs = _tensors(inputs, "inputs", "vhp")
        v = _vector(v, inputs, "vhp", many)
        points, outputs, grads = _gradient(func, inputs, "vhp", create_graph, strict)
        product = _grads(grads, points, v, create_graph)
        _check_grads(product, strict, create_graph, "vhp")
        product = _zeros_for_none(product, points)
    return _finish(outputs, False, create_graph), _finish(product, many, create_graph)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), H v): as `vhp`, of which it is the transpose; `vhp` is cheaper and equal for smooth functions."""
    with strata.enable_grad():
        many, inputs = _tensors(inputs, "inputs", "hvp")
        v = _vector(v, inputs, "hvp", many)
        points, outputs, grads = _gradient(func, inputs, "hvp", create_graph, strict)
        seeds = tuple(strata.zeros_like(x).requires_grad_() for x in points)
        turned = _grads(grads, points, seeds, True)
        _check_grads(turned, strict, False, "hvp")
        product = _zeros_for_none(_grads(turned, seeds, v, create_graph), points)
    return _finish(outputs, False, create_graph), _finish(product, many, create_graph)
