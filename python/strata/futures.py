"""Future: a result that another thread will set, with callbacks."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value, or an error, that is set once."""

    def __init__(self, *, devices: Any = None) -> None:
        self._ready = threading.Condition()
        self._done, self._value, self._error = False, None, None
        self._callbacks: list[Callable] = []

    def __class_getitem__(cls, kind: Any) -> type[Future]:
        """Future[T], as annotations write it."""
        return cls

    def done(self) -> bool:
        """Whether it is set."""
        return self._done

    def wait(self) -> Any:
        """The value, once it is there. Raises the error that was set."""
        with self._ready:
            self._ready.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> Any:
        """The value, which must be there: RuntimeError otherwise. Raises the error that was set."""
        if not self._done:
            raise RuntimeError("Future.value: it is not done; call wait()")
        if self._error is not None:
            raise self._error
        return self._value

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._ready:
            if self._done:
                raise RuntimeError("Future can only be marked completed once")
            self._done, self._value, self._error = True, value, error
            self._ready.notify_all()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def set_result(self, result: Any) -> None:
        """Sets the value, and runs the callbacks. RuntimeError the second time."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Sets an error, which wait() and value() raise."""
        if not isinstance(result, BaseException):
            raise TypeError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Runs callback(self) when it is set: at once, where it is."""
        with self._ready:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A Future of what callback(self) will give."""
        following = Future()

        def run(done: Future) -> None:
            try:
                found = callback(done)
            except Exception as error:
                following.set_exception(error)
            else:
                following.set_result(found)

        self.add_done_callback(run)
        return following


def collect_all(futures: Sequence[Future]) -> Future:
    """A Future of the list, set when all of them are."""
    gathered, left, lock = Future(), len(futures), threading.Lock()
    if not futures:
        gathered.set_result([])

    def one_more(_: Future) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            gathered.set_result(list(futures))

    for future in futures:
        future.add_done_callback(one_more)
    return gathered


def wait_all(futures: Sequence[Future]) -> list:
    """The values of all, in order. Raises the first error."""
    return [future.wait() for future in collect_all(futures).wait()]
