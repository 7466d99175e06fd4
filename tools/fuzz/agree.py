"""A call's other ways: from contiguous copies of its operands, on two threads, on the CPU where it ran on a device. Each
must give the same values, what is written and gradients included, or an error of the same kind."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import strata

from fuzz.calls import Call
from fuzz.child import STEPWISE, Board, Finding, judged, scope
from fuzz.programs import BY_MEMORY, COPY, MANY, Outcome, brief, seen
from fuzz.values import HELPERS

ROOT = Path(__file__).resolve().parent.parent.parent
# Parts of Python's face that compute with tensors alone; other ways are for these and for the table's operators.
COMPUTING = ("strata.nn.", "strata.functional.", "strata.linalg.", "strata.fft.", "strata.special.", "strata.Tensor.", "strata.optim.")
# What tells of memory or of the device, or whose values are nobody's.
OF_THE_DEVICE = re.compile(r"__.*|data|data_ptr|.*empty.*|is_.*|device|cpu|.*resize.*|.*storage.*|numpy|record_stream|get_device|share_memory_?|pin_memory|to|to_dlpack|"
                           r"_to_copy|type|set_|apply_|map2?_|grad_fn|register.*|names|_generator_state|_cdata|invert_permutation")
# Errors of one way alone: memory, time, tensors on both devices.
APART = re.compile(r"out of memory|MemoryError|same device|allocat|on the device|one device|'cpu'|is on |are on|device type|more than \d+ bytes|no memory|default_collate|host", re.I)
LONG = 0.2  # seconds
# Errors that are a hostile argument's own, or have PyTorch's words; those of a kernel name it with the user's line.
OWN = ("ZeroDivisionError", "OverflowError", "UnicodeEncodeError", "UnicodeDecodeError", "MemoryError", "RecursionError", "AxisError")
WORDS = re.compile(r"Overflow when unpacking|__ returned non-|cannot be converted to Scalar|object is not callable|\(called at ")
# Errors of a layout alone: writing where several elements lie at one place; views that strides don't allow.
LAID = re.compile(r"single memory location|overlap|view size is not compatible|not resizable")


def plugin(device: str) -> Path:
    """The plugin of the build that Python has loaded; others come by STRATA_PLUGINS or packages."""
    build = Path(os.path.realpath(strata._C.__file__)).parent
    return build / f"plugins/{device}/libstrata_{device}.so"


def load(device: str) -> None:
    """Not in a process that forks: devices have threads."""
    os.environ.setdefault(f"STRATA_{device.upper()}_MEMORY", str(512 << 20))
    if device != "cpu" and plugin(device).exists():
        strata.accelerator.load(plugin(device))


def head(device: str) -> list[str]:
    """What a program begins with whose tensors are made on the device."""
    loaded = f"strata.accelerator.load({str(plugin(device))!r}); " if plugin(device).exists() else ""
    return [] if device == "cpu" else [f"{loaded}strata.set_default_device({device!r})"]


def last_name(call: Call) -> str:
    s = call.subject
    return s.schema.name if s.schema is not None else s.path.rpartition(".")[2]


def ways(call: Call, device: str) -> list[tuple[str, bool, int, str]]:
    """The kinds of comparisons that mean something: (kind, from copies, threads, device)."""
    s, name = call.subject, last_name(call)
    if re.search(r"\.__(hash|getstate|reduce\w*)__\(", call.statement):  # addresses, numbers of objects
        return []
    if s.how == "method" and call.statement.startswith("result = ("):  # of something that is no tensor
        return []
    if s.lasting or (s.entry is None and not s.path.startswith(COMPUTING)):
        return []
    if writes(call) and "as_strided" in "".join(call.lines):  # elements at one place, whose values are any of those written there
        return []
    if device != "cpu":
        return [] if OF_THE_DEVICE.fullmatch(name) else [("device", False, 1, "cpu")]
    text = "\n".join([*call.lines, call.statement])
    found = []
    # Copies are leaves of their own and share nothing.
    if s.how != "class" and not name.startswith((*BY_MEMORY, "detach_", "dim_order", "storage_offset")) and not (s.path.startswith(STEPWISE) and "expand" in text) and not any(h in text for h in HELPERS) and not (writes(call) and "requires_grad_" in text):
        found.append(("layout", True, 1, "cpu"))
    if "arange(" in text and name != "data_ptr":
        found.append(("threads", False, 2, "cpu"))
    return found


def writes(call: Call) -> bool:
    s = call.subject
    if (s.schema is not None and any(a.written for a in s.schema.args)) or s.path.startswith(STEPWISE):
        return True
    told = any(p.name == "inplace" for p in s.params or []) and "True" in call.statement
    return told or last_name(call).endswith("_") or "out=" in call.statement or re.match(r"x\d+\.\w+ = ", call.statement) is not None


def value_of(value) -> tuple:
    """What is compared of a result: bits of tensors, numbers and words; of other objects the type alone."""
    if isinstance(value, strata.Tensor):
        with strata.DisableTorchFunction():
            try:
                if value.is_meta or value.numel() and value.untyped_storage().nbytes() == 0:
                    return "no values", str(value.dtype), tuple(value.shape)
                return seen(value)
            except (ValueError, RuntimeError):  # a parameter that has no shape yet
                return (type(value).__name__,)
    if isinstance(value, (tuple, list)):
        return len(value), *(value_of(v) for v in value[:MANY])
    if isinstance(value, (bool, int, float, complex, str, type(None), strata.dtype)):
        return (repr(value),)
    return (type(value).__name__,)


def outcome(call: Call, copied: bool = False, threads: int = 1, device: str = "cpu") -> Outcome | None:
    """What the call gave, then its operands, then gradients; or the error. None: its operands can't be made."""
    strata.set_num_threads(threads)
    strata.manual_seed(0)
    strata.set_default_device(device)
    try:
        return ran(call, copied, device)
    finally:
        strata.set_default_device("cpu")


def ran(call: Call, copied: bool, device: str) -> Outcome | None:
    names = scope()
    try:
        exec(compile("\n".join(call.lines), "<operands>", "exec"), names)
        if copied:
            lay = eval(COPY, names)
            names.update({n: lay(names[n]) for n in call.operands if isinstance(names.get(n), strata.Tensor)})
    except Exception:  # noqa: BLE001
        return None
    try:
        exec(compile(call.statement, "<call>", "exec"), names)
        if device != "cpu":
            strata.accelerator.synchronize(device)
    except Exception as error:  # noqa: BLE001
        if device != "cpu":
            drained(device)
        return Outcome(("error", text)) if (text := judged(error)) else Outcome(("raised", type(error).__name__, shortened(str(error))))
    got = [value_of(names.get("result"))]
    operands = {n: names[n] for n in call.operands if isinstance(names.get(n), strata.Tensor)}
    got += [value_of(t) for t in operands.values()]
    if call.after and differentiable(names.get("result")):
        try:
            exec(compile(call.after, "<after>", "exec"), names)
            got += [value_of(t.grad) for t in operands.values() if t.is_leaf]
        except Exception as error:  # noqa: BLE001
            got.append(("raised", type(error).__name__, shortened(str(error))))
    return Outcome(tuple(got))


def shortened(text: str) -> str:
    """Begin and end of a long text; the end may name the operator."""
    return text if len(text) < 2000 else f"{text[:1000]} ... {text[-1000:]}"


def differentiable(result) -> bool:
    with strata.DisableTorchFunction():
        return any(isinstance(r, strata.Tensor) and r.requires_grad for r in (result if isinstance(result, (tuple, list)) else [result]))


def drained(device: str) -> None:
    """Errors of queued work that the call's own came before."""
    for _ in range(3):
        try:
            strata.accelerator.synchronize(device)
            return
        except Exception:  # noqa: BLE001
            continue


def failed(outcome: Outcome) -> tuple | None:
    """The error of a call or of its backward."""
    if outcome.bits[:1] in (("raised",), ("error",)):
        return outcome.bits
    last = outcome.bits[-1]
    return last if last and last[0] == "raised" else None


def same(a: Outcome, b: Outcome, kind: str) -> bool:
    errors = [e for e in (failed(a), failed(b)) if e]
    if any(APART.search(str(e[-1])) or kind == "layout" and LAID.search(str(e[-1])) for e in errors):
        return True
    if errors:
        return len(errors) == 2 and errors[0][1] == errors[1][1] and (errors[0] is a.bits) == (errors[1] is b.bits)
    return a.bits == b.bits


def compared(call: Call, number: int, device: str, board: Board, found) -> None:
    """Tells of each other way that gives something else."""

    def tell(kind: str, text: str) -> None:
        found(Finding(kind, call.subject.path, number, text))

    chosen = ways(call, device)
    if not chosen:
        return
    if device != "cpu":  # where long work takes longer
        start = time.monotonic()
        if outcome(call) is None or time.monotonic() - start > LONG:
            return board.count("void")
    here = outcome(call, device=device)
    if device != "cpu":
        board.count("void" if here is None else "raised" if failed(here) else "returned")
    if here is None:
        return
    if (text := unnamed(call, here)) is not None:
        tell("words", text)
    for kind, copied, threads, where in chosen:
        other = outcome(call, copied, threads, where)
        if other is not None and not same(here, other, kind):
            tell(kind, f"{shown(here, other)}"[:3000])


def unnamed(call: Call, here: Outcome) -> str | None:
    """The text of an error of an operator that does not name it."""
    if call.subject.entry is None or here.bits[:1] != ("raised",):
        return None
    _, kind, text = here.bits
    name = call.subject.schema.name.strip("_")
    if name.removeprefix("linalg_") in text.replace(".", "_") or kind in OWN or WORDS.search(text) or APART.search(text):
        return None
    return f"{kind}: {text}"


def shown(a: Outcome, b: Outcome) -> str:
    if failed(a) or failed(b):
        return f"{failed(a) or 'a result'} and {failed(b) or 'a result'}"
    for p, q in zip(a.bits, b.bits):
        if p != q:
            return f"{brief(Outcome((p,)))} and {brief(Outcome((q,)))}"
    return "another number of gradients"


def program(call: Call, kind: str, lines: list[str], device: str) -> list[str]:
    """Lines that run the call both ways and print what each gives."""
    helpers = [line for line in lines if not re.match(r"x\d+ = ", line)]
    made = [line for line in lines if line not in helpers]
    if kind == "layout":
        made = [f"{n} = lay({e})" for n, _, e in (line.partition(" = ") for line in made)]
    names = [line.partition(" = ")[0] for line in made]
    grads = "".join(f", {n}.grad" for n in names if "requires_grad" in "".join(made))
    after = ["    " + line for line in call.after.splitlines()] if grads else []
    body = ["def program(lay):", "    " + "; ".join(made or ["pass"]), f"    {call.statement}", *after, f"    return {', '.join(['result', *names])}{grads}"]
    if kind == "layout":
        tail = [f"print(program(lambda t: t)); print(program({COPY}))"]
    elif kind == "threads":
        tail = ["for n in (1, 2): strata.set_num_threads(n); print(program(None))"]
    else:
        tail = [f"for d in ('cpu', '{device}'):", "    strata.set_default_device(d)", "    try: print(program(None))", "    except Exception as error: print(repr(error))"]
    return [*head(device)[:1], *helpers, *body, *tail]
