"""Running passes one after the other, in an order that their constraints allow."""

from __future__ import annotations

import functools
import inspect
from collections import deque

from strata import nn

from ...graph_module import GraphModule
from .pass_base import PassResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Pass = Callable[[nn.Module], PassResult | None]
    Constraint = Callable[[Pass, Pass], bool]

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def pass_result_wrapper(fn: Callable | None) -> Pass | None:
    """A function of a module that gives another one, or None and changes it, as a pass."""
    if fn is None:
        return None

    @functools.wraps(fn, updated=())
    def wrapped(gm: nn.Module) -> PassResult | None:
        result = fn(gm)
        if result is None or isinstance(result, nn.Module):
            return PassResult(gm if result is None else result, True)
        return result

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def this_before_that_pass_constraint(this: Callable, that: Callable) -> Constraint:
    """The constraint that one pass stands before another."""
    return lambda a, b: a != that or b != this


def _name(fn: Callable) -> str:
    return fn.__name__ if inspect.isfunction(fn) else type(fn).__name__


class PassManager:
    """Runs passes on a module, up to `steps` times, until nothing changes.

    constraints: functions of two passes, whether the first may stand before the second. run_checks_after_each_pass: whether the
    check of add_checks runs behind each pass, too. RuntimeError where no order fits.
    """

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes, self.constraints, self.steps = passes or [], constraints or [], steps or 1
        self.run_checks_after_each_pass, self.suppress_check_failures = run_checks_after_each_pass, suppress_check_failures
        self._validated = False
        self.check: Callable[[nn.Module], None] = lambda module: None

    def add_pass(self, _pass: Pass) -> None:
        """One more pass, at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """One more constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def add_checks(self, check: Callable[[nn.Module], None]) -> None:
        """What raises where a module is not right. It runs before the passes. TypeError for other than one argument."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def validate_constraints(self) -> None:
        """RuntimeError where the passes, as they stand, break a constraint."""
        for i, a in enumerate(self.passes):
            for j, b in enumerate(self.passes[i + 1 :]):
                if not all(may(a, b) for may in self.constraints):
                    raise RuntimeError(
                        f"pass schedule constraint violated. Expected {a} before {b} but found {a} at index {i} and {b} at index {j} in pass list."
                    )
        self._validated = True

    def solve_constraints(self) -> None:
        """Orders the passes. RuntimeError where no order fits."""
        before = {a: [b for b in self.passes if b != a and not all(may(a, b) for may in self.constraints)] for a in self.passes}
        ready, done = deque(p for p in self.passes if not before[p]), []
        while ready:
            done.append(ready.popleft())
            for p, others in before.items():
                if done[-1] in others:
                    others.remove(done[-1])
                    if not others:
                        ready.append(p)
        if self.constraints and len(done) < len(before):
            raise RuntimeError(f"Circular dependency detected within the following passes: {[p for p in before if p not in done]}")
        self.passes = done if self.constraints else self.passes
        self._validated = True

    def __call__(self, module: nn.Module) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            now = False
            for i, fn in enumerate(self.passes):
                try:
                    result = fn(module)
                    if not hasattr(result, "graph_module"):
                        raise TypeError(
                            f"The result of the pass {_name(fn)} should be type PassResult. Please wrap it with pass_result_wrapper()"
                        )
                    module, now = result.graph_module, now or result.modified
                    if isinstance(module, GraphModule):
                        module.recompile()
                    if self.run_checks_after_each_pass:
                        self.check(module)
                except Exception as error:
                    names = [_name(p) for p in self.passes[:i]]
                    raise Exception(f"An error occurred when running the '{_name(fn)}' pass after the following passes: {names}") from error
            changed = changed or now
            if not now:
                break
        return PassResult(module, changed)
