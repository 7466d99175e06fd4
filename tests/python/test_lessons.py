"""The sessions of the lessons in docs/ print what the lessons say."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
LESSONS = sorted(DOCS.glob("lesson-*.md"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.REPORT_ONLY_FIRST_FAILURE


def test_there_are_lessons():
    assert [p.name[:8] for p in LESSONS] == ["lesson-1", "lesson-2", "lesson-3"]


@pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.stem)
def test_sessions(path):
    failed, tried = doctest.testfile(str(path), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert tried and not failed
