"""A variational autoencoder of small patterns, and its distributions."""

import math
import random

import strata as torch
from strata import distributions, nn, optim
from strata.nn import functional as F

random.seed(0)


def noise(*shape):
    """Normal numbers of Python's generator, so that both libraries draw the same."""
    n = math.prod(shape)
    return torch.tensor([random.gauss(0, 1) for _ in range(n)]).reshape(shape)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 32)
        self.fc21 = nn.Linear(32, 2)
        self.fc22 = nn.Linear(32, 2)
        self.fc3 = nn.Linear(2, 32)
        self.fc4 = nn.Linear(32, 16)
        for parameter in self.parameters():
            parameter.data = noise(*parameter.shape) * 0.2

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        return mu + noise(*mu.shape) * torch.exp(0.5 * logvar)

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 16))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 16), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


patterns = torch.zeros(4, 4, 4)
patterns[0, :, :2] = 1
patterns[1, :, 2:] = 1
patterns[2, :2] = 1
patterns[3, 2:] = 1
data = patterns.repeat(8, 1, 1)
model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(1, 61):
    model.train()
    optimizer.zero_grad()
    recon, mu, logvar = model(data)
    loss = loss_function(recon, data, mu, logvar)
    loss.backward()
    optimizer.step()
    if epoch % 20 == 0:
        print(f"====> Epoch: {epoch} Average loss: {loss.item() / len(data):.3f}")

model.eval()
with torch.no_grad():
    mu, logvar = model.encode(patterns.view(-1, 16))
    posterior = distributions.Independent(distributions.Normal(mu, torch.exp(0.5 * logvar)), 1)
    prior = distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    by_hand = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), 1)
    flat = distributions.Independent(distributions.Normal(torch.zeros(2), torch.ones(2)), 1)
    print("divergence:", torch.allclose(distributions.kl_divergence(posterior, flat), by_hand, atol=1e-5))
    print("density:", torch.allclose(prior.log_prob(mu), flat.log_prob(mu), atol=1e-5))
    print("right pixels:", (model.decode(mu).round() == patterns.view(-1, 16)).float().mean().item() > 0.9)
