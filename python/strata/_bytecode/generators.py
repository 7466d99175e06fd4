"""Generators of captured functions: their bodies are executed as they are asked for values."""

from __future__ import annotations

from .reasons import Break
from .values import Generator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_YIELD_FROM = (2, 3)  # what RESUME has as argument after a `yield from` or an `await`


class GeneratorMethod:
    """A generator's send, throw, close or __next__, to be called."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Generator, name: str):
        self.owner, self.name = owner, name


class Generators:
    """Of the machine of captures."""

    def generator_attribute(self, generator: Generator, name: str) -> GeneratorMethod:
        if not hasattr(generator.kind, name):
            raise self.wrap_error(AttributeError(f"'{generator.kind.__name__}' object has no attribute '{name}'"))
        if name not in ("send", "throw", "close", "__next__"):
            raise Break(f"a generator's {name}")
        return GeneratorMethod(generator, name)

    def call_generator(self, method: GeneratorMethod, args: tuple, kwargs: dict[str, Any]) -> Any:
        generator, name = method.owner, method.name
        wanted = {"send": (1,), "throw": (1, 2, 3), "close": (0,), "__next__": (0,)}[name]
        if kwargs or len(args) not in wanted:
            raise Break(f"a generator's {name} with these arguments")
        if name == "close":
            return self.close(generator)
        if name == "throw":
            more, value = self.throw(generator, *args[: 2 if args[1:] != (None,) else 1])
        else:
            if args and args[0] is not None and not generator.started:
                raise self.wrap_error(TypeError("can't send non-None value to a just-started generator"))
            more, value = self.resume(generator, *args)
        if more:
            return value
        raise self.wrap_error(StopIteration() if value is None else StopIteration(value))

    def resume(self, generator: Generator, sent: Any = None) -> tuple[bool, Any]:
        """(whether there is another value, that or what the generator returned)"""
        frame = generator.frame
        if frame.done:
            return False, None
        if generator.started:
            frame.stack.append(sent)
        generator.started = True
        return self._run(generator)

    def _run(self, generator: Generator) -> tuple[bool, Any]:
        try:
            value, yielded = self.run_frame(generator.frame)
        except self.errors as stop:
            if isinstance(stop.error, StopIteration):
                error = RuntimeError("generator raised StopIteration")
                error.__cause__ = error.__context__ = stop.error
                raise self.wrap_error(error) from None
            raise
        return yielded, value

    def throw(self, generator: Generator, kind: Any, value: Any = None) -> tuple[bool, Any]:
        """The exception is raised where the generator stands. As resume."""
        error = kind if isinstance(kind, BaseException) else value
        if not isinstance(error, BaseException):
            if not (isinstance(kind, type) and issubclass(kind, BaseException)):
                raise Break(f"a generator's throw of a {type(kind).__name__}")
            error = self.call(kind, () if value is None else (value,), {})
        frame = generator.frame
        if frame.done or not generator.started:
            frame.done = generator.started = True
            raise self.wrap_error(error)
        following = frame.instructions[frame.index]
        if following.name == "RESUME" and following.arg & 3 in _YIELD_FROM:
            raise Break("a throw into a generator that waits for another one")
        frame.unwind(self.wrap_error(error), frame.instructions[frame.index - 1].offset)
        return self._run(generator)

    def close(self, generator: Generator) -> None:
        if generator.frame.done or not generator.started:
            generator.frame.done = generator.started = True
            return
        try:
            more, _ = self.throw(generator, GeneratorExit())
        except self.errors as end:
            if isinstance(end.error, (GeneratorExit, StopIteration)):
                return
            raise
        if more:
            raise self.wrap_error(RuntimeError("generator ignored GeneratorExit"))
