"""Calls of objects that are no functions of Python: getters, functions that keep their results, compiled ones."""

from __future__ import annotations

import functools
import operator

from strata import _C
from strata._graph_form import same_constant

from . import values
from .reasons import Break
from .sizes import settled
from .sources import const

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Callables:
    def call_getter(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """itemgetter, attrgetter and methodcaller of the module operator."""
        if len(args) != 1 or kwargs:
            return self.native(function, *args, **kwargs)
        made, given = function.__reduce__()[:2]
        if type(function) is operator.methodcaller:
            more = made.keywords if isinstance(made, functools.partial) else {}
            name, *rest = (*made.args, *given) if isinstance(made, functools.partial) else given
            return self.call(self.getattr(args[0], name), tuple(rest), more)
        if type(function) is operator.itemgetter:
            found = tuple(self.getitem(args[0], key) for key in given)
        else:
            found = tuple(functools.reduce(self.getattr, name.split("."), args[0]) for name in given)
        return found if len(found) > 1 else found[0]

    def call_compiled(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A function that was compiled is captured as what it was made of."""
        if not hasattr(function, "_strata_compiled"):
            raise Break(f"a call of a {type(function).__name__}")
        if self.is_outside(function):
            self.guards.add("is", self.known[id(function)], function)
        compiled = function._strata_compiled
        self.guards.add("is", const(compiled.function).attr("__code__"), compiled.code)
        owners = self.source_of(function).attr("_owner")
        first = [self.load(owner, owners.item(i)) for i, owner in enumerate(function._owner)]
        return self.call_function(compiled.function, (*first, *args), kwargs)

    def call_cached(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A function that keeps its results (functools.cache) is called as it is, by the capture and, before each later call, by a
        guard: what it gives is still the same object."""
        args, kwargs = settled((args, kwargs))
        for value in (*args, *kwargs.values()):
            if not self.is_plain(value):
                if not self.is_outside(value) or values.is_tensor(value) or not self.hash_is_native(value):
                    raise Break(f"a {type(value).__name__} is an argument of a function that keeps its results")
                self.guards.add("is", self.known[id(value)], value)
        found = self.native(_C._recording_aside, lambda: function(*args, **kwargs))
        if values.is_constant(found):
            self.guards.add("call", None, lambda: same_constant(function(*args, **kwargs), found))
            return found
        self.guards.add("call", None, lambda: function(*args, **kwargs) is found)
        return self.load(found, const(found))
