"""Builtins that call back, in Python, so that what they call is executed instruction by instruction."""

from __future__ import annotations

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any


def map_(function: Callable, *iterables: Iterable) -> Iterator:
    for items in zip(*iterables):  # noqa: B905
        yield function(*items)


def fromkeys(iterable: Iterable, value: Any = None) -> dict:
    return {key: value for key in iterable}


def until(function: Callable, sentinel: Any) -> Iterator:
    while True:
        value = function()
        if value == sentinel:
            return
        yield value


def filter_(function: Callable | None, iterable: Iterable) -> Iterator:
    for item in iterable:
        if item if function is None else function(item):
            yield item


def enumerate_(iterable: Iterable, start: int = 0) -> Iterator:
    at = start
    for item in iterable:
        yield at, item
        at += 1


def zip_(*iterables: Iterable, strict: bool = False) -> Iterator:
    iterators = [iter(iterable) for iterable in iterables]
    done = object()
    while iterators:
        items = []
        for at, iterator in enumerate(iterators):
            item = next(iterator, done)
            if item is done:
                if strict and at:
                    raise ValueError(f"zip() argument {at + 1} is shorter than argument{' ' if at == 1 else 's 1-'}{at}")
                if strict:
                    for longer, other in enumerate(iterators[1:], 1):
                        if next(other, done) is not done:
                            raise ValueError(f"zip() argument {longer + 1} is longer than argument{' ' if longer == 1 else 's 1-'}{longer}")
                return
            items.append(item)
        yield tuple(items)


def reversed_(items: Any) -> Iterator:
    if hasattr(type(items), "__reversed__"):
        return items.__reversed__()
    if not hasattr(type(items), "__getitem__"):
        raise TypeError(f"'{type(items).__name__}' object is not reversible")
    return _backwards(items, len(items))


def _backwards(items: Any, count: int) -> Iterator:
    for at in range(count - 1, -1, -1):
        yield items[at]


def islice(iterable: Iterable, *bounds: int | None) -> Iterator:
    asked = slice(*bounds)
    at, wanted, step = 0, asked.start or 0, 1 if asked.step is None else asked.step
    end = None if asked.stop is None else max(wanted, asked.stop)
    iterator, done = iter(iterable), object()
    while end is None or at < end:
        item = next(iterator, done)
        if item is done:
            return
        if at == wanted:
            yield item
            wanted += step
        at += 1


def chain(*iterables: Iterable) -> Iterator:
    for iterable in iterables:
        yield from iterable


def zip_longest(*iterables: Iterable, fillvalue: Any = None) -> Iterator:
    iterators: list = [iter(iterable) for iterable in iterables]
    left, done = len(iterators), object()
    while left:
        items = []
        for at, iterator in enumerate(iterators):
            item = done if iterator is None else next(iterator, done)
            if item is done:
                if iterator is not None:
                    iterators[at] = None
                    left -= 1
                    if not left:
                        return
                item = fillvalue
            items.append(item)
        yield tuple(items)


def accumulate(iterable: Iterable, func: Callable | None = None, *, initial: Any = None) -> Iterator:
    iterator, done = iter(iterable), object()
    total = initial
    if initial is None:
        total = next(iterator, done)
        if total is done:
            return
    yield total
    for item in iterator:
        total = total + item if func is None else func(total, item)
        yield total


def starmap(function: Callable, iterable: Iterable) -> Iterator:
    for items in iterable:
        yield function(*items)


def takewhile(predicate: Callable, iterable: Iterable) -> Iterator:
    for item in iterable:
        if not predicate(item):
            return
        yield item


def dropwhile(predicate: Callable, iterable: Iterable) -> Iterator:
    dropping = True
    for item in iterable:
        dropping = dropping and bool(predicate(item))
        if not dropping:
            yield item


def filterfalse(function: Callable | None, iterable: Iterable) -> Iterator:
    for item in iterable:
        if not (item if function is None else function(item)):
            yield item


def pairwise(iterable: Iterable) -> Iterator:
    iterator, done = iter(iterable), object()
    before = next(iterator, done)
    if before is done:
        return
    for item in iterator:
        yield before, item
        before = item


def by_items(sequence: Any) -> Iterator:
    """A loop over what has __getitem__ alone."""
    at = 0
    while True:
        try:
            item = sequence[at]
        except IndexError:
            return
        yield item
        at += 1


def reduce(function: Callable, iterable: Iterable, *initial: Any) -> Any:
    iterator = iter(iterable)
    if initial:
        value = initial[0]
    else:
        value = next(iterator, map_)
        if value is map_:
            raise TypeError("reduce() of empty iterable with no initial value")
    for item in iterator:
        value = function(value, item)
    return value


def best(largest: bool, items: list, key: Callable, *default: Any) -> Any:
    """max() and min() with a key: the first of equals."""
    if not items:
        if default:
            return default[0]
        raise ValueError(f"{'max' if largest else 'min'}() arg is an empty sequence")
    found = items[0]
    at = key(found)
    for item in items[1:]:
        value = key(item)
        if (value > at) if largest else (value < at):
            found, at = item, value
    return found


def count_elements(mapping: dict, iterable: Iterable) -> None:
    for element in iterable:
        mapping[element] = mapping.get(element, 0) + 1


def from_iterable(iterables: Iterable) -> Iterator:
    for iterable in iterables:
        yield from iterable


def equal_items(a: list | tuple, b: list | tuple) -> bool:
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        if x is not y and not x == y:  # noqa: SIM201  another method than !=
            return False
    return True


def tensor_of_scalars(items: list | tuple) -> Any:
    return strata.stack([t.detach() for t in items])
