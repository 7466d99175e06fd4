"""strata.multiprocessing: tensors as shared memory through forks, queues, pools and spawned processes."""

import gc
import os
import signal

import pytest
import strata
import strata.multiprocessing as mp
from strata import nn
from strata.multiprocessing import reductions


def add_one(x):
    x.add_(1)


def train(model, steps):
    optimizer = strata.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        (model(strata.ones(4, 3)) - 1).square().mean().backward()
        optimizer.step()


def answer(queue, back, event):
    x = queue.get()
    x.mul_(2)
    back.put((x.is_shared(), type(x).__name__, x.requires_grad, list(x.shape)))
    back.put(strata.arange(4.0)[1:])
    event.wait()  # the memory of what was put is ours until then


def square(x):
    return x * x


def fail(index, how):
    if index == 1:
        if how == "raise":
            raise ValueError("boom")
        if how == "exit":
            os._exit(3)
        os.kill(os.getpid(), signal.SIGKILL)
    strata.ones(1).sum()


def descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def test_share_memory_keeps_the_values_and_is_seen_by_forks():
    x = strata.arange(6.0).reshape(2, 3).t()
    assert not x.is_shared() and x.share_memory_() is x and x.is_shared()
    assert x.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] and x.stride() == (1, 3)
    process = mp.get_context("fork").Process(target=add_one, args=(x,))
    process.start()
    process.join()
    assert x[0].tolist() == [1.0, 4.0]
    storage = x.storage()
    assert storage.is_shared() and storage.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_no_descriptor_is_left():
    before = descriptors()
    held = [strata.ones(10).share_memory_() for _ in range(20)]
    views = [x[2:] for x in held]
    del held
    assert descriptors() == before + 40  # the mapping's own and ours, while a view lives
    del views
    assert descriptors() == before


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_hogwild(method):
    model = nn.Linear(3, 1)
    model.share_memory()
    assert all(p.is_shared() and type(p) is nn.Parameter for p in model.parameters())
    context = mp.get_context(method)
    processes = [context.Process(target=train, args=(model, 60)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert abs(model(strata.ones(1, 3)).item() - 1) < 1e-2


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_queues_give_the_same_memory(method):
    context = mp.get_context(method)
    queue, back, event = context.Queue(), context.Queue(), context.Event()
    process = context.Process(target=answer, args=(queue, back, event))
    process.start()
    x = nn.Parameter(strata.ones(2, 2))
    with strata.no_grad():
        x.requires_grad_(False)
        queue.put(x)
        assert back.get(timeout=60) == (True, "Parameter", False, [2, 2])
    assert x.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    view = back.get(timeout=60)
    event.set()
    process.join()
    assert view.tolist() == [1.0, 2.0, 3.0] and view.is_shared()


def test_pools():
    with mp.get_context("fork").Pool(2) as pool:
        assert [x.item() for x in pool.map(square, [strata.tensor(float(i)) for i in range(5)])] == [0, 1, 4, 9, 16]


def test_tensors_with_history_do_not_travel():
    x = strata.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        reductions.reduce_tensor(x)
    assert reductions.reduce_tensor(strata.zeros(0))[1][1] is None


def test_spawn_raises_what_a_process_raised():
    with pytest.raises(mp.ProcessRaisedException, match="Process 1 terminated with the following error") as info:
        mp.spawn(fail, args=("raise",), nprocs=2)
    assert "boom" in str(info.value) and info.value.error_index == 1
    with pytest.raises(mp.ProcessExitedException, match="process 1 terminated with exit code 3"):
        mp.start_processes(fail, args=("exit",), nprocs=2, start_method="fork")
    with pytest.raises(mp.ProcessExitedException, match="signal SIGKILL") as info:
        mp.start_processes(fail, args=("kill",), nprocs=2, start_method="fork")
    assert info.value.signal_name == "SIGKILL"
    context = mp.start_processes(fail, args=("raise",), nprocs=1, join=False, start_method="fork")
    assert len(context.pids()) == 1
    while not context.join():
        pass


def test_strategies():
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(ValueError, match="expected one of"):
        mp.set_sharing_strategy("copy")
