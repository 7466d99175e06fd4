"""Why a capture stopped: breaks, what cannot be captured, and how that is told."""

from __future__ import annotations

import contextlib
from _thread import _local
from collections import Counter, defaultdict

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_HINT = "do it outside of what is compiled; without fullgraph=True it runs as it is, and what follows is captured again"


class Control(Exception):
    """What steers captures; no exception of the program's."""


class Break(Control):
    """An operation that cannot be captured: it runs as it is, and what follows is captured anew.

    reason: what it is. hint: what to write instead, if anything. place: where, as decode.place tells it. while_: a function that
    says whether the reason still holds. of_sizes: it may hold for the sizes of this capture alone.
    """

    def __init__(self, reason: str, hint: str = "", while_: Any = None, of_sizes: bool = False):
        super().__init__(reason)
        self.reason, self.hint, self.place, self.while_ = reason, hint or _HINT, "", while_
        self.of_sizes = of_sizes

    def text(self) -> str:
        parts = [f"Graph break: {self.reason}", f"  Hint: {self.hint}"]
        if self.place:
            parts.append("  " + self.place.replace("\n", "\n  "))
        return "\n".join(parts)


class Restart(Control):
    """A capture begins again, to end before the step of that number."""

    def __init__(self, step: int, why: Break):
        super().__init__(step)
        self.step, self.why = step, why


class Fixed(Control):
    """A capture that cannot have symbolic sizes begins again without; with them, where `again`."""

    def __init__(self, reason: str, again: bool = False):
        super().__init__(reason)
        self.again = again


class Raised(Exception):
    """An exception of the program itself."""

    def __init__(self, error: BaseException):
        super().__init__(error)
        self.error = error


class Unfit(Exception):
    """An entry is not for the sizes of a call, and why. check: the program raises there."""

    def __init__(self, text: str, check: bool = False):
        super().__init__(text)
        self.check = check


class Asked(Control):
    """A capture begins again, prepared for what is asked of values that it reads. reads: which; why: they cannot be captured then."""

    def __init__(self, reads: frozenset[int], why: str = ""):
        super().__init__(why)
        self.reads, self.why = reads, why


class Replan(Control):
    """A capture begins again, since it has found what its parts must give each other."""


class Failing(Control):
    """A check of the program's fails, of what was read of tensors: this call runs as it is, which raises."""


class SizeViolation(ValueError):
    """A dim that was marked as dynamic is none, or is not in its range."""


class Forbidden(AssertionError):
    """What a compiled function may not call was called in it."""


class TorchDynamoException(RuntimeError):
    """What compile raises of its own."""


class Unsupported(TorchDynamoException):
    """What strata.compile(fullgraph=True) raises where a function is not one graph."""


class BackendCompilerFailed(TorchDynamoException):
    """What a compiled function raises where its backend raised, or gave nothing that can be called."""

    def __init__(self, text: str, backend_name: str = "", inner_exception: Exception | None = None):
        super().__init__(text)
        self.backend_name, self.inner_exception = backend_name, inner_exception


class FailOnRecompileLimitHit(Unsupported):
    """What a compiled function raises beyond the limit of recompiles where it must be one graph (fullgraph=True)."""


class RecompileError(TorchDynamoException):
    """What a compiled function raises where set_stance("fail_on_recompile") forbids a recompile."""


# What PyTorch counts under the same names: counters["stats"]["unique_graphs"], counters["graph_break"][reason].
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
_of_thread = _local()


def breaks_are_errors(fullgraph: bool) -> bool:
    """Whether a break raises: as error_on_graph_break says on this thread, else where the whole function must be one graph."""
    said = getattr(_of_thread, "breaks_are_errors", None)
    return fullgraph if said is None else said


class error_on_graph_break(contextlib.ContextDecorator):
    """In a `with` block, or in the calls of a function that it decorates, a break raises (True), or does not, whatever fullgraph
    says (False)."""

    def __init__(self, error: bool) -> None:
        if not isinstance(error, bool):
            raise TypeError(f"error_on_graph_break: expected a bool, got {type(error).__name__}")
        self.error = error
        self.before: list[bool | None] = []

    def __enter__(self) -> None:
        self.before.append(getattr(_of_thread, "breaks_are_errors", None))
        _of_thread.breaks_are_errors = self.error

    def __exit__(self, *_: object) -> None:
        _of_thread.breaks_are_errors = self.before.pop()


def logs(kind: str) -> bool:
    """Whether STRATA_LOGS, or set_logs, asks for that kind."""
    return _C._logs(kind)


def tell(kind: str, text: Any) -> None:
    """Writes lines of a log on stderr, where it is asked for."""
    if _C._logs(kind):
        _C._log(kind, str(text))


internal_errors = "warn"  # or "raise", which tests do: a fault of the capture must not hide behind eager's right answer


class InternalError(TorchDynamoException):
    """A fault of strata.compile itself."""


def internal(error: Exception, where: str) -> Break:
    """What stands for an exception of the capture's own: the function runs as it is, after a warning that says so."""
    line = traceback_of(error)
    text = f"strata.compile: an internal error of the capture: {type(error).__name__}: {error} ({line}). Please report it, with\n{where}"
    if internal_errors == "raise":
        raise InternalError(text) from error
    warn(f"{text}\nThe function runs as it is", RuntimeWarning)
    return Break(f"internal error of the capture: {type(error).__name__}: {error} ({line})", "please report it")


def over_limit(what: str, more: str, fullgraph: bool) -> None:
    """Raises where a function must be one graph, else warns that it runs as it is."""
    if breaks_are_errors(fullgraph):
        raise FailOnRecompileLimitHit(f"{what}, and fullgraph=True forbids that it runs as it is. {more}")
    warn(f"{what}; it runs as it is from now on. {more}")


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning of the line of the program that led here."""
    import sys
    import warnings

    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "strata":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def traceback_of(error: Exception) -> str:
    """File and line where it was raised."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return "nowhere" if at is None else f"{at.tb_frame.f_code.co_filename.rpartition('/')[2]}:{at.tb_lineno}"
