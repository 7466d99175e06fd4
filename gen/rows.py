"""The rows of a file of the table, as YAML has them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Refuses a key that stands twice, of which YAML would keep the last without a word."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        twice = next((k for k in keys if keys.count(k) > 1), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} stands twice in one entry", node.start_mark)
        return super().construct_mapping(node, deep)


@cache
def read(path: Path) -> list[tuple[dict, int]]:
    """The rows of a file of the table, and their lines."""
    text = path.read_text()
    lines = [i + 1 for i, line in enumerate(text.splitlines()) if line.startswith(("- op:", "- kernel:", "- formula:"))]
    try:
        found = yaml.load(text, Loader=Loader) or []
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise SystemExit(f"ops/{path.name}:{mark.line + 1}:{mark.column + 1}: {error.problem}") from error
    return list(zip(found, lines, strict=True))
