"""L-BFGS. Source: Nocedal and Wright, Numerical Optimization (2006), algorithms 7.4 and 7.5."""

from __future__ import annotations

import strata
from strata import Tensor

from ._line_search import strong_wolfe
from .optimizer import Optimizer, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .optimizer import Params

__all__ = ["LBFGS"]


def _real(t: Tensor) -> Tensor:
    return strata.view_as_real(t) if t.is_complex() else t


class LBFGS(Optimizer):
    """Steps along directions from the last history_size changes of parameters and gradients; `step(closure)` only.

    max_iter: directions a step. max_eval: calls of closure a step (max_iter * 5 / 4). line_search_fn: None takes steps
    of length lr, "strong_wolfe" searches. Stops where no gradient exceeds tolerance_grad, or loss and parameters change
    by less than tolerance_change. A complex parameter is twice as many real ones. ValueError for more than one group.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, settings(locals()))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _gradient(self) -> Tensor:
        """All gradients in one vector, zeros where a parameter has none."""
        parts = [strata.zeros_like(p) if p.grad is None else p.grad for p in self._params]
        return strata.cat([_real(part).reshape(-1) for part in parts])

    def _move(self, length: float, direction: Tensor) -> None:
        """Adds length * direction to the parameters."""
        parameters = [_real(p) for p in self._params]
        for p, part in zip(parameters, direction.split([p.numel() for p in parameters]), strict=True):
            p.add_(part.view_as(p), alpha=length)

    def _at(self, closure: Callable, start: list[Tensor], length: float, direction: Tensor) -> tuple[float, Tensor]:
        """Loss and gradient at length along the direction; the parameters end where they were."""
        self._move(length, direction)
        loss = float(closure())
        gradient = self._gradient()
        for p, before in zip(self._params, start, strict=True):
            p.copy_(before)
        return loss, gradient

    @staticmethod
    def _direction(state: dict[str, Any], gradient: Tensor, history_size: int) -> Tensor:
        """The two loops over the history, after the last move has joined it."""
        change = gradient - state["prev_flat_grad"]
        move = state["d"] * state["t"]
        product = float(change.dot(move))
        changes, moves, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        if product > 1e-10:
            if len(changes) == history_size:
                for past in (changes, moves, inverses):
                    past.pop(0)
            changes.append(change)
            moves.append(move)
            inverses.append(1.0 / product)
            state["H_diag"] = product / float(change.dot(change))
        result = -gradient
        factors = [0.0] * len(changes)
        for i in reversed(range(len(changes))):
            factors[i] = float(moves[i].dot(result)) * inverses[i]
            result.add_(changes[i], alpha=-factors[i])
        result = result * state["H_diag"]
        for i, (past_change, past_move, inverse) in enumerate(zip(changes, moves, inverses, strict=True)):
            result.add_(past_move, alpha=factors[i] - float(past_change.dot(result)) * inverse)
        return result

    def step(self, closure: Callable[[], Any]) -> Any:
        """Up to max_iter moves. closure: clears the gradients, computes the loss and its gradients, gives the loss.

        Returns the first loss. RuntimeError for an unknown line_search_fn.
        """
        group = self.param_groups[0]
        search, lr = group["line_search_fn"], float(group["lr"])
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        with strata.no_grad():
            return self._step(strata.enable_grad()(closure), group, search is not None, lr)

    def _step(self, closure: Callable, group: dict[str, Any], searching: bool, lr: float) -> Any:
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss = float(first)
        evaluations = 1
        state["func_evals"] += 1
        gradient = self._gradient()
        if not bool(gradient.abs().max() > group["tolerance_grad"]):
            return first
        for i in range(group["max_iter"]):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                state.update(d=-gradient, old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
                length = min(1.0, 1.0 / float(gradient.abs().sum())) * lr
            else:
                state["d"] = self._direction(state, gradient, group["history_size"])
                length = lr
            state["prev_flat_grad"], before = gradient.clone(), loss
            state["prev_loss"] = before
            direction = state["d"]
            state["t"] = length
            slope = float(gradient.dot(direction))
            if slope > -group["tolerance_change"]:
                break
            last = i == group["max_iter"] - 1
            calls = 0
            if searching:
                start = [p.clone() for p in self._params]
                loss, gradient, length, calls = strong_wolfe(
                    lambda at, start=start, along=direction: self._at(closure, start, at, along),
                    length, direction, loss, gradient, slope, most=group["max_eval"] - evaluations,
                )  # fmt: skip
                state["t"] = length
                self._move(length, direction)
            else:
                self._move(length, direction)
                if not last:
                    loss = float(closure())
                    gradient = self._gradient()
                    calls = 1
            evaluations += calls
            state["func_evals"] += calls
            small = bool(gradient.abs().max() <= group["tolerance_grad"]) if searching or not last else False
            still = bool((direction * length).abs().max() <= group["tolerance_change"])
            if last or evaluations >= group["max_eval"] or small or still:
                break
            if abs(loss - before) < group["tolerance_change"]:
                break
        return first
