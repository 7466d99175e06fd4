"""Builtins that call back, in Python, so that what they call is executed instruction by instruction."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any


def map_(function: Callable, *iterables: Iterable) -> Iterator:
    for items in zip(*iterables):  # noqa: B905
        yield function(*items)


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
    if strict:
        raise NotImplementedError("zip(strict=True) of generators")
    iterators = [iter(iterable) for iterable in iterables]
    done = object()
    while iterators:
        items = []
        for iterator in iterators:
            item = next(iterator, done)
            if item is done:
                return
            items.append(item)
        yield tuple(items)


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


def best(largest: bool, items: list, key: Callable) -> Any:
    """max() and min() with a key: the first of equals."""
    if not items:
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
