"""Wrong arguments of every kind, for every operator: an error of PyTorch's type that names the operator, or a result; never
the end of the process, never an allocation beyond reason. Each operator runs in a child process with limits."""

from __future__ import annotations

from attacks import attacks
from child import in_child, report
from table import ENTRIES, pytest, sampled, skip_reason

KINDS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, OverflowError)
CASES = [e for e in ENTRIES if not skip_reason(e, "errors")]


def judged(entry) -> list[str]:
    """What is wrong with the answers of one operator."""
    bad = []
    name = entry.schema.name.strip("_")
    for what, op, args, kwargs, must in attacks(entry):
        report({"at": what})
        try:
            op(*args, **kwargs)
        except KINDS as error:
            text = str(error)
            # Numbers beyond 64 bits fail before an operator is known, in Python's and PyTorch's words.
            if name not in text and not isinstance(error, OverflowError) and "Overflow when unpacking" not in text:
                bad.append(f"{what}: the text does not name the operator: {type(error).__name__}: {text}")
        except BaseException as error:  # noqa: BLE001 - the kind is what is tested
            bad.append(f"{what}: {type(error).__name__}: {error}")
        else:
            if must:
                bad.append(f"{what}: accepted")
    return bad


@pytest.mark.parametrize("entry", sampled(CASES, 250), ids=lambda e: e.schema.full)
def test_errors(entry):
    in_child(lambda: judged(entry), entry.schema.full)
