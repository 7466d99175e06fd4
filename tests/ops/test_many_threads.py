"""Sixteen threads call operators of the table at once, each with operands of its own, and run separate backwards: every outcome
has the bits that it has on one thread. `./run sanitize tsan tests/ops/test_many_threads.py` looks for races meanwhile; with
STRATA_TEST_ALL=1 every operator takes part."""

from __future__ import annotations

import random
import threading
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

from table import ENTRIES, bits, calls, flattened, operator, outputs, sampled, strata

THREADS = 16
DTYPES = ("float32", "float64", "bfloat16", "int64")


def copied(value):
    if isinstance(value, strata.Tensor):
        made = strata.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(value.detach())
        return made.requires_grad_(made.is_floating_point())
    return type(value)(map(copied, value)) if isinstance(value, (list, tuple)) else value


def outcome(case) -> list:
    """The bits of results and gradients, or the class of the error."""
    op, args, kwargs = case
    args, kwargs = copied(args), {name: copied(value) for name, value in kwargs.items()}
    given = [t for t in flattened([list(args), list(kwargs.values())]) if isinstance(t, strata.Tensor) and t.requires_grad]
    try:
        result = op(*args, **kwargs)
        made = [t for t in flattened([result]) if isinstance(t, strata.Tensor)]
        ends = [t.sum() for t in made if t.requires_grad and t.grad_fn is not None]
        grads = strata.autograd.grad(ends, given, allow_unused=True) if ends and given else ()
    except Exception as error:
        return [type(error).__name__]
    return [bits(a) for a in outputs([t.detach() for t in made])] + [None if g is None else bits(outputs(g.detach())[0]) for g in grads]


def cases() -> list:
    found = []
    for entry in sampled(ENTRIES, 200):
        for _, schema in entry.operators()[:1]:
            for dtype in DTYPES:
                found += [(operator(schema), *call) for call in list(calls(entry, dtype))[:2]]
    return found


def test_every_thread_has_the_bits_of_one():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = cases()
        alone = [outcome(case) for case in made]
        # What draws random numbers, or gives memory as it finds it, differs from call to call.
        steady = [i for i, case in enumerate(made) if outcome(case) == alone[i]]
        assert len(steady) > len(made) * 3 // 4
        together = threading.Barrier(THREADS)

        def work(number: int) -> list[int]:
            order = steady[:]
            random.Random(zlib.crc32(bytes([number]))).shuffle(order)
            together.wait()
            return [i for i in order[: max(200, len(order) // 4)] if outcome(made[i]) != alone[i]]

        with ThreadPoolExecutor(THREADS) as pool:
            wrong = sorted({i for found in pool.map(work, range(THREADS)) for i in found})
    assert not wrong, [str(made[i][0]) for i in wrong[:10]]
