"""Module: the base of everything that holds parameters.

Its registries (`_parameters`, `_buffers`, `_modules`) hold what assignment put there; attributes are read from them
when ordinary lookup finds nothing. State dictionaries are in module_state.py, the walk over members in
module_members.py, hooks in strata.nn.hooks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import (
    Callable,  # at run time too: typing.get_type_hints of subclasses reads the class's annotations
)
from typing import Any, Optional

import strata
from strata import Tensor
from strata._device_names import install_module_methods

from ..hooks import (
    RemovableHandle,
    WrappedHook,
    add_hook,
    call_with_hooks,
    check_backward_kind,
    everywhere,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    registered,
)
from ..parameter import Buffer, Parameter
from .module_conversion import ConversionMixin
from .module_members import MembersMixin
from .module_state import _EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401 - the name in PyTorch's file
from .module_state import StateMixin, _IncompatibleKeys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "Module",
    "_IncompatibleKeys",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_HOOK_REGISTRIES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


_WrappedHook = WrappedHook  # the name in PyTorch's files


def _addindent(text: str, spaces: int) -> str:
    """Indents every line but the first; blank lines stay empty."""
    first, *rest = text.split("\n")
    return "\n".join([first] + [" " * spaces + line if line.strip() else "" for line in rest])


def _forward_unimplemented(self: Module, *input: Any) -> None:
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(MembersMixin, StateMixin, ConversionMixin):
    """Base of all layers and models: subclass it, call `super().__init__()` first, define `forward`.

    Parameters, buffers and modules assigned as attributes are registered under the attribute's name.
    """

    training: bool
    call_super_init: bool = False
    _version: int = 1
    _compiled_call_impl: Optional[Callable] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            name = type(self).__name__
            if kwargs:
                raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
            if args:
                raise TypeError(f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        # Straight into __dict__: none of these needs __setattr__'s registration.
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_is_full_backward_hook"] = None
        for name in _HOOK_REGISTRIES:
            state[name] = OrderedDict()
        state["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _forward_unimplemented

    # ---- calls

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or everywhere.forward
            or everywhere.forward_pre
            or everywhere.backward
            or everywhere.backward_pre
        ):
            return call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compiles this module's call in place; the arguments are those of `strata.compile`."""
        self._compiled_call_impl = strata.compile(self._call_impl, *args, **kwargs)

    # ---- registration

    def _check_name(self, kind: str, name: str, registry: dict) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {strata.typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in registry:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is state but not learned; persistent=False keeps it out of `state_dict`.

        AttributeError before `Module.__init__()`; TypeError and KeyError for a name that cannot be used;
        TypeError where `tensor` is neither a Tensor nor None.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not (isinstance(tensor, Tensor) or hasattr(tensor, "__torch_function__")):
            raise TypeError(
                f"cannot assign '{strata.typename(tensor)}' object to buffer '{name}' (strata Tensor or None required)"
            )
        self._buffers[name] = registered(everywhere.buffer_registration, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter, or None for one that this module does not have.

        Errors as for `register_buffer`; ValueError where `param` is the result of an operator.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{strata.typename(param)}' object to parameter '{name}' "
                "(strata.nn.Parameter or None required)"
            )
        if param.grad_fn:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = registered(everywhere.parameter_registration, self, name, param)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule under `name`. TypeError for anything but a Module or None; KeyError for an unusable name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{strata.typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = registered(everywhere.module_registration, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Same as `add_module`."""
        self.add_module(name, module)

    # ---- attributes

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        for registry in ("_parameters", "_buffers", "_modules"):
            members = state.get(registry)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _forget(self, name: str, *keep: str) -> None:
        """Takes `name` out of every place that holds members, save the registries in `keep`."""
        state = self.__dict__
        state.pop(name, None)
        for registry in ("_parameters", "_buffers", "_modules"):
            if registry not in keep:
                state[registry].pop(name, None)
        if "_buffers" not in keep:
            state["_non_persistent_buffers_set"].discard(name)

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        parameters = state.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{strata.typename(value)}' as parameter '{name}' "
                    "(strata.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in state:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            self._modules[name] = registered(everywhere.module_registration, self, name, value)
        elif name in state.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{strata.typename(value)}' as child module '{name}' "
                    "(strata.nn.Module or None expected)"
                )
            self._modules[name] = registered(everywhere.module_registration, self, name, value)
        elif isinstance(value, Buffer) or name in state.get("_buffers", ()):
            self._assign_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _assign_buffer(self, name: str, value: Any) -> None:
        if value is not None and not (isinstance(value, Tensor) or hasattr(value, "__torch_function__")):
            raise TypeError(
                f"cannot assign '{strata.typename(value)}' as buffer '{name}' "
                "(strata.nn.Buffer, strata.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        if persistent:  # a subclass may override register_buffer without this argument
            self.register_buffer(name, value)
        else:
            self.register_buffer(name, value, persistent=False)

    def __delattr__(self, name: str) -> None:
        for registry in (self._parameters, self._buffers, self._modules):
            if name in registry:
                del registry[name]
                if registry is self._buffers:
                    self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        members = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in members if not name[0].isdigit())

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOK_REGISTRIES:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # ---- hooks

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """`hook(module, args)` runs before forward and may return new args; with_kwargs: `hook(module, args, kwargs)`,
        which may return `(args, kwargs)`."""
        flags = [self._forward_pre_hooks_with_kwargs]
        handle = add_hook(self._forward_pre_hooks, hook, flags=flags, prepend=prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """`hook(module, args, output)` runs after forward and may return another output; with_kwargs adds kwargs
        before the output; always_call runs it even where forward raised."""
        flags = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        handle = add_hook(self._forward_hooks, hook, flags=flags, prepend=prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_output)` runs before the module's gradients are computed and may replace grad_output."""
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_input, grad_output)` runs when the input gradients are there and may replace them."""
        check_backward_kind(self, full=True)
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """The older form, which sees the gradients of the module's last operator only."""
        check_backward_kind(self, full=False)
        return add_hook(self._backward_hooks, hook)

    # ---- modes

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Calls `fn` on every submodule, children first, then on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Sets `training` here and below. ValueError where mode is not a bool."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Same as `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets `requires_grad` of every parameter."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops every parameter's gradient, or fills it with zeros where `set_to_none` is False."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None  # also where there is none: a graph that is being captured takes note
                continue
            gradient = parameter.grad
            if gradient is None:
                continue
            if gradient.grad_fn is not None:
                gradient.detach_()
            else:
                gradient.requires_grad_(False)
            gradient.zero_()

    # ---- printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What a subclass prints between the parentheses besides its children."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        own_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): " + _addindent(repr(child), 2) for name, child in self._modules.items()]
        name = self._get_name()
        if not own_lines and not child_lines:
            return name + "()"
        if len(own_lines) == 1 and not child_lines:
            return f"{name}({own_lines[0]})"
        return f"{name}(\n  " + "\n  ".join(own_lines + child_lines) + "\n)"


install_module_methods(Module)
