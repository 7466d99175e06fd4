"""A scenario is run twice, with a function as it is and compiled: what it notes must be equal."""

import contextlib
import io

import strata


def shown(v, depth=0):
    """A value as text, with what objects hold; classes and functions by name."""
    if isinstance(v, strata.Tensor):
        return f"T{tuple(v.shape)} {v.dtype} {v.requires_grad} {v.tolist()}"
    if isinstance(v, dict):
        return type(v).__name__ + "{" + ", ".join(f"{shown(k)}: {shown(x, depth + 1)}" for k, x in v.items()) + "}"
    if isinstance(v, (list, tuple)):
        return type(v).__name__ + "[" + ", ".join(shown(x, depth + 1) for x in v) + "]"
    if isinstance(v, BaseException):
        return f"{type(v).__name__}: {v}"
    if callable(v):
        return getattr(v, "__name__", type(v).__name__)
    if hasattr(v, "__dict__") and depth < 4:
        return type(v).__name__ + shown(vars(v), depth + 1)
    return repr(v)


class Notes:
    """`compile` compiles where it is its turn; `call` notes a result or exception, and what was printed; `say` anything."""

    def __init__(self, compiles):
        self.compiles, self.said, self.made = compiles, [], []

    def compile(self, f, **options):
        if not self.compiles:
            return f
        self.made.append(strata.compile(f, **options))
        return self.made[-1]

    def call(self, f, *args, **kwargs):
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                found = shown(f(*args, **kwargs))
        except Exception as error:
            found = "raised " + shown(error)
        self.said.append((found, printed.getvalue()))

    def say(self, *values):
        self.said.append(shown(values))

    def reasons(self):
        """Of the breaks of what was compiled."""
        parts = [p._strata_compiled for f in self.made for p in ([f] if hasattr(f, "_strata_compiled") else f._compiled_forward.values())]
        return [r for c in parts for r in ([c.refusal] if c.refusal else []) + [b.reason for b in c.breaks]]


def same(scenario):
    """The reasons of breaks, after the two runs of scenario(notes) gave the same."""
    runs = [Notes(False), Notes(True)]
    for notes in runs:
        strata.manual_seed(0)
        scenario(notes)
    assert runs[0].said == runs[1].said
    return runs[1].reasons()


def in_one_graph(f, *calls):
    """That f has eager's results for each tuple of arguments, without a break."""

    def scenario(n):
        compiled = n.compile(f, fullgraph=True)
        for args in calls:
            n.call(compiled, *args)

    assert same(scenario) == []
