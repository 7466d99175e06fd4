"""A recurrent network that learns to spell: packed sequences, gradient clipping, greedy text."""

import math

import strata as torch
from strata import nn
from strata.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

NAMES = ["anna", "hannah", "bob", "otto", "eve", "nan"]
letters = sorted({c for name in NAMES for c in name} | {"<", ">"})
number = {c: i for i, c in enumerate(letters)}


class CharRNN(nn.Module):
    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 8)
        self.rnn = nn.LSTM(8, hidden, num_layers=1, batch_first=True)
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, x, lengths=None, state=None):
        x = self.embedding(x)
        if lengths is not None:
            x = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, state = self.rnn(x, state)
        if lengths is not None:
            out, _ = pad_packed_sequence(out, batch_first=True)
        return self.decoder(out), state


model = CharRNN(len(letters), 24)
with torch.no_grad():
    for k, parameter in enumerate(model.parameters()):
        values = [0.3 * math.sin(0.9 * i * (k + 1) + k) for i in range(parameter.numel())]
        parameter.copy_(torch.tensor(values).reshape(parameter.shape))
encoded = [torch.tensor([number[c] for c in f"<{name}>"]) for name in NAMES]
lengths = torch.tensor([len(e) - 1 for e in encoded])
inputs = pad_sequence([e[:-1] for e in encoded], batch_first=True, padding_value=number[">"])
targets = pad_sequence([e[1:] for e in encoded], batch_first=True, padding_value=-100)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
print(f"{len(letters)} letters, {sum(p.numel() for p in model.parameters())} parameters, batch {tuple(inputs.shape)}")
for epoch in range(1, 61):
    optimizer.zero_grad()
    scores, _ = model(inputs, lengths)
    loss = criterion(scores.reshape(-1, len(letters)), targets.reshape(-1))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if epoch in (1, 10, 30):
        print(f"epoch {epoch}: loss {loss.item():.3f}")
print("learned:", loss.item() < 0.6)


def spell(start):
    model.eval()
    text, state = start, None
    x = torch.tensor([[number[c] for c in "<" + start]])
    with torch.no_grad():
        while len(text) < 8:
            scores, state = model(x, state=state)
            best = scores[0, -1].argmax().item()
            if letters[best] == ">":
                break
            text += letters[best]
            x = torch.tensor([[best]])
    return text


print([spell(c) for c in ("h", "b", "ot", "ev")])
