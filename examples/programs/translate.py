"""A transformer that learns to turn sequences round: masks, teacher forcing, greedy decoding."""

import math

import strata as torch
from strata import nn

PAD, BOS, EOS, WORDS = 0, 1, 2, 8


class PositionalEncoding(nn.Module):
    def __init__(self, size, length=32):
        super().__init__()
        position = torch.arange(length).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, size, 2) * (-math.log(10000.0) / size))
        pe = torch.zeros(1, length, size)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[:, : x.size(1)]


class Translator(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        self.size = size
        self.source = nn.Embedding(WORDS, size, padding_idx=PAD)
        self.target = nn.Embedding(WORDS, size, padding_idx=PAD)
        self.position = PositionalEncoding(size)
        self.transformer = nn.Transformer(size, 2, 1, 1, 32, dropout=0.0, batch_first=True)
        self.generator = nn.Linear(size, WORDS)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
        src_pad, tgt_pad = src == PAD, tgt == PAD
        tgt_pad = torch.zeros_like(tgt_pad, dtype=torch.float32).masked_fill(tgt_pad, float("-inf"))
        src_x = self.position(self.source(src) * math.sqrt(self.size))
        tgt_x = self.position(self.target(tgt) * math.sqrt(self.size))
        out = self.transformer(src_x, tgt_x, tgt_mask=mask, src_key_padding_mask=src_pad, tgt_key_padding_mask=tgt_pad,
                               memory_key_padding_mask=src_pad)  # fmt: skip
        return self.generator(out)


sources = torch.tensor([[3, 4, 5, PAD], [6, 7, PAD, PAD], [5, 3, 7, 4], [4, 6, 3, PAD], [7, 5, PAD, PAD], [3, 6, 7, 5]])
targets = []
for row in sources.tolist():
    words = [w for w in row if w != PAD][::-1]
    targets.append([BOS, *words, EOS] + [PAD] * (4 - len(words)))
targets = torch.tensor(targets)
model = Translator()
with torch.no_grad():
    for k, (name, parameter) in enumerate(model.named_parameters()):
        if "norm" not in name:
            values = [0.25 * math.sin(1.7 * i * (k + 3) ** 0.5 + k) for i in range(parameter.numel())]
            parameter.copy_(torch.tensor(values).reshape(parameter.shape))
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.98), eps=1e-9)
print(sum(p.numel() for p in model.parameters()), "parameters")
for epoch in range(1, 121):
    logits = model(sources, targets[:, :-1])
    optimizer.zero_grad()
    loss = criterion(logits.reshape(-1, WORDS), targets[:, 1:].reshape(-1))
    loss.backward()
    optimizer.step()
    if epoch in (1, 10, 20):
        print(f"epoch {epoch}: loss {loss.item():.3f}")
print("learned:", loss.item() < 0.1)

model.eval()
with torch.no_grad():
    for row in sources[:3]:
        found = torch.tensor([[BOS]])
        for _ in range(5):
            best = model(row.unsqueeze(0), found)[0, -1].argmax().item()
            found = torch.cat([found, torch.tensor([[best]])], dim=1)
            if best == EOS:
                break
        print(row.tolist(), "->", found[0].tolist())
