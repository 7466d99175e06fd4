"""`./run test graph-library`: twenty compiled training steps, with library calls and without, leave eager's bits everywhere."""

from __future__ import annotations

import graph_models
import pytest
import strata


@pytest.mark.parametrize("library", [True, False], ids=["library", "own"])
@pytest.mark.parametrize("made", [graph_models.mlp, graph_models.gpt])
def test_twenty_training_steps(made, library):
    with strata.backends.library(library):
        found = []
        for compiled in (False, True):
            strata.manual_seed(3)
            model, batch = made()
            optimiser = strata.optim.AdamW(model.parameters(), lr=1e-2)
            schedule = strata.optim.lr_scheduler.CosineAnnealingLR(optimiser, 20)
            optimiser.init_state()
            step = graph_models.step_of(model, optimiser)
            x, y = batch()
            if compiled:
                step = strata.graph(step, x, y).compile()
            strata.manual_seed(5)
            losses = []
            for _ in range(20):
                losses.append(step(*batch()).detach().clone())
                schedule.step()
            found.append([*losses, *graph_models.everything(model, optimiser)])
        assert len(found[0]) == len(found[1]) > 40
        differ = [i for i, (a, b) in enumerate(zip(*found, strict=True)) if not graph_models.same(a, b)]
        assert not differ, f"{len(differ)} of {len(found[0])} tensors differ, the first is number {differ[0]}"
        assert not graph_models.same(found[0][0], found[0][1]), "steps change what the next one gives"
