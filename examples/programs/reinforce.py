"""REINFORCE in a corridor of its own: walk right to the goal. The policy's samples come from Python's generator."""

import random
from collections import deque

import strata as torch
from strata import nn, optim
from strata.distributions import Categorical
from strata.nn import functional as F

random.seed(3)


class Corridor:
    """Six places; action 1 goes right, 0 left; the goal is the last place."""

    def reset(self):
        self.place = 2
        return self.observe()

    def observe(self):
        return F.one_hot(torch.tensor(self.place), 6).float()

    def step(self, action):
        self.place = max(0, self.place + (1 if action == 1 else -1))
        done = self.place == 5
        return self.observe(), 1.0 if done else -0.1, done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(6, 8)
        self.dropout = nn.Dropout(p=0.0)
        self.affine2 = nn.Linear(8, 2)
        for parameter in self.parameters():
            values = [random.uniform(-0.3, 0.3) for _ in range(parameter.numel())]
            parameter.data = torch.tensor(values).reshape(parameter.shape)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.dropout(self.affine1(x)))), dim=1)


policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=5e-2)
eps = 1e-8


def select_action(state):
    probs = policy(state.unsqueeze(0))
    m = Categorical(probs)
    action = torch.tensor([int(random.random() < probs[0, 1].item())])
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode():
    R, returns = 0, deque()
    for r in policy.rewards[::-1]:
        R = r + 0.95 * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    if len(returns) > 1:
        returns = (returns - returns.mean()) / (returns.std() + eps)
    optimizer.zero_grad()
    loss = torch.cat([-log_prob * R for log_prob, R in zip(policy.saved_log_probs, returns, strict=True)]).sum()
    loss.backward()
    optimizer.step()
    policy.rewards, policy.saved_log_probs = [], []


env, running = Corridor(), 0.0
for episode in range(60):
    state, total = env.reset(), 0
    for _ in range(40):
        state, reward, done = env.step(select_action(state))
        policy.rewards.append(reward)
        total += reward
        if done:
            break
    running = total if episode == 0 else 0.05 * total + 0.95 * running
    finish_episode()
    if episode in (0, 20):
        print(f"Episode {episode}\tLast reward: {total:.2f}\tAverage reward: {running:.2f}")
print("goes right:", bool((policy(torch.eye(6))[:5, 1] > 0.5).all()), "average above 0.5:", running > 0.5)
