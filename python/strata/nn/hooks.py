"""Hooks of modules: handles, the registries common to all modules, and the call of a module that has any.

`Module.__call__` takes the short way while every registry is empty; `call_with_hooks` is the long one.
"""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from .modules.module import Module

_MIXED = "Cannot use both regular backward hooks and full backward hooks {where}. Please use only one of them."


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook away; also a context manager that does so."""

    __module__ = "strata.utils.hooks"  # where PyTorch's files have it

    next_id: int = 0

    def __init__(self, hooks_dict: OrderedDict, *, extra_dict: dict | list[dict] | None = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extras = [] if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extras)

    def remove(self) -> None:
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            registry = reference()
            if registry is not None:
                registry.pop(self.id, None)

    def __getstate__(self) -> tuple:
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, state: tuple) -> None:
        hooks, self.id, extras = state
        # A handle whose dictionary is gone points at a fresh one that nobody else holds: removing is then a no-op.
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extras if extra is not None)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def add_hook(
    registry: OrderedDict, hook: Callable, *, flags: list[dict] | None = None, prepend: bool = False
) -> RemovableHandle:
    """Puts `hook` into `registry` and returns its handle; `flags` are emptied of the id together with it."""
    move = registry.move_to_end if prepend else None  # what has none is refused before it is changed
    handle = RemovableHandle(registry, extra_dict=flags)
    registry[handle.id] = hook
    if move is not None:
        move(handle.id, last=False)
    return handle


class WrappedHook:
    """A load-state-dict pre-hook, called with its module in front where it was registered so."""

    # PyTorch's files name it so.
    __module__, __qualname__ = "strata.nn.modules.module", "_WrappedHook"

    def __init__(self, hook: Callable, module: Module | None = None) -> None:
        self.hook = hook
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict) -> None:
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


class GlobalHooks:
    """The registries that hold for every module."""

    def __init__(self) -> None:
        self.backward_pre: OrderedDict = OrderedDict()
        self.backward: OrderedDict = OrderedDict()
        self.backward_is_full: bool | None = None
        self.forward_pre: OrderedDict = OrderedDict()
        self.forward: OrderedDict = OrderedDict()
        self.forward_with_kwargs: OrderedDict = OrderedDict()
        self.forward_always: OrderedDict = OrderedDict()
        self.buffer_registration: OrderedDict = OrderedDict()
        self.module_registration: OrderedDict = OrderedDict()
        self.parameter_registration: OrderedDict = OrderedDict()


everywhere = GlobalHooks()


def registered(registry: OrderedDict, module: Module, name: str, value: Any) -> Any:
    """`value` as the registration hooks leave it: each may replace it by what it returns."""
    for hook in registry.values():
        replacement = hook(module, name, value)
        if replacement is not None:
            value = replacement
    return value


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """`hook(module, name, buffer)` runs at every `register_buffer`; what it returns replaces the buffer."""
    return add_hook(everywhere.buffer_registration, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """`hook(module, name, submodule)` runs when any submodule is registered; what it returns replaces it."""
    return add_hook(everywhere.module_registration, hook)


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """`hook(module, name, parameter)` runs at every `register_parameter`; what it returns replaces it."""
    return add_hook(everywhere.parameter_registration, hook)


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """`hook(module, args)` runs before every module's forward, ahead of its own pre-hooks."""
    return add_hook(everywhere.forward_pre, hook)


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """`hook(module, args, output)` runs after every module's forward, ahead of its own hooks."""
    flags = [everywhere.forward_with_kwargs, everywhere.forward_always]
    handle = add_hook(everywhere.forward, hook, flags=flags)
    if with_kwargs:
        everywhere.forward_with_kwargs[handle.id] = True
    if always_call:
        everywhere.forward_always[handle.id] = True
    return handle


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """`hook(module, grad_output)` runs before every module's gradient is computed."""
    return add_hook(everywhere.backward_pre, hook)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """`hook(module, grad_input, grad_output)` runs once every module's input gradients are there."""
    if everywhere.backward_is_full is False:
        raise RuntimeError(_MIXED.format(where="as a global Module hook"))
    everywhere.backward_is_full = True
    return add_hook(everywhere.backward, hook)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """The older form, which sees the gradients of the last operator of the module only."""
    if everywhere.backward_is_full is True:
        raise RuntimeError(_MIXED.format(where="as a global Module hook"))
    everywhere.backward_is_full = False
    return add_hook(everywhere.backward, hook)


def check_backward_kind(module: Module, full: bool) -> None:
    """Marks which kind of backward hook the module carries; RuntimeError where it has the other one."""
    if module._is_full_backward_hook is (not full):
        raise RuntimeError(_MIXED.format(where="on a single Module"))
    module._is_full_backward_hook = full


def _run_forward_pre_hooks(module: Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    with_kwargs = module._forward_pre_hooks_with_kwargs
    for hook_id, hook in (*everywhere.forward_pre.items(), *module._forward_pre_hooks.items()):
        if hook_id in with_kwargs:
            replaced = hook(module, args, kwargs)
            if replaced is None:
                continue
            if not (isinstance(replaced, tuple) and len(replaced) == 2):
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {replaced}."
                )
            args, kwargs = replaced
        else:
            replaced = hook(module, args)
            if replaced is not None:
                args = replaced if isinstance(replaced, tuple) else (replaced,)
    return args, kwargs


def _register_node_hooks(module: Module, result: Any, hooks: list[Callable]) -> None:
    leaf = result
    while not isinstance(leaf, strata.Tensor):
        leaf = next(v for v in leaf.values() if isinstance(v, strata.Tensor)) if isinstance(leaf, dict) else leaf[0]
    node = leaf.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(WrappedHook(hook, module))


class _Call:
    """One call of a module with hooks, and what of it has run: always-called hooks still run after an error."""

    def __init__(self, module: Module, args: tuple, kwargs: dict) -> None:
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.ran: set[int] = set()

    def run(self) -> Any:
        module = self.module
        full: list[Callable] = []
        plain: list[Callable] = []
        if everywhere.backward:
            (full if everywhere.backward_is_full else plain).extend(everywhere.backward.values())
        if module._backward_hooks:
            (full if module._is_full_backward_hook else plain).extend(module._backward_hooks.values())
        before = [*everywhere.backward_pre.values(), *module._backward_pre_hooks.values()]
        if everywhere.forward_pre or module._forward_pre_hooks:
            self.args, self.kwargs = _run_forward_pre_hooks(module, self.args, self.kwargs)

        backward = None
        if full or before:
            from .backward_hook import BackwardHook

            backward = BackwardHook(module, full, before)
            self.args = backward.setup_input_hook(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        self._run_forward_hooks()
        if backward is not None:
            if not isinstance(self.result, (strata.Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                    f"but received {type(self.result)}",
                    stacklevel=4,
                )
            self.result = backward.setup_output_hook(self.result)
        if plain:
            _register_node_hooks(module, self.result, plain)
        return self.result

    def _hook_result(self, hook_id: int, hook: Callable) -> None:
        module = self.module
        if hook_id in module._forward_hooks_with_kwargs or hook_id in everywhere.forward_with_kwargs:
            replaced = hook(module, self.args, self.kwargs, self.result)
        else:
            replaced = hook(module, self.args, self.result)
        if replaced is not None:
            self.result = replaced

    def _run_forward_hooks(self) -> None:
        for hook_id, hook in (*everywhere.forward.items(), *self.module._forward_hooks.items()):
            self.ran.add(hook_id)
            self._hook_result(hook_id, hook)

    def run_always_called(self) -> None:
        """After an error: the hooks marked `always_call` that have not run; their own errors become warnings."""
        module = self.module
        registries = (
            ("global module", everywhere.forward, everywhere.forward_always),
            ("module", module._forward_hooks, module._forward_hooks_always_called),
        )
        for kind, hooks, always in registries:
            for hook_id, hook in hooks.items():
                if hook_id not in always or hook_id in self.ran:
                    continue
                try:
                    self._hook_result(hook_id, hook)
                except Exception as error:
                    warnings.warn(
                        f"{kind} forward hook with ``always_call=True`` raised an exception that was silenced "
                        f"as another error was raised in forward: {error}",
                        stacklevel=4,
                    )


def call_with_hooks(module: Module, args: tuple, kwargs: dict) -> Any:
    """Forward of `module` with its hooks and the global ones around it."""
    call = _Call(module, args, kwargs)
    try:
        return call.run()
    except Exception:
        call.run_always_called()
        raise
