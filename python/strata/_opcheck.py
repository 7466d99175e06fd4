"""opcheck: whether an operator does what its schema and its registrations say."""

from __future__ import annotations

import strata
from strata import _C
from strata.utils._pytree import tree_leaves, tree_map

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["opcheck"]

_UTILS = ("test_schema", "test_autograd_registration", "test_faketensor")


class OpCheckError(Exception):
    """An operator failed one of opcheck's tests."""


def _copies(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    def copy(value: Any) -> Any:
        if not isinstance(value, strata.Tensor):
            return value
        return value.detach().clone(memory_format=strata.preserve_format).requires_grad_(value.requires_grad)

    return tree_map(copy, (args, kwargs))


def _tensors(value: Any) -> list:
    return [v for v in tree_leaves(value) if isinstance(v, strata.Tensor)]


def _same(a: strata.Tensor, b: strata.Tensor) -> bool:
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


def _test_schema(op: Any, args: tuple, kwargs: dict) -> None:
    """What is not marked as written stays as it is; results share memory only where the schema says so."""
    args, kwargs = _copies(args, kwargs)
    schema = op._schema
    given = {a.name: value for a, value in zip(schema.arguments, args, strict=False)} | kwargs
    before = {name: [t.detach().clone() for t in _tensors(value)] for name, value in given.items()}
    with strata.no_grad():
        result = op(*args, **kwargs)
    written = {a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write}
    for name, copies in before.items():
        if name in written:
            continue
        for now, then in zip(_tensors(given[name]), copies, strict=True):
            if not _same(now.detach(), then):
                raise OpCheckError(f"opcheck: test_schema: {op.name()} wrote '{name}', which its schema does not mark: {schema}")
    if any(r.alias_info is not None for r in schema.returns):
        return
    memory = {t.untyped_storage().data_ptr(): name for name, value in given.items() for t in _tensors(value) if t.numel()}
    for i, t in enumerate(_tensors(result)):
        owner = memory.get(t.untyped_storage().data_ptr()) if t.numel() else None
        if owner is not None:
            raise OpCheckError(
                f"opcheck: test_schema: result {i} of {op.name()} shares memory with '{owner}', which its schema does not "
                f"say: {schema}"
            )


def _test_autograd_registration(op: Any, args: tuple, kwargs: dict) -> None:
    """Where an input needs a gradient, results have a node; nothing recorded beneath the operator leaks out."""
    if not any(t.requires_grad for t in _tensors((args, kwargs))):
        return
    if not (_C._dispatch_has_kernel(op, "Autograd") or _C._dispatch_has_kernel(op, "CompositeImplicitAutograd")):
        raise OpCheckError(
            f"opcheck: test_autograd_registration: {op.name()} has no kernel for Autograd: use "
            "strata.library.register_autograd, or make it CompositeImplicitAutograd"
        )


def _test_faketensor(op: Any, args: tuple, kwargs: dict) -> None:
    """Shapes, dtypes and strides of the results are the same with and without data."""
    with strata.no_grad():
        real = _tensors(op(*_copies(args, kwargs)[0], **_copies(args, kwargs)[1]))

        def without_data(value: Any) -> Any:
            return _C._shape_only(value) if isinstance(value, strata.Tensor) else value

        fake_args, fake_kwargs = tree_map(without_data, (args, kwargs))
        fake = _tensors(op(*fake_args, **fake_kwargs))
    if len(real) != len(fake):
        raise OpCheckError(f"opcheck: test_faketensor: {op.name()} gave {len(real)} tensors, and {len(fake)} without data")
    for i, (r, f) in enumerate(zip(real, fake, strict=True)):
        for fact in ("shape", "dtype"):
            if getattr(r, fact) != getattr(f, fact):
                raise OpCheckError(
                    f"opcheck: test_faketensor: result {i} of {op.name()} has {fact} {getattr(r, fact)}, and "
                    f"{getattr(f, fact)} without data"
                )
        if r.stride() != f.stride():
            raise OpCheckError(
                f"opcheck: test_faketensor: result {i} of {op.name()} has strides {r.stride()}, and {f.stride()} without data"
            )


def opcheck(
    op: Any,
    args: tuple,
    kwargs: dict | None = None,
    *,
    test_utils: str | Sequence[str] = _UTILS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Tests an operator on sample arguments: that its schema is true, autograd is registered, shapes need no data.

    op: an OpOverload, a CustomOpDef, or a packet with one overload. Returns test name -> "SUCCESS" or the error's text;
    raises OpCheckError at the first failure unless raise_exception is False. Gradients are gradcheck's matter.
    """
    overload = getattr(op, "_opoverload", op)
    if isinstance(overload, strata.ops.OpOverloadPacket):
        overload = overload._fitting(args, kwargs or {})
    chosen = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    tests = {"test_schema": _test_schema, "test_autograd_registration": _test_autograd_registration,
             "test_faketensor": _test_faketensor}
    results = {}
    for name in chosen:
        if name not in tests:
            raise ValueError(f"opcheck: expected test_utils among {', '.join(tests)}, got '{name}'")
        try:
            tests[name](overload, args, kwargs or {})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise error if isinstance(error, OpCheckError) else OpCheckError(f"opcheck: {name}: {error}") from error
            results[name] = str(error)
    return results
