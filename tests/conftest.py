"""Tests that fail today and are known to: tests/known_failures.json lists them by id with a reason. They still run and
count as expected failures, so that the list can only shrink; what would end the process is skipped."""

import json
from pathlib import Path

import pytest

KNOWN = json.loads((Path(__file__).parent / "known_failures.json").read_text())


def pytest_collection_modifyitems(items):
    for item in items:
        reason = KNOWN.get(item.nodeid)
        if reason is None:
            continue
        mark = pytest.mark.skip if reason.startswith("ends the process") else pytest.mark.xfail
        item.add_marker(mark(reason=reason))
