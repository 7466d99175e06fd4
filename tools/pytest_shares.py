"""A plugin of pytest by which several processes share one run: each collects all tests, and takes file after file of those that no
other has taken. STRATA_TEST_SHARES names the folder that tells them; it holds a file for each that is taken, with its seconds of a processor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

SHARES = Path(os.environ["STRATA_TEST_SHARES"])


def files_of(items: list[pytest.Item]) -> Iterator[tuple[str, list[pytest.Item]]]:
    """Those of this process, one after the other: the long ones first, so that all processes end together. Long are those that start
    programs, then those with the most tests."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    starts = {name: "subprocess" in found[0].path.read_text() for name, found in files.items()}
    for name in sorted(files, key=lambda n: (not starts[n], -len(files[n]))):
        try:
            os.close(os.open(SHARES / name.replace("/", ","), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        yield name, files[name]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        return None  # pytest says so
    if session.config.option.collectonly:
        return None
    mine = files_of(session.items)
    following = next(mine, None)
    while following is not None:
        (name, items), begin = following, sum(os.times()[:4])
        for item, after in zip(items, [*items[1:], None]):
            if after is None:
                following = next(mine, None)
                after = following[1][0] if following else None
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        (SHARES / name.replace("/", ",")).write_text(f"{sum(os.times()[:4]) - begin:.1f}")
    return True
