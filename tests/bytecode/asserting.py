"""Functions with asserts of tensors. pytest does not rewrite these, since this is no file of tests."""

import strata
from strata import nn

NOTED: list = []


class Checked(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        assert (x > -100).all(), "too low"
        assert not x.isnan().any(), f"NaN in {tuple(x.shape)}"
        print("in")
        return self.linear(x).sin()


def notes(x):
    NOTED.append(1)
    y = x * 2
    assert y.max() < 10, y
    NOTED.append(2)
    return y + 1


def catches(x):
    try:
        assert (x > 0).all()
    except AssertionError:
        return x * 0
    return x * 3


def loops(x, n):
    for i in range(n):
        assert (x > i).any(), i
        x = x + 1
    return x, x.shape


def of_an_argument(flag, x):
    assert flag
    return 5


def of_one_element(x):
    assert x > 0
    return x + 1


def writes(x):
    x = x.clone()
    y = x[:2]
    y += 1
    assert (x > 0).all()
    return x * 3


def gradient(x):
    x = x.clone().requires_grad_()
    y = (x * x).sum()
    assert y > 9
    return strata.autograd.grad(y, x)[0]


def writes_argument(x):
    x.add_(1)
    assert (x > 0).all()
    return x * 3


def draws(x):
    y = nn.functional.dropout(x)
    assert (x > 0).all()
    return y


def of_many(x):
    assert x > 0
    return x


def reads(x):
    k = int(x.sum())
    assert (x > 0).all()
    return x * k
