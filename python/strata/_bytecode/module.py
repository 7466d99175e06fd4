"""A module that was compiled: it looks like the module, and calls the compiled forward."""

from __future__ import annotations

import strata

from . import callees, entry
from .whole_modules import HOOKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class OptimizedModule(strata.nn.Module):
    """`_orig_mod` is the module; attributes, parameters and state dictionaries are its own."""

    def __init__(self, model: Any, options: Any):
        state = self.__dict__
        super().__init__()
        self._modules["_orig_mod"] = model
        state["_compile_options"] = options
        state["_compiled_forward"] = {}
        state.pop("training", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs) if self._own_hooks() else self.forward(*args, **kwargs)

    def _own_hooks(self) -> bool:
        """Whether hooks were registered on it, rather than on the module."""
        return any(self.__dict__[name] for name in HOOKS)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        model = self._modules["_orig_mod"]
        if callees.plain_call(model):
            forward = model.forward
            function = getattr(forward, "__func__", None)
            if function is not None:
                return self._compiled_of(function)(forward.__self__, *args, **kwargs)
        return self._compiled_of(type(model).__call__)(model, *args, **kwargs)

    def _compiled_of(self, function: Any) -> entry.CompiledFunction:
        found = self._compiled_forward.get(function)
        if found is None:
            compiled = entry.Compiled(function, self._compile_options)
            found = self._compiled_forward[function] = entry.CompiledFunction(compiled, ())
        return found

    def guards(self) -> str:
        return "\n".join(c.guards() for c in self._compiled_forward.values())

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self.__dict__["_modules"]["_orig_mod"]
        return getattr(self.__dict__["_modules"]["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in type(self).__dict__ or name in self.__dict__:
            self.__dict__[name] = value
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]

    def train(self, mode: bool = True) -> OptimizedModule:
        self._orig_mod.train(mode)
        return self

    def eval(self) -> OptimizedModule:
        return self.train(False)

    def __reduce__(self) -> tuple:
        return OptimizedModule, (self._orig_mod, self._compile_options)
