"""Parametrizations: a parameter of a module computed by other modules from parameters of its own.

A module with one gets a class of its own (`ParametrizedLinear` for Linear) whose property of the parameter's name runs
the parametrization; the parameters behind it live in `module.parametrizations.<name>` as `original`, or `original0`,
`original1`... where the inverse of the last parametrization gives several tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from copy import deepcopy

import strata
from strata import Tensor

from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]

_cache_depth = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Inside, each parametrized tensor is computed once and kept."""
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


def _registered(value: Tensor, like: Tensor) -> Tensor:
    """value as a Parameter where the original was one."""
    return Parameter(value, requires_grad=like.requires_grad) if isinstance(like, Parameter) else value


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in their order, and the parameters that they start from.

    unsafe: True leaves out the checks that dtype and size stay. ValueError where `right_inverse` gives another dtype or
    storage's size than it says.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        size, dtype = original.shape, original.dtype
        with strata.no_grad():
            new = original
            for module in reversed(modules):
                inverse = getattr(module, "right_inverse", None)
                if inverse is None:
                    continue
                try:
                    new = inverse(new)
                except NotImplementedError:
                    continue
                if not isinstance(new, Tensor) and (isinstance(new, str) or not isinstance(new, Sequence)):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                        f"{type(new).__name__}"
                    )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            with strata.no_grad():
                original.data = new
            self._set("original", original)
        else:
            for i, value in enumerate(new):
                if not isinstance(value, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                        f"{i} of the sequence with type {type(value).__name__}."
                    )
                self._set(f"original{i}", _registered(value, original))
        if not unsafe:
            made = self()
            if not isinstance(made, Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
            if made.dtype != dtype:
                raise ValueError(
                    "Registering a parametrization may not change the dtype of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized dtype: {dtype}\nparametrized dtype: {made.dtype}"
                )
            if made.shape != size:
                raise ValueError(
                    "Registering a parametrization may not change the shape of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized shape: {size}\nparametrized shape: {made.shape}"
                )

    def _set(self, name: str, value: Tensor) -> None:
        if isinstance(value, Parameter):
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, value)

    def right_inverse(self, value: Tensor) -> None:
        """Puts what the parametrizations' inverses make of value into the originals; assigning to the tensor does it.

        RuntimeError where a parametrization has no right_inverse.
        """
        with strata.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse: define it, or "
                        "assign to the original parameter"
                    )
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else list(value)
            if len(values) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(values)}."
                )
            for original, new in zip(self._originals(), values, strict=True):
                if not isinstance(new, Tensor) or new.dtype != original.dtype:
                    found = new.dtype if isinstance(new, Tensor) else type(new).__name__
                    raise ValueError(f"The tensor that is assigned to {original.dtype} parameters must be of that dtype, got {found}")
                original.data = new

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def forward(self) -> Tensor:
        first, *rest = self
        value = first(*self._originals())
        for module in rest:
            value = module(value)
        return value


def _property(name: str) -> property:
    def compute(self: Module) -> Tensor:
        if not _cache_depth:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def assign(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(compute, assign)


def _own_class(module: Module) -> None:
    """Gives the module a subclass of its class, where its properties are put."""
    cls = type(module)

    def copy_deeply(self: Module, memo: dict) -> Module:
        if id(self) in memo:
            return memo[id(self)]
        # The copy has a class of its own too: its properties come and go without the original's.
        kind = type(self)
        body = {name: value for name, value in vars(kind).items() if name not in ("__dict__", "__weakref__")}
        kind = type(kind.__name__, kind.__bases__, body)
        twin = kind.__new__(kind)
        memo[id(self)] = twin
        twin.__dict__ = deepcopy(self.__dict__, memo)
        return twin

    def no_pickle(self: Module) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See "
            "strata.save(module.state_dict()) and load_state_dict()."
        )

    body = {"__getstate__": no_pickle}
    if not hasattr(cls, "__deepcopy__"):
        body["__deepcopy__"] = copy_deeply
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), body)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes `module.<tensor_name>`, a parameter or buffer, the result of `parametrization`; returns the module.

    A second one runs on the result of the first, whose originals stay as they are. Of the first one,
    parametrization.right_inverse, where there is one, gives the parameters that the present value comes from. unsafe:
    dtype and shape may change.

    ValueError for a name that is neither parameter nor buffer, or a parametrization that changes dtype or shape.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        present = module.parametrizations[tensor_name]
        if not unsafe:
            _check_further(parametrization, getattr(module, tensor_name), f"module.{tensor_name}")
        present.append(parametrization)
        present.unsafe |= unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    made = ParametrizationList([parametrization], original, unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _own_class(module)
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = made
    return module


def _check_further(parametrization: Module, before: Tensor, name: str) -> None:
    """ValueError where the parametrization, or its right_inverse, changes the dtype or shape of `before`."""

    def check(what: str, made: Any) -> None:
        if not isinstance(made, Tensor):
            raise ValueError(f"{what} must return a tensor. Got {type(made).__name__}.")
        for kind in ("dtype", "shape"):
            old, new = getattr(before, kind), getattr(made, kind)
            if old != new:
                raise ValueError(
                    f"Registering a parametrization may not change the {kind} of the tensor, unless the `unsafe` flag "
                    f"is enabled.\n{name}.{kind}: {old}\n{what}(...).{kind}: {new}"
                )

    after = parametrization(before)
    check("parametrization", after)
    if hasattr(parametrization, "right_inverse"):
        try:
            inverse = parametrization.right_inverse(after)
        except NotImplementedError:
            return
        check("parametrization.right_inverse", inverse)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module has parametrizations, or one of that tensor."""
    found = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Takes all parametrizations of a tensor away; the module.

    leave_parametrized: the tensor keeps the parametrized value, else it gets the original back. ValueError for a tensor
    without one, or where several originals stand behind it and leave_parametrized is False.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    found = module.parametrizations[tensor_name]
    original = found._originals()[0]
    if leave_parametrized:
        with strata.no_grad():
            value = getattr(module, tensor_name).detach().clone()
        if found.is_tensor and isinstance(original, Parameter):
            original.data = value  # the parameter that an optimiser holds stays
            value = original
        else:
            value = _registered(value, original)
    elif found.is_tensor:
        value = original
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if isinstance(value, Parameter):
        module.register_parameter(tensor_name, value)
    else:
        module.register_buffer(tensor_name, value)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)
