"""What a module may ask while it is exported."""

from __future__ import annotations

import strata
from strata import compiler


class Asking(strata.nn.Module):
    def forward(self, x):
        return x + 1 if compiler.is_exporting() and compiler.is_compiling() and not compiler.is_dynamo_compiling() else x - 1


def test_is_exporting():
    x = strata.ones(2)
    program = strata.export.export(Asking(), (x,))
    assert strata.equal(program.module()(x), strata.full([2], 2.0)) and strata.equal(Asking()(x), strata.zeros(2))
    assert not compiler.is_exporting() and not compiler.is_compiling()
    try:
        strata.export.export(Raising(), (x,))
    except ValueError:
        assert not compiler.is_exporting()
    else:
        raise AssertionError


class Raising(strata.nn.Module):
    def forward(self, x):
        raise ValueError("no")
