"""The sessions of the lessons in docs/ print what the lessons say, and what they quote stands in the table or in what the build
made of it."""

import doctest
import re
from pathlib import Path

import pytest
import strata

DOCS = Path(__file__).parents[2] / "docs"
LESSONS = sorted(DOCS.glob("lesson-*.md"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.REPORT_ONLY_FIRST_FAILURE


def test_there_are_lessons():
    assert [p.name[:8] for p in LESSONS] == ["lesson-1", "lesson-2", "lesson-3"]


@pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.stem)
def test_sessions(path):
    failed, tried = doctest.testfile(str(path), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert tried and not failed


def quoted():
    """(lesson, kind, part of a line) of the blocks that are no sessions; `...` leaves something out, `//` begins a remark of the
    lesson's."""
    for path in LESSONS:
        for kind, block in re.findall(r"^```(yaml|cpp|c)\n(.*?)^```", path.read_text(), re.M | re.S):
            for line in block.splitlines():
                code = line if kind == "yaml" else line.partition("  //")[0]
                yield from ((path.stem, kind, part.strip()) for part in code.split("...") if part.strip())


def test_quotations():
    build = Path(strata._C.__file__).resolve().parent
    files = {"yaml": sorted((DOCS.parent / "ops").glob("*.yaml")), "cpp": sorted((build / "gen").glob("autograd_*.cpp")),
             "c": sorted((build / "kernels").glob("v4_*.c"))}
    texts = {kind: "\n".join(f.read_text() for f in found) for kind, found in files.items() if found}
    if len(texts) < len(files):
        pytest.skip("what the build made is elsewhere")
    wrong = [f"{lesson}: {part}" for lesson, kind, part in quoted() if part not in texts[kind]]
    assert not wrong, wrong
