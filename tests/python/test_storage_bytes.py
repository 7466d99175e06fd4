"""An UntypedStorage as a sequence of bytes, and memory that is shared with processes; PyTorch 2.13 passes these but for messages."""

from __future__ import annotations

import copy

import pytest
import strata as torch


def storage() -> torch.UntypedStorage:
    return torch.tensor([1.0, 2.0, 3.0]).untyped_storage()


def test_bytes_are_read_and_written():
    s = storage()
    assert len(s) == s.nbytes() == s.size() == 12 and s.element_size() == 1
    assert s[2] == 128 and s[-1] == 64 and list(s) == s.tolist() == [0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64]
    s[0] = 5
    assert s[0] == 5 and 5 in s
    s[1:3] = 7
    assert s.tolist()[:4] == [5, 7, 7, 63]
    part = s[4:8]
    part.fill_(9)
    assert s.tolist()[4:8] == [9] * 4 and part.tolist() == [9] * 4 and s[4:4].nbytes() == 0
    assert s.fill_(1) is s and set(s) == {1}


def test_what_does_not_fit():
    s = storage()
    with pytest.raises(IndexError, match="index 100 out of range for storage of size 12"):
        s[100]
    with pytest.raises(RuntimeError, match="Trying to slice with a step of 2"):
        s[0:4:2]
    with pytest.raises(TypeError, match="with str"):
        s["a"]
    with pytest.raises(RuntimeError, match="size does not match, self was 12 bytes but src was 8 bytes"):
        s.copy_(torch.zeros(2).untyped_storage())
    with pytest.raises(AttributeError, match="nothing"):
        s.nothing  # noqa: B018


def test_copies():
    s = storage()
    made = s.clone()
    assert made.tolist() == s.tolist() and made.data_ptr() != s.data_ptr()
    s.copy_(torch.zeros(3).untyped_storage())
    assert set(s) == {0} and made[2] == 128
    assert copy.copy(made).tolist() == copy.deepcopy(made).tolist() == made.tolist()
    assert made.cpu() is made and made.untyped() is made
    assert torch.UntypedStorage([1, 2, 3]).tolist() == [1, 2, 3]
    assert torch.UntypedStorage(3, device="meta").device.type == "meta"


def test_as_numbers_and_as_text():
    s = storage()
    assert s.float().tolist() == [float(b) for b in s] and s.long().dtype == torch.int64
    assert not s.is_cuda and not s.is_sparse and s.resizable() and not s.is_pinned()
    s.byteswap(torch.float32)
    assert s.tolist()[:4] == [63, 128, 0, 0]
    assert repr(torch.UntypedStorage([1, 2])) == f" 1\n 2\n[{torch.__name__}.storage.UntypedStorage(device=cpu) of size 2]"
    assert torch.UntypedStorage.from_buffer(b"ab", dtype=torch.uint8).tolist() == [97, 98]
    assert torch.UntypedStorage.from_buffer(b"abcd", byte_order="big", dtype=torch.int16).tolist() == [98, 97, 100, 99]


def test_sharing_takes_views_along():
    base = torch.arange(6.0)
    view, other = base[2:], base.view(2, 3)
    assert not base.is_shared()
    assert view.share_memory_() is view
    assert base.is_shared() and view.is_shared() and other.is_shared()
    base[3] = 10
    other[0, 2] = 20
    assert view.tolist() == [20, 10, 4, 5] and view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    s = torch.ones(2).untyped_storage()
    assert s.share_memory_().is_shared()


def test_tied_weights_stay_tied_when_a_module_is_shared():
    a, b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    b.weight = a.weight
    part = a.weight.detach()[0]
    torch.nn.Sequential(a, b).share_memory()
    with torch.no_grad():
        a.weight.fill_(4)
    assert b.weight.is_shared() and part.tolist() == [4, 4, 4]


def resized(t: torch.Tensor, name: str, *args, **kwargs) -> tuple:
    getattr(t, name)(*args, **kwargs)
    span = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
    assert (t.storage_offset() + span) * t.element_size() <= t.untyped_storage().nbytes()
    return tuple(t.shape), t.stride()


def test_resizing_gives_memory_for_every_place():
    part, image = torch.ones(4, 8)[:, ::4], torch.ones(2, 3, 4, 5)
    assert resized(torch.empty(0), "resize_as_", part, memory_format=torch.preserve_format) == ((4, 2), (2, 1))
    assert resized(torch.empty(0), "resize_as_", image.permute(0, 2, 3, 1), memory_format=torch.preserve_format)[1] == (60, 15, 3, 1)
    last = image.to(memory_format=torch.channels_last)
    assert resized(torch.empty(0), "resize_as_", last, memory_format=torch.preserve_format)[1] == last.stride()
    assert resized(torch.ones(4, 8)[:, ::4], "resize_", 4, 2, memory_format=torch.contiguous_format)[1] == (2, 1)
    if torch.__name__ == "strata":  # PyTorch's reads beyond the one element that it has
        expanded = torch.ones(1, 1, 1, 1).expand(2, 3, 4, 4)
        assert resized(expanded, "resize_", 2, 3, 4, 4, memory_format=torch.channels_last)[1] == (48, 1, 12, 3)
        t = torch.ones(2, 2)
        with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
            t.resize_as_(torch.ones(2, 2, 2), memory_format=torch.channels_last)
        assert t.shape == (2, 2)


def test_set_takes_no_other_dtypes_bytes():
    for source in (torch.arange(3).storage(), torch.arange(3)):
        x = torch.arange(4.0)
        with pytest.raises(RuntimeError, match="expected a source of"):
            x.set_(source)
        assert x.tolist() == [0, 1, 2, 3]
    assert torch.arange(4.0).set_(torch.arange(3.0).storage()).tolist() == [0, 1, 2]
    assert torch.zeros(1).set_(storage()).tolist() == [1, 2, 3]
