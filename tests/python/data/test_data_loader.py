"""DataLoader in this process and in workers: order, seeds, errors, resumption."""

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

import pytest
import strata
from data_cases import (
    Counted,
    Dying,
    Failing,
    Held,
    Info,
    Mixed,
    Noisy,
    Sleeping,
    Squares,
    Stream,
    TwoArguments,
    Whole,
    WithHistory,
    first_two_fail,
    remember,
)
from strata.testing import assert_close
from strata.utils.data import BatchSampler, DataLoader, TensorDataset, default_collate, random_split

# Fork starts fast; the other ways are tested where they differ.
FORK = {"multiprocessing_context": "fork"}


def loader(dataset, workers, *args, **options):
    return DataLoader(dataset, *args, num_workers=workers, **options, **(FORK if workers else {}))


def plain(batches):
    return [_plain(b) for b in batches]


def _plain(x):
    if isinstance(x, strata.Tensor):
        return x.tolist()
    if isinstance(x, dict):
        return {k: _plain(v) for k, v in x.items()}
    return [_plain(v) for v in x] if isinstance(x, (list, tuple)) else x


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_in_order(workers):
    batches = list(loader(Squares(7), workers, 3))
    assert [b[1].tolist() for b in batches] == [[0, 1, 2], [3, 4, 5], [6]]
    assert batches[1][0].tolist() == [9.0, 16.0, 25.0]
    assert (
        len(list(loader(Squares(7), workers, 3, drop_last=True))) == len(loader(Squares(7), 0, 3, drop_last=True)) == 2
    )
    assert [b.tolist() for b in loader([5, 6, 7], workers, batch_sampler=BatchSampler([2, 0], 2, False))] == [[7, 5]]
    assert list(loader([5, 6], workers, None)) == [5, 6]


def test_the_same_batches_for_a_seed_at_any_number_of_workers():
    runs = []
    for workers in (0, 1, 2):
        strata.manual_seed(7)
        random.seed(workers)
        data = loader(Noisy(), workers, 3, shuffle=True)
        runs.append([plain(data), plain(data)])
    assert runs[0] == runs[1] == runs[2]
    assert runs[0][0] != runs[0][1]


LATE_NUMPY = """
import random, sys, strata
from strata.utils.data import DataLoader

class Noise:
    def __len__(self):
        return 6
    def __getitem__(self, i):
        import numpy  # not before the first sample
        return numpy.random.rand(), random.random(), strata.rand(()).item()

def own(worker):
    assert strata.utils.data.get_worker_info().id == worker

if __name__ == "__main__":
    assert "numpy" not in sys.modules
    for workers, init in ((2, None), (2, own), (0, None)):
        data = DataLoader(Noise(), 2, num_workers=workers, worker_init_fn=init if workers else None,
                          generator=strata.Generator().manual_seed(3), collate_fn=list)
        print([batch for batch in data])
"""


def test_workers_seed_numpy_that_a_dataset_imports(tmp_path):
    program = tmp_path / "late_numpy.py"
    program.write_text(LATE_NUMPY)
    runs = [subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert runs[0] == runs[1]
    two_workers, _, none = runs[0].splitlines()
    assert two_workers == none


def test_loading_here_leaves_the_generators_alone():
    batches = iter(DataLoader(Noisy(), 3, generator=strata.Generator()))
    strata.manual_seed(1)
    random.seed(1)
    expected = strata.rand(3), random.random()
    strata.manual_seed(1)
    random.seed(1)
    next(batches)
    assert_close(strata.rand(3), expected[0])
    assert random.random() == expected[1]


def test_generator_decides_the_order():
    def order(seed):
        data = DataLoader(range(30), 4, shuffle=True, generator=strata.Generator().manual_seed(seed))
        return [i for b in data for i in b.tolist()]

    assert order(1) == order(1) != order(2)
    assert sorted(order(1)) == list(range(30))


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_of_every_kind(workers):
    for batch, expected in zip(loader(Mixed(6), workers, 2), DataLoader(Mixed(6), 2), strict=True):
        assert_close(
            {k: v for k, v in batch.items() if k != "text"}, {k: v for k, v in expected.items() if k != "text"}
        )
        assert batch["text"] == expected["text"]
        batch["large"] += 1  # memory of our own, to write to


@pytest.mark.parametrize(("workers", "expected"), [(0, [[0, 1], [2, 3], [4]]), (2, [[0, 2], [1, 3], [4]])])
def test_streams(workers, expected):
    assert [b.tolist() for b in loader(Stream(5), workers, 2)] == expected
    assert list(loader(Stream(3), workers, None)) == [0, 1, 2]


@pytest.mark.parametrize("workers", [0, 2])
def test_empty_stream_and_short_tail(workers):
    assert list(loader(Stream(0), workers, 2)) == []
    full = [[0, 2], [1, 3]] if workers else [[0, 1], [2, 3]]
    assert [b.tolist() for b in loader(Stream(5), workers, 2, drop_last=True)] == full


def test_stream_that_forgets_to_share():
    data = loader(Whole(), 2, 2)
    assert len(data) == 2
    with pytest.warns(UserWarning, match="promised 4 samples.*get_worker_info"):
        list(data)


def test_gathered_batches_equal_stacked_ones():
    d = TensorDataset(strata.arange(20).reshape(10, 2), strata.arange(10.0))
    part = random_split(d, [6, 4], generator=strata.Generator().manual_seed(1))[0]
    for dataset in (d, part):
        fast = plain(DataLoader(dataset, 4))
        slow = plain(DataLoader(dataset, 4, collate_fn=lambda samples: default_collate(samples)))
        assert fast == slow
    with pytest.raises(IndexError):
        list(DataLoader(d, sampler=[10]))


def test_worker_info():
    rows = [row for b in loader(Info(4), 2, 1) for row in zip(*_plain(b), strict=True)]
    assert rows == [(0, 2, True, 1), (1, 2, True, 1), (0, 2, True, 1), (1, 2, True, 1)]


def test_worker_init_fn():
    assert [b.tolist() for b in loader(Counted(4), 2, 1, worker_init_fn=remember)] == [[100], [101], [100], [101]]
    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 0"):
        list(loader(Squares(4), 2, worker_init_fn=first_two_fail))


@pytest.mark.parametrize("error", [KeyError("five"), ValueError("five"), TwoArguments(1, 2), OSError(5, "five")])
def test_errors_come_with_the_workers_traceback(error):
    kind = RuntimeError if isinstance(error, TwoArguments) else type(error)
    batches = iter(loader(Failing(error), 2))
    assert [next(batches).item() for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(kind) as info:
        next(batches)
    text = str(info.value)
    assert text.startswith(f"Caught {type(error).__name__} in DataLoader worker process 1.\nOriginal Traceback (most")
    assert "in __getitem__" in text and "raise self.error" in text
    assert [b.item() for b in batches] == [6, 7], "the pass goes on"


@pytest.mark.parametrize("workers", [0, 1])
def test_stop_iteration_of_a_sample_does_not_end_the_pass(workers):
    with pytest.raises(RuntimeError, match="raised StopIteration for index"):
        list(loader(Failing(StopIteration()), workers))


@pytest.mark.parametrize(("how", "text"), [("kill", "killed by signal SIGKILL"), ("exit", "exit code 3")])
def test_death_of_a_worker(how, text):
    batches = iter(loader(Dying(how), 2))
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly: {text}"):
        list(batches)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        next(batches)


def test_timeout():
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="timed out after 0.5 seconds"):
        list(loader(Sleeping(2), 1, timeout=0.5))
    assert time.monotonic() - start < 5


def test_history_does_not_travel():
    with pytest.raises(RuntimeError, match="call .detach"):
        list(loader(WithHistory(2), 1))


def test_what_cannot_be_pickled_says_so():
    with pytest.raises(Exception, match="pickle") as info:
        iter(DataLoader(Squares(2), num_workers=1, collate_fn=lambda batch: batch, multiprocessing_context="spawn"))
    assert 'multiprocessing_context="fork"' in info.value.__notes__[0]


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_other_start_methods(method):
    held = Held()
    data = DataLoader(held, num_workers=2, multiprocessing_context=method)
    assert [b.item() for b in data] == [1.0, 2.0, 3.0, 4.0]
    assert held.values[0].item() == 0.0


def test_persistent_workers():
    data = loader(Info(4), 2, 1, persistent_workers=True)
    for _ in data:
        break
    pids = [p.pid for p in data._pool.processes]
    assert len(list(data)) == 4 and len(list(data)) == 4
    assert [p.pid for p in data._pool.processes] == pids
    streams = loader(Stream(5), 2, 2, persistent_workers=True)
    assert plain(streams) == plain(streams) == [[0, 2], [1, 3], [4]]


def held():
    """Open files, and shared memory but for what OpenMP runtimes of any process register there."""
    return len(os.listdir("/proc/self/fd")), {n for n in os.listdir("/dev/shm") if not n.startswith("__KMP")}


def test_nothing_is_left_behind():
    gc.collect()
    before = held()
    next(iter(loader(Mixed(40), 2, 2)))
    batches = list(loader(Mixed(600), 2, 1))
    assert len(batches) == 600
    assert_close(batches[599]["large"], Mixed()[599]["large"].unsqueeze(0))
    del batches
    gc.collect()
    assert held() == before
    assert multiprocessing.active_children() == []


def test_in_order_false_gives_the_same_samples():
    data = loader(Squares(30), 3, 2, in_order=False)
    assert sorted(i for b in data for i in b[1].tolist()) == list(range(30))
    assert sorted(i for b in loader(Stream(9), 3, 2, in_order=False) for i in b.tolist()) == list(range(9))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("own_generator", [False, True])
def test_resume_in_the_middle(workers, own_generator):
    def make(seed):
        g = strata.Generator().manual_seed(seed) if own_generator else None
        return loader(Noisy(), workers, 3, shuffle=True, generator=g)

    strata.manual_seed(1)
    data = make(3)
    assert data.state_dict() == {"batches": 0}
    batches = iter(data)
    for _ in range(3):
        next(batches)
    state = data.state_dict()
    rest = plain(batches)
    strata.manual_seed(99)
    other = make(77)
    other.load_state_dict(state)
    assert other.state_dict() is state
    assert plain(other) == rest and len(rest) == 4
    if own_generator:
        assert plain(data) == plain(other), "and so do the passes after it"


@pytest.mark.parametrize("workers", [0, 2])
def test_resume_a_stream(workers):
    data = loader(Stream(20), workers, 2)
    batches = iter(data)
    for _ in range(3):
        next(batches)
    state = data.state_dict()
    rest = plain(batches)
    other = loader(Stream(20), workers, 2)
    other.load_state_dict(state)
    assert plain(other) == rest


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": -1},
        {"timeout": -1, "num_workers": 1},
        {"prefetch_factor": 2},
        {"prefetch_factor": 0, "num_workers": 1},
        {"persistent_workers": True},
        {"multiprocessing_context": "fork"},
        {"multiprocessing_context": "thread", "num_workers": 1},
        {"shuffle": True, "sampler": [0]},
        {"batch_sampler": [[0]], "batch_size": 2},
        {"batch_size": None, "drop_last": True},
        {"batch_size": 0},
    ],
)
def test_refusals(options):
    with pytest.raises(ValueError):
        DataLoader([1], **options)


def test_refusals_of_streams():
    for name, value in (("shuffle", True), ("sampler", [0]), ("batch_sampler", [[0]])):
        with pytest.raises(ValueError, match=f"expected unspecified {name}"):
            DataLoader(Stream(2), **{name: value})
    with pytest.raises(ValueError, match="should not be set after"):
        DataLoader([1]).batch_size = 3
    with pytest.raises(TypeError, match="start method or a context"):
        DataLoader([1], num_workers=1, multiprocessing_context=3)


SCRIPT = """
import sys, time, strata
sys.path.insert(0, {folder!r})
from data_cases import Sleeping
from strata.utils.data import DataLoader
if __name__ == "__main__":
    batches = iter(DataLoader(Sleeping(4), num_workers=2, multiprocessing_context={method!r}))
    print(*[p.pid for p in batches.pool.processes], flush=True)
    next(batches)
"""


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("method", ["fork", "forkserver"])
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_the_main_process(sign, method):
    script = SCRIPT.format(folder=os.path.dirname(__file__), method=method)
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"strata_loader_{os.getpid()}.py")
    with open(path, "w") as file:
        file.write(script)
    try:
        # A shell that runs jobs in the background has them ignore SIGINT, and children inherit that.
        main = subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        pids = list(map(int, main.stdout.readline().split()))
        assert len(pids) == 2
        time.sleep(0.3)
        main.send_signal(sign)
        errors = main.communicate(timeout=30)[1]
        assert sign == signal.SIGKILL or "KeyboardInterrupt" in errors
        deadline = time.monotonic() + 10
        while any(map(alive, pids)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(alive, pids))
    finally:
        os.unlink(path)
        for pid in pids:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
