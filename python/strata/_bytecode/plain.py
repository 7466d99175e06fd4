"""The machine that does what Python does: for stretches between captured ones that cannot be captured."""

from __future__ import annotations

import builtins
import operator
import types
from collections.abc import Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from .frame import Frame


class Plain:
    """Operations as they are. Calls run natively."""

    errors = (BaseException,)
    counted = False  # there are no numbers that are not settled
    acts = True  # what it calls runs now, and asks the thread what is being handled

    def before(self, f: Frame) -> None:
        pass

    def unknown(self, name: str) -> NoReturn:
        raise NotImplementedError(f"compile: opcode {name} inside of a function that was interrupted; use strata.compiler.disable")

    @staticmethod
    def returned(f: Frame, value: Any) -> Any:
        return value

    @staticmethod
    def wrap_error(error: BaseException) -> BaseException:
        return error

    @staticmethod
    def unwrap_error(error: BaseException) -> BaseException:
        return error

    def made_cell(self, cell: types.CellType) -> None:
        pass

    def made_function(self, function: types.FunctionType) -> None:
        pass

    def cell_get(self, cell: types.CellType, name: str) -> Any:
        try:
            return cell.cell_contents
        except ValueError:
            raise NameError(f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope") from None

    def cell_set(self, cell: types.CellType, value: Any) -> None:
        cell.cell_contents = value

    def global_get(self, f: Frame, name: str) -> Any:
        if name in f.globals:
            return f.globals[name]
        if name in f.builtins:
            return f.builtins[name]
        raise NameError(f"name '{name}' is not defined")

    def global_set(self, f: Frame, name: str, value: Any) -> None:
        f.globals[name] = value

    def global_delete(self, f: Frame, name: str) -> None:
        if name not in f.globals:
            raise NameError(f"name '{name}' is not defined")
        del f.globals[name]

    def cell_delete(self, cell: types.CellType) -> None:
        del cell.cell_contents

    getattr = staticmethod(builtins.getattr)
    setattr = staticmethod(builtins.setattr)
    delattr = staticmethod(builtins.delattr)
    getitem = staticmethod(operator.getitem)
    setitem = staticmethod(operator.setitem)
    delitem = staticmethod(operator.delitem)
    contains = staticmethod(operator.contains)
    truth = staticmethod(bool)
    holds = staticmethod(lambda value, wanted: bool(value) is wanted)
    same = staticmethod(operator.is_)
    iter = staticmethod(builtins.iter)
    listed = staticmethod(list)
    as_dict = staticmethod(dict)

    def import_name(self, f: Frame, name: str, names: Any, level: int) -> Any:
        return __import__(name, f.globals, None, names, level)

    def unary(self, name: str, a: Any) -> Any:
        return builtins.getattr(operator, name)(a)

    def binary(self, name: str, a: Any, b: Any) -> Any:
        return builtins.getattr(operator, name)(a, b)

    def next(self, it: Any, sent: Any = None) -> tuple[bool, Any]:
        try:
            return True, next(it) if sent is None else it.send(sent)
        except StopIteration as stop:
            return False, stop.value

    @staticmethod
    def slice(bounds: list) -> slice:
        return slice(*bounds)

    def matches(self, value: Any, kind: str) -> bool:
        if kind == "mapping":
            return isinstance(value, Mapping)
        return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))

    def matches_error(self, error: BaseException, kinds: Any) -> bool:
        return isinstance(error, kinds)

    def enter(self, manager: Any) -> tuple[Any, Any]:
        kind = type(manager)
        enter, leave = kind.__enter__, kind.__exit__
        leave = leave.__get__(manager, kind)
        return enter(manager), leave

    def call(self, function: Any, args: tuple, kwargs: dict, f: Frame | None = None) -> Any:
        if function is super and not args and f is not None:
            args = own_class_and_self(f)
        return function(*args, **kwargs)


def own_class_and_self(f: Frame) -> tuple:
    """What super() without arguments stands for in a method."""
    cell = f.locals[f.names.index("__class__")]
    first = f.locals[0]
    if isinstance(first, types.CellType) and f.names[0] in f.code.co_cellvars:
        first = first.cell_contents
    return cell.cell_contents, first
