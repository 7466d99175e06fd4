"""Sparse gradients of more than one sparse dim in optimizers, under loss scaling, and where no dense gradient may be one."""

import pytest
import strata
from strata import nn

PLACES = strata.tensor([[0, 1, 1], [2, 0, 3]])


@pytest.mark.parametrize("name", ["SparseAdam", "SGD", "Adagrad"])
@pytest.mark.parametrize("turned", [False, True])
def test_optimizers_update_the_elements_that_a_gradient_has(name, turned):
    whole = nn.Parameter(strata.ones(4, 2).t() if turned else strata.ones(2, 4))
    alone = [nn.Parameter(strata.ones(1)) for _ in range(3)]
    make = getattr(strata.optim, name)
    optimizer, others = make([whole], lr=0.1), make(alone, lr=0.1)
    for step in range(3):
        values = strata.tensor([1.0, -2.0, 0.5]) * (step + 1)
        whole.grad = strata.sparse_coo_tensor(PLACES, values, (2, 4))
        for p, v in zip(alone, values, strict=True):
            p.grad = strata.sparse_coo_tensor([[0]], v[None], (1,))
        optimizer.step()
        others.step()
    wanted = strata.ones(2, 4)
    wanted[PLACES[0], PLACES[1]] = strata.cat([p.detach() for p in alone])
    assert (whole == wanted).all()


def hooked(where):
    x = strata.ones(3, requires_grad=True)
    y = x.exp()
    sparse = lambda *_: strata.tensor([1.0, 0, 5]).to_sparse()  # noqa: E731
    if where == "leaf":
        x.register_hook(sparse)
    elif where == "result":
        y.register_hook(sparse)
    elif where == "node":
        y.grad_fn.register_hook(lambda *_: (sparse(),))
    elif where == "before node":
        y.grad_fn.register_prehook(lambda *_: (sparse(),))
    y.sum().backward()


@pytest.mark.parametrize("where", ["leaf", "result", "node", "before node"])
def test_a_hook_gives_no_sparse_gradient_for_a_dense_one(where):
    with pytest.raises(RuntimeError, match="expected a dense tensor"):
        hooked(where)


def test_no_memory_of_its_own():
    sparse = strata.eye(2).to_sparse()
    for call in (strata.to_dlpack, lambda t: t.data_ptr(), lambda t: t.untyped_storage(), lambda t: t.storage()):
        with pytest.raises(RuntimeError, match="sparse"):
            call(sparse)


def test_loss_scaling():
    table = nn.Embedding(4, 2, sparse=True)
    nn.init.ones_(table.weight)
    scaler = strata.amp.GradScaler("cpu", init_scale=2.0)
    optimizer = strata.optim.SGD(table.parameters(), lr=1.0)
    scaler.scale(table(strata.tensor([1, 1, 3])).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert table.weight.tolist() == [[1, 1], [-1, -1], [1, 1], [0, 0]]
    scaler.scale(table(strata.tensor([1])).sum() * float("inf")).backward()
    scaler.step(optimizer)
    assert table.weight.tolist()[1] == [-1, -1]
