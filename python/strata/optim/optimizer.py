"""Optimizer: parameter groups, state, state dictionaries and hooks. Subclasses define how a group is stepped.

A subclass gives `_new_state(group, parameter)` and `_update(group, parameters, grads)`; `step` does the rest. State is
made at a parameter's first gradient, or for all parameters by `init_state()`, which a graph capture needs before it.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from copy import deepcopy
from itertools import chain

import strata
from strata import Tensor, _capture, _lazy

from ..nn.hooks import RemovableHandle, add_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Params = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]

_HELPERS = (
    "_capturable_doc _default_to_fused_or_foreach _device_dtype_check_for_fused _differentiable_doc _disable_dynamo_if_unsupported "
    "_foreach_doc _foreach_supported_types _fused_doc _get_capturable_supported_devices _get_foreach_kernels_supported_devices _get_scalar_dtype "
    "_get_value _maximize_doc _params_doc _stack_if_compiling _to_scalar _use_grad_for_differentiable _view_as_real"
)
__getattr__ = _lazy.of(globals(), {"._own_helpers": _HELPERS})[0]

ParamsT = object  # in annotations of programs: what an optimiser's params may be

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]

_global_pre_hooks: OrderedDict = OrderedDict()
_global_post_hooks: OrderedDict = OrderedDict()

_REGISTRIES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` runs before every optimiser's step; it may return new (args, kwargs)."""
    return add_hook(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` runs after every optimiser's step."""
    return add_hook(_global_post_hooks, hook)


def _with_hooks(step: Callable) -> Callable:
    """`step` with the hooks around it."""

    @functools.wraps(step)
    def hooked_step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if _global_pre_hooks or self._optimizer_step_pre_hooks:
            for hook in chain(_global_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                replaced = hook(self, (self, *args), kwargs)
                if replaced is None:
                    continue
                if not (isinstance(replaced, tuple) and len(replaced) == 2):
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {replaced}."
                    )
                (self, *args), kwargs = replaced
        result = step(self, *args, **kwargs)
        if _global_post_hooks or self._optimizer_step_post_hooks:
            for hook in chain(self._optimizer_step_post_hooks.values(), _global_post_hooks.values()):
                hook(self, (self, *args), kwargs)
        return result

    hooked_step.hooked = True
    return hooked_step


def check_not_negative(name: str, value: Any) -> None:
    """ValueError for a value below 0, or NaN; `name` is what the message calls it."""
    if not value >= 0.0:
        raise ValueError(f"Invalid {name}: {value}")


def check_lr(lr: float | Tensor) -> None:
    """ValueError for a negative learning rate, or a tensor of more than one element."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check_not_negative("learning rate", lr)


def check_betas(betas: tuple[float, float]) -> None:
    """ValueError for a beta outside [0, 1)."""
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def check_modes(differentiable: bool, fused: bool | None = None, foreach: bool | None = None) -> None:
    """Refuses what cannot be: RuntimeError for keywords that exclude each other, NotImplementedError otherwise."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if differentiable:
        raise NotImplementedError(
            "differentiable=True is not provided: write the update with out-of-place operators, which autograd follows"
        )


def settings(given: dict[str, Any], not_negative: str = "") -> dict[str, Any]:
    """The options of a class: the arguments of its __init__, which are its locals(). ValueError for lr, betas, or one of
    those that may not be negative, out of range; NotImplementedError for modes that there are not."""
    found = {name: value for name, value in given.items() if name not in ("self", "params", "__class__")}
    check_lr(found["lr"])
    for name in not_negative.split():
        check_not_negative(f"{'epsilon' if name == 'eps' else name} value", found[name])
    if "betas" in found:
        check_betas(found["betas"])
    if "differentiable" in found:
        check_modes(found["differentiable"], found.get("fused"), found.get("foreach"))
    return found


def add_at(target: Tensor, places: Tensor, values: Tensor, alpha: float = 1) -> None:
    """Adds alpha times values to the elements, or rows, of target at places (dims, nnz)."""
    if places.shape[0] == 1:
        target.index_add_(0, places[0], values, alpha=alpha)
    else:
        target.index_put_(tuple(places), values * alpha, accumulate=True)


def new_step(parameter: Tensor) -> Tensor:
    """A count of steps: a 0-dim tensor of scalar_dtype() on the CPU, where the numbers of a step are computed."""
    return strata.zeros((), dtype=scalar_dtype(), device="meta" if parameter.is_meta else "cpu")


def scalar_dtype() -> strata.dtype:
    """Of numbers in a state: float64 where it is the default dtype, else float32."""
    return strata.float64 if strata.get_default_dtype() == strata.float64 else strata.float32


class Optimizer:
    """Base of all optimisers.

    params: parameters, or (name, parameter) pairs, or dictionaries of groups with their own options.
    defaults: the options of groups that do not set them. TypeError and ValueError say what params cannot be.
    """

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._prepare()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + strata.typename(params)
            )
        self.state: defaultdict[Tensor, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _prepare(self) -> None:
        """Hook registries where missing, and hooks around the class's step (once for each class)."""
        for name in _REGISTRIES:
            self.__dict__.setdefault(name, OrderedDict())
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = _with_hooks(cls.step)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)
            if type(self)._new_state is Optimizer._new_state:
                continue  # the subclass keeps its state in its own way
            for parameter in group["params"]:
                state = self.state.get(parameter, {})
                if "step" in state and not isinstance(state["step"], Tensor):  # as older checkpoints have it
                    state["step"] = new_step(parameter).fill_(float(state["step"]))

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for name in sorted(group):
                if name != "params":
                    text += f"    {name}: {group[name]}\n"
        return text + ")"

    # ---- groups

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist: list, with_indices: bool = False) -> dict:
        """What utils._foreach_utils has by this name, for optimisers of programs."""
        from strata.utils._foreach_utils import _group_tensors_by_device_and_dtype

        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group: "params", and options that differ from the defaults.

        TypeError for what is no dictionary, no ordered collection or no tensor; ValueError for a tensor that is no
        leaf, a missing required option, names on some parameters only, or a parameter of another group.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                "sets will change between runs. Please use a list instead."
            )
        members = [given] if isinstance(given, Tensor) else list(given)
        names = [member[0] for member in members if isinstance(member, tuple)]
        if names and len(names) != len(members):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        if names:
            members = [parameter for _, parameter in members]
            param_group["param_names"] = names
        param_group["params"] = members
        for parameter in members:
            if not isinstance(parameter, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {strata.typename(parameter)}"
                )
            if not (self.defaults.get("differentiable") or parameter.is_leaf or parameter.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        unique = set(members)
        if len(members) != len(unique):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=3,
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                which = "with names" if "param_names" in param_group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {which} to the optimizer"
                )
            if not unique.isdisjoint(group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops every parameter's gradient, or fills it with zeros where `set_to_none` is False."""
        for group in self.param_groups:
            for parameter in group["params"]:
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

    # ---- steps

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        """The state of a parameter before its first update; empty where there is none."""
        return {}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        raise NotImplementedError(
            f"{type(self).__name__} defines neither step() nor _update(group, params, grads): define one of them"
        )

    def _make_state(self, group: dict[str, Any], params: list[Tensor]) -> None:
        for parameter in params:
            if not self.state.get(parameter):
                state = self._new_state(group, parameter)
                if state:
                    self.state[parameter] = state

    def init_state(self) -> None:
        """Makes the state of every parameter that learns, so that a graph captured next has it as its input."""
        for group in self.param_groups:
            self._make_state(group, [parameter for parameter in group["params"] if parameter.requires_grad])

    def _patch_step_function(self) -> None:
        """For optimisers around others, which ask for it: step() is as it should be."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient. closure: computes the loss anew; its result is returned."""
        loss = None
        if (capture := _capture.current()) is not None:
            capture.note_step(self)
        if closure is not None:
            with strata.enable_grad():
                loss = closure()
        with strata.no_grad():
            for group in self.param_groups:
                params, grads = [], []
                for parameter in group["params"]:
                    grad = parameter.grad
                    if grad is not None:
                        params.append(parameter)
                        grads.append(grad)
                if any(type(grad) is not Tensor and grad.is_sparse for grad in grads):
                    params, grads = self._step_sparse(group, params, grads)
                if params:
                    self._make_state(group, params)
                    self._update(group, params, grads)
        return loss

    def _step_sparse(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> tuple[list, list]:
        """Updates the parameters whose gradients are sparse, and gives the others."""
        found = [(p, g) for p, g in zip(params, grads, strict=True) if g.is_sparse]
        self._make_state(group, [p for p, _ in found])
        for parameter, grad in found:
            grad = grad.coalesce()
            self._update_places(group, parameter, grad.indices(), -grad.values() if group.get("maximize") else grad.values())
        rest = [(p, g) for p, g in zip(params, grads, strict=True) if not g.is_sparse]
        return [p for p, _ in rest], [g for _, g in rest]

    def _update_places(self, group: dict[str, Any], parameter: Tensor, places: Tensor, values: Tensor) -> None:
        """Updates the elements, or rows, of a parameter that stand at places (sparse dims, nnz) by their gradients; the gradient
        of the others is 0."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients, please consider SparseAdam instead")

    # ---- hooks

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` runs before step; it may return new (args, kwargs)."""
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` runs after step."""
        return add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer)` runs before state_dict."""
        return add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend=prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer, state_dict)` runs after state_dict; what it returns replaces the result."""
        return add_hook(self._optimizer_state_dict_post_hooks, hook, prepend=prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer, state_dict)` runs before load_state_dict; what it returns is loaded instead."""
        return add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend=prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer)` runs after load_state_dict."""
        return add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend=prepend)

    # ---- state dictionaries

    def state_dict(self) -> dict[str, Any]:
        """ "state" by the parameters' numbers (counted over all groups), and "param_groups" with those numbers."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        start = 0
        groups = []
        for group in self.param_groups:
            for i, parameter in enumerate(group["params"], start):
                numbers.setdefault(id(parameter), i)
            start += len(group["params"])
            packed = {name: value for name, value in group.items() if name != "params"}
            packed["params"] = [numbers[id(parameter)] for parameter in group["params"]]
            groups.append(packed)
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, result)
            if replaced is not None:
                result = replaced
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over options and state; tensors are cast to their parameter's dtype and device.

        ValueError where the groups differ in number or size.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        saved_groups = deepcopy(state_dict["param_groups"])
        groups = self.param_groups
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, saved_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        owners = {}
        for group, saved in zip(groups, saved_groups, strict=True):
            for parameter, number in zip(group["params"], saved["params"], strict=True):
                owners[number] = parameter
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        state: defaultdict[Tensor, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in owners:
                parameter = owners[key]
                state[parameter] = _cast(parameter, value)
            else:
                state[key] = value
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)


def _cast(parameter: Tensor, value: Any, key: Any = None) -> Any:
    """`value` with its tensors on the parameter's device and in its dtype, which a step count does not take."""
    if isinstance(value, Tensor):
        if key == "step":
            dtype = value.dtype if value.dtype in (strata.float32, strata.float64) else scalar_dtype()
            return value.to(dtype=dtype, device=new_step(parameter).device)
        if parameter.is_floating_point():
            return value.to(dtype=parameter.dtype, device=parameter.device)
        return value.to(device=parameter.device)
    if isinstance(value, dict):
        return {name: _cast(parameter, entry, name) for name, entry in value.items()}
    if isinstance(value, (list, tuple, set)):
        return type(value)(_cast(parameter, entry) for entry in value)
    return value
