"""Sparse tensors: what they print, compute and pass back."""

import copy
import io
import warnings

import strata as torch
from strata import nn

warnings.simplefilter("ignore")
i = torch.tensor([[0, 1, 1, 0], [2, 0, 2, 2]])
v = torch.tensor([3.0, 4, 5, 1])
s = torch.sparse_coo_tensor(i, v, (2, 3))
c = s.coalesce()
d = torch.arange(6.0).reshape(3, 2)
print(s, c, s.to_dense())
print(
    s.is_sparse, s.layout, s.shape, s.dtype, s.device, s._nnz(), s.is_coalesced(), s.numel(), s.size(0), s.requires_grad
)
print(c.indices(), c.values(), s.sparse_dim(), s.dense_dim(), isinstance(s, torch.Tensor))
print(torch.mm(s, d), s @ d, torch.sparse.mm(s, d), s.t() @ torch.ones(2, 1), torch.ones(2, 2) @ s, s @ torch.ones(3))
print((s + s).coalesce(), s * 2, 2 * s, c * c, s.t(), -s, (s / 2).coalesce(), abs(c), s.double(), (s - s).coalesce())
print(torch.ones(2, 3) + s, torch.addmm(torch.ones(2, 2), s, d, beta=2, alpha=3), (s @ c.t()).to_dense(), s[1])
print(torch.sparse.sum(s), torch.sparse.sum(s, dim=0), torch.sparse.sum(s, 1).to_dense(), torch.sparse.sum(s, (0, 1)))
print(torch.sparse.softmax(c, 1), torch.sparse.log_softmax(c, 0).to_dense())
x = torch.tensor([[0.0, 1, 0], [2, 0, 3]])
print(x.to_sparse(), x.to_sparse().to_dense().equal(x), x.to_sparse(1), torch.eye(3).to_sparse())
csr = x.to_sparse_csr()
print(
    csr, csr @ d, csr.crow_indices(), csr.col_indices(), csr.values(), csr.to_dense(), csr.layout, csr.to_sparse_coo()
)
print(
    torch.sparse_csr_tensor(
        torch.tensor([0, 2, 3]), torch.tensor([0, 1, 1]), torch.tensor([1.0, 2, 3]), dtype=torch.float64
    )
)
print(torch.sparse_coo_tensor(i, torch.ones(4, 2), (2, 3, 2)).coalesce(), torch.sparse_coo_tensor((2, 3)))
print(torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0]), copy.deepcopy(s), torch.cat([s, s], 1).coalesce())
print(torch.sparse.FloatTensor(i, v, torch.Size([2, 3])).to_dense())

# Gradients: of values, of dense matrices, of a leaf, through to_sparse and to_dense.
w, values = torch.ones(3, 2, requires_grad=True), v.clone().requires_grad_()
(torch.sparse.mm(torch.sparse_coo_tensor(i, values, (2, 3)), w) ** 2).sum().backward()
print(w.grad, values.grad)
leaf = torch.sparse_coo_tensor(i, v, (2, 3), requires_grad=True)
print(leaf)
torch.sparse.mm(leaf, d).sum().backward()
print(leaf.grad.to_dense() if leaf.grad.is_sparse else leaf.grad)
y = torch.ones(3, requires_grad=True)
((y * 2).to_sparse().to_dense() * torch.arange(3.0)).sum().backward()
print(y.grad)

file = io.BytesIO()
torch.save({"s": s, "c": csr}, file)
file.seek(0)
again = torch.load(file)
print(again["s"], again["c"])
for wrong in (lambda: s.indices(), lambda: torch.sparse_coo_tensor([[0, 1], [0, 0]], [1.0], (2, 2))):
    try:
        print(wrong())
    except RuntimeError as error:
        print(error)

# Embeddings whose gradients are sparse, and the optimisers that take them.
for name in ("SGD", "SparseAdam", "Adagrad"):
    table = nn.Embedding(5, 2, sparse=True, padding_idx=0)
    with torch.no_grad():
        table.weight.copy_(torch.arange(10.0).reshape(5, 2) / 10)
    optimizer = getattr(torch.optim, name)(table.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        (table(torch.tensor([[1, 2], [2, 0]])) ** 2).sum().backward()
        if step == 0:
            print(table.weight.grad, table.weight.grad.coalesce())
        optimizer.step()
    print(name, table.weight)
table.zero_grad()
for _ in range(2):
    table(torch.tensor([1, 3])).sum().backward()
print(table.weight.grad.coalesce())
bag = nn.EmbeddingBag(5, 2, sparse=True, mode="sum")
bag(torch.tensor([[1, 2]])).sum().backward()
print(bag.weight.grad.is_sparse, bag.weight.grad.coalesce().indices())
for optimizer in (torch.optim.Adam(bag.parameters()), torch.optim.SparseAdam(nn.Linear(1, 1).parameters())):
    try:
        for parameter in optimizer.param_groups[0]["params"]:
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        optimizer.step()
    except RuntimeError as error:
        print(error)
