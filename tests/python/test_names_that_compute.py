"""Operators, storages and files by names that libraries use beside PyTorch's documented ones."""

import os

import pytest
import strata

F = strata.nn.functional


def _offsets(*ends):
    return strata.tensor(ends, dtype=strata.int32)


def test_groups_of_rows():
    a, b = strata.randn(7, 4, requires_grad=True), strata.randn(3, 4, 5, requires_grad=True)
    made = F.grouped_mm(a, b, offs=_offsets(2, 2, 6))
    assert made.shape == (7, 5) and made[6].eq(0).all()  # the last row is in no group
    wanted = strata.cat([a[:2] @ b[0], a[2:6] @ b[2]])
    assert made[:6].equal(wanted)
    weight = strata.randn(7, 5)
    found = strata.autograd.grad((made * weight).sum(), (a, b))
    expected = strata.autograd.grad((wanted * weight[:6]).sum(), (a, b))
    for one, other in zip(found, expected, strict=True):
        strata.testing.assert_close(one, other)
    assert found[1][1].eq(0).all()


def test_groups_of_other_dims():
    a, b = strata.randn(3, 8), strata.randn(8, 5)
    assert F.grouped_mm(a, b, offs=_offsets(3, 8)).equal(strata.stack([a[:, :3] @ b[:3], a[:, 3:] @ b[3:]]))
    c = strata.randn(2, 3, 8)
    assert F.grouped_mm(c, b, offs=_offsets(1, 4)).equal(strata.cat([c[0] @ b[:, :1], c[1] @ b[:, 1:4], strata.zeros(3, 1)], 1))
    d = strata.randn(2, 8, 5, dtype=strata.bfloat16)
    assert strata._grouped_mm(c.bfloat16(), d).equal(strata.bmm(c.bfloat16(), d))
    assert strata.ops.aten._grouped_mm(c, b, _offsets(1, 5)).equal(strata._grouped_mm(c, b, _offsets(1, 5)))


def test_groups_that_do_not_fit():
    a, b, offs = strata.randn(6, 4), strata.randn(2, 4, 5), _offsets(2, 6)
    for error, wrong in (
        ("float32, bfloat16 or float16", lambda: F.grouped_mm(a.double(), b.double(), offs=offs)),
        ("one dtype", lambda: F.grouped_mm(a, b.half(), offs=offs)),
        ("2 or 3 dims", lambda: F.grouped_mm(a[0], b, offs=offs)),
        ("offsets if there is a 2d", lambda: F.grouped_mm(a, b)),
        ("contraction", lambda: F.grouped_mm(a, b.transpose(1, 2), offs=offs)),
        ("int32", lambda: F.grouped_mm(a, b, offs=offs.long())),
        ("batch sizes", lambda: F.grouped_mm(a, b, offs=_offsets(6))),
        ("within 0 and 6", lambda: F.grouped_mm(a, b, offs=_offsets(4, 7))),
        ("must not fall", lambda: F.grouped_mm(a, b, offs=_offsets(4, 2))),
    ):
        with pytest.raises(RuntimeError, match=error):
            wrong()
    with pytest.raises(NotImplementedError, match="bias"):
        F.grouped_mm(a, b, offs=offs, bias=strata.zeros(5))


def test_pieces():
    x = strata.arange(6.0)
    ends = strata.tensor([0, 2, 2, 6])
    assert strata._segment_reduce(x, "sum", offsets=ends).tolist() == [1, 0, 14]
    assert strata._segment_reduce(x, "amax", offsets=ends).tolist() == [1, -strata.inf, 5]
    assert strata._segment_reduce(x, "amin", lengths=ends.diff()).tolist() == [0, strata.inf, 2]
    assert strata._segment_reduce(x, "mean", offsets=ends, initial=0).tolist() == [0.5, 0, 3.5]


def test_small_functions():
    assert strata._shape_as_tensor(strata.ones(2, 0, 3)).equal(strata.tensor([2, 0, 3]))
    assert strata.sym_sum([1, 2, 3]) == strata.sym_sum(1, 2, 3) == 6
    assert strata.legacy_contiguous_format is strata.contiguous_format and strata.ScriptModule is strata.jit.ScriptModule
    strata.manual_seed(0)
    drawn = strata._sample_dirichlet(strata.tensor([[1.0, 2.0, 5.0]]).expand(4000, 3))
    strata.testing.assert_close(drawn.sum(-1), strata.ones(4000))
    strata.testing.assert_close(drawn.mean(0), strata.tensor([1.0, 2.0, 5.0]) / 8, atol=0.02, rtol=0)
    with pytest.raises(NotImplementedError, match="default generator"):
        strata._sample_dirichlet(strata.ones(2), strata.Generator())
    sparse = strata.eye(2).to_sparse()
    assert strata.dsmm(sparse, strata.ones(2, 3)).equal(strata.ones(2, 3))


def test_sparse_tensors_are_told_to_be_in_order():
    x = strata.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (3,))
    assert not x.is_coalesced() and x._coalesced_(True) is x and x.is_coalesced()
    assert x.values().tolist() == [1, 2] and not x._coalesced_(False).is_coalesced()


def test_groups_of_tensors():
    a, b = strata.ones(1), strata.ones(1, dtype=strata.float64)
    groups = strata.optim.Optimizer._group_tensors_by_device_and_dtype([[a, b, a], [None, b, a]], with_indices=True)
    (lists, places), (others, others_places) = groups[a.device, strata.float32], groups[a.device, strata.float64]
    assert places == [0, 2] and others_places == [1] and lists[0][1] is a and lists[1][0] is None and others[1][0] is b


def test_operators_that_others_say():
    aten = strata.ops.aten
    x = strata.arange(6.0).reshape(2, 3)
    assert aten._is_all_true.default(x >= 0).item() and not aten._is_any_true(x < 0).item()
    assert aten._local_scalar_dense.default(strata.tensor(3)) == 3 and aten.sym_size.int(x, 1) == 3
    copied = aten.slice_copy.Tensor(x, 1, 1, None, 2)
    assert copied.equal(x[:, 1::2]) and copied.untyped_storage() != x.untyped_storage()
    assert str(aten._assert_scalar.default) == "aten._assert_scalar.default" and aten._assert_async.overloads() == ["default", "msg"]
    aten._assert_tensor_metadata(x, [2, 3], None, strata.float32, device=strata.device("cpu"), layout=strata.strided)
    aten.sym_constrain_range_for_size(3, min=1, max=4)
    for wrong, error in (
        (lambda: aten._assert_scalar(False, "not so"), "not so"),
        (lambda: aten._assert_async.msg(strata.zeros(()), "nor so"), "nor so"),
        (lambda: aten._assert_tensor_metadata(x, None, [1, 2]), "stride mismatch"),
        (lambda: aten._assert_tensor_metadata(x, dtype=strata.int64), "dtype mismatch"),
        (lambda: aten.sym_constrain_range_for_size(5, min=1, max=4), "Invalid value range"),
    ):
        with pytest.raises(RuntimeError, match=error):
            wrong()
    assert not hasattr(aten, "_nothing_of_the_kind") and not hasattr(aten, "_foreach_nothing")
    y = strata.ones(3, requires_grad=True)
    z = y * 2
    assert aten.detach_.default(z) is z and not z.requires_grad
    aten.slice_copy.Tensor(y, 0, 0, 2).sum().backward()  # they differentiate by their parts
    assert y.grad.tolist() == [1, 1, 0]
    dense = strata.randn(2, 2)
    strata.testing.assert_close(aten._sparse_addmm(dense, strata.eye(2).to_sparse(), dense, beta=2), 3 * dense)


def test_operators_over_lists():
    aten = strata.ops.aten
    tensors = [strata.tensor([1.0, -2.0]), strata.tensor([4.0])]
    assert aten._foreach_div.overloads() == ["List", "Scalar", "Tensor"]
    assert "Scalar" in aten._foreach_maximum_.overloads()
    halves = aten._foreach_div.Tensor(tensors, strata.tensor(2.0))
    assert [t.tolist() for t in halves] == [[0.5, -1], [2]]
    assert [t.tolist() for t in aten._foreach_div(tensors, tensors)] == [[1, 1], [1]]
    assert [t.tolist() for t in aten._foreach_sub.Scalar(tensors, 1.0)] == [[0, -3], [3]]
    assert aten._foreach_maximum_.Scalar(tensors, 0.0) is None and tensors[0].tolist() == [1, 0]


def test_storages_over_files(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(10)))
    own = strata.UntypedStorage.from_file(str(path), False, 6)
    own[0] = 9
    assert own.tolist() == [9, 1, 2, 3, 4, 5] and path.read_bytes()[0] == 0  # written in memory alone
    shared = strata.UntypedStorage.from_file(str(path), shared=True, nbytes=12)
    shared[1] = 200
    assert path.read_bytes() == bytes([0, 200, *range(2, 10), 0, 0])
    strata.tensor([], dtype=strata.uint8).set_(shared)[2] = 7
    assert path.read_bytes()[2] == 7
    with pytest.raises(RuntimeError, match="smaller than the required"):
        strata.UntypedStorage.from_file(str(path), False, 13)
    with pytest.raises(FileNotFoundError):
        strata.UntypedStorage.from_file(str(path) + ".not", False, 1)
    made = strata.UntypedStorage.from_file(str(tmp_path / "new"), True, 3)
    assert made.tolist() == [0, 0, 0] and os.path.getsize(tmp_path / "new") == 3
    assert strata.UntypedStorage.from_file(str(path)).nbytes() == 0


def test_storages_of_buffers():
    made = strata.ByteStorage._from_buffer(b"abc")
    assert type(made) is strata.ByteStorage and strata.ByteTensor(made).tolist() == [97, 98, 99]
    numbers = strata.TypedStorage.from_buffer(bytes([1, 0, 2, 0]), dtype=strata.int16)
    assert numbers.tolist() == [1, 2] and numbers.dtype is strata.int16
    with pytest.raises(RuntimeError, match="can only be specified"):
        strata.ByteStorage.from_buffer(b"abc", dtype=strata.int8)
    assert strata.ones(3)._typed_storage().dtype is strata.float32


def test_records_of_a_file(tmp_path):
    path = str(tmp_path / "saved.pt")
    x = strata.arange(5.0)
    strata.save({"x": x}, path)
    reader = strata.PyTorchFileReader(path)
    assert {"data.pkl", "data/0"} <= set(reader.get_all_records()) and reader.has_record("data/0") and not reader.has_record("data/9")
    assert reader.get_record("data/0") == bytes(x.untyped_storage())
    storage = reader.get_storage_from_record("data/0", 20, strata.UntypedStorage)._typed_storage()._untyped_storage
    assert strata.storage.TypedStorage(wrap_storage=storage, dtype=strata.float32).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="file not found"):
        reader.get_record("data/9")
    with pytest.raises(RuntimeError, match="has 20 bytes, expected 21"):
        reader.get_storage_from_record("data/0", 21, strata.uint8)
    other = tmp_path / "other"
    other.write_bytes(b"no archive")
    with pytest.raises(RuntimeError, match="expected a file that strata.save wrote"):
        strata.PyTorchFileReader(str(other))


def test_groups_in_graphs():
    a, b, offs = strata.randn(6, 4), strata.randn(2, 4, 5), _offsets(2, 5)
    wanted = F.grouped_mm(a, b, offs=offs)
    compiled = strata.compile(lambda a, b, offs: F.grouped_mm(a, b, offs=offs) * 2, fullgraph=True)
    assert compiled(a, b, offs).equal(wanted * 2)
    assert compiled(a, b, _offsets(4, 6)).equal(F.grouped_mm(a, b, offs=_offsets(4, 6)) * 2)  # other groups, the same graph

    class Made(strata.nn.Module):
        def forward(self, a, b, offs):
            return strata._grouped_mm(a, b, offs)

    program = strata.export.export(Made(), (a, b, offs)).module()
    assert program(a, b, _offsets(1, 6)).equal(F.grouped_mm(a, b, offs=_offsets(1, 6)))
    assert F.grouped_mm(a.to("meta"), b.to("meta"), offs=offs.to("meta")).shape == (6, 5)


@pytest.mark.parametrize("shapes", [((6, 4), (2, 4, 5)), ((3, 6), (6, 5)), ((2, 3, 4), (4, 6)), ((2, 3, 4), (2, 4, 5))])
def test_gradients_of_groups(shapes):
    a, b = (strata.randn(shape, requires_grad=True) for shape in shapes)
    offs = None if len(shapes[0]) == len(shapes[1]) == 3 else _offsets(2, 5)
    made = F.grouped_mm(a, b, offs=offs)
    weight = strata.randn_like(made)
    found = strata.autograd.grad((made * weight).sum(), (a, b), create_graph=True)
    assert strata.autograd.grad(found[0].sum() + found[1].sum(), (a, b))[0].shape == a.shape
    for x, gradient in zip((a, b), found, strict=True):  # linear in each, so a difference is the derivative
        step = strata.randn_like(x)
        moved = F.grouped_mm(*((x + step, b) if x is a else (a, x + step)), offs=offs)
        strata.testing.assert_close(((moved - made) * weight).sum(), (gradient * step).sum(), rtol=1e-3, atol=1e-3)
