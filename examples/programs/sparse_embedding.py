"""Word vectors by skip-grams, with sparse gradients, and a product with a sparse matrix of word pairs."""

import math

import strata as torch
from strata import nn

TEXT = """the king rules the land the queen rules the land the king loves the queen
the farmer ploughs the land the dog guards the farmer the cat fears the dog""".split()
vocabulary = sorted(set(TEXT))
index = {word: i for i, word in enumerate(vocabulary)}
words = torch.tensor([index[word] for word in TEXT])


class SkipGram(nn.Module):
    def __init__(self, words, size):
        super().__init__()
        self.centre = nn.Embedding(words, size, sparse=True)
        self.around = nn.Embedding(words, size, sparse=True)

    def forward(self, centre, around):
        return (self.centre(centre) * self.around(around)).sum(-1)


def pairs(window=2):
    found = []
    for i in range(len(words)):
        for j in range(max(0, i - window), min(len(words), i + window + 1)):
            if i != j:
                found.append((int(words[i]), int(words[j])))
    return torch.tensor(found)


model = SkipGram(len(vocabulary), 6)
with torch.no_grad():
    for k, parameter in enumerate(model.parameters()):
        values = [0.3 * math.sin(0.7 * i + 2 * k) for i in range(parameter.numel())]
        parameter.copy_(torch.tensor(values).reshape(parameter.shape))
optimizer = torch.optim.SparseAdam(model.parameters(), lr=0.05)
found = pairs()
other = (found[:, 1] + 5) % len(vocabulary)
print(f"{len(vocabulary)} words, {len(found)} pairs")
for epoch in range(20):
    optimizer.zero_grad()
    near = nn.functional.logsigmoid(model(found[:, 0], found[:, 1]))
    far = nn.functional.logsigmoid(-model(found[:, 0], other))
    loss = -(near + far).mean()
    loss.backward()
    optimizer.step()
    if epoch % 5 == 0:
        gradient = model.centre.weight.grad
        print(f"epoch {epoch}: loss {loss.item():.4f}, sparse {gradient.is_sparse}, rows {gradient.coalesce().indices().shape[1]}")

# How often words stand together: a sparse matrix whose doubles are added.
counts = torch.sparse_coo_tensor(found.t(), torch.ones(len(found)), (len(vocabulary),) * 2).coalesce()
print(counts._nnz(), counts.values().max(), counts.layout)
frequency = torch.sparse.sum(counts, dim=1).to_dense()
print([vocabulary[i] for i in frequency.argsort(descending=True, stable=True)[:3].tolist()])
smoothed = torch.sparse.mm(counts, model.centre.weight.detach()) / frequency.unsqueeze(1)
print(smoothed.shape, f"{smoothed.abs().mean().item():.4f}")
print(counts.to_sparse_csr().crow_indices())
