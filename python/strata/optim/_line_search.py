"""A line search for the strong Wolfe conditions.

Source: Nocedal and Wright, Numerical Optimization (2006), algorithms 3.5 and 3.6, with cubic interpolation (3.59) and
the safeguards of Schmidt's minFunc (2005).
"""

from __future__ import annotations

import math
from collections import namedtuple

from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["strong_wolfe"]

_DECREASE, _CURVATURE = 1e-4, 0.9

# A length along the line, the loss there, the gradient, and the slope along the line.
Point = namedtuple("Point", ["at", "loss", "gradient", "slope"])


def _cubic_minimum(a: Point, b: Point, low: float, high: float) -> float:
    """The minimum between low and high of the cubic with the losses and slopes of both points, or else the middle."""
    if a.at > b.at:
        a, b = b, a
    if a.at == b.at:
        return (low + high) / 2.0
    first = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at)
    square = first * first - a.slope * b.slope
    if not 0 <= square < math.inf:
        return (low + high) / 2.0
    root = math.sqrt(square)
    bottom = b.slope - a.slope + 2 * root
    if bottom == 0:
        return (low + high) / 2.0
    found = b.at - (b.at - a.at) * ((b.slope + root - first) / bottom)
    return min(max(found, low), high)


def strong_wolfe(
    evaluate: Callable[[float], tuple[float, Tensor]],
    length: float,
    direction: Tensor,
    loss: float,
    gradient: Tensor,
    slope: float,
    most: int,
    tolerance: float = 1e-9,
) -> tuple[float, Tensor, float, int]:
    """(loss, gradient, length, calls of evaluate) at a length where loss and slope have fallen enough.

    evaluate: loss and gradient at a length. length: the first one tried. loss, gradient, slope: at 0. most: steps of
    the search, after which the best bracket's lower end is taken. tolerance: the least width of the bracket.
    """
    largest = float(direction.abs().max())
    calls = 0

    def point(at: float) -> Point:
        nonlocal calls
        calls += 1
        there, grad = evaluate(at)
        fall = float(grad.dot(direction))
        if math.isnan(there) or math.isnan(fall):
            there = math.inf  # compares as what it is: worse than any other place
        return Point(at, there, grad, fall)

    def too_high(p: Point) -> bool:
        return p.loss > loss + _DECREASE * p.at * slope

    def flat_enough(p: Point) -> bool:
        return abs(p.slope) <= -_CURVATURE * slope

    origin = before = Point(0.0, loss, gradient, slope)
    now = point(length)
    steps = 0
    bracket = None
    while steps < most:  # outwards, until a minimum is enclosed
        if too_high(now) or (steps > 1 and now.loss >= before.loss):
            bracket = [before, now]
            break
        if flat_enough(now):
            return now.loss, now.gradient, now.at, calls
        if now.slope >= 0:
            bracket = [before, now]
            break
        at = _cubic_minimum(before, now, now.at + 0.01 * (now.at - before.at), now.at * 10)
        before, now = now, point(at)
        steps += 1
    if bracket is None:
        bracket = [origin, now]

    low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
    stuck = False
    while steps < most:  # inwards
        left, right = sorted((bracket[0].at, bracket[1].at))
        if (right - left) * largest < tolerance:
            break
        at = _cubic_minimum(bracket[0], bracket[1], left, right)
        margin = 0.1 * (right - left)
        if min(right - at, at - left) < margin:  # close to an end: once that is let pass
            if stuck or at >= right or at <= left:
                at = right - margin if abs(at - right) < abs(at - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        now = point(at)
        steps += 1
        if too_high(now) or now.loss >= bracket[low].loss:
            bracket[high] = now
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
            continue
        done = flat_enough(now)
        if not done and now.slope * (bracket[high].at - bracket[low].at) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = now
        if done:
            break
    best = bracket[low]
    return best.loss, best.gradient, best.at, calls
