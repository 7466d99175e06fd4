"""What tools/fuzz_compile.py changes between calls of a program (--mutate-state)."""

from __future__ import annotations

import random
from typing import Any

import strata

# What programs, and strata's own modules, call of strata.
LIBRARY = [
    (strata.nn.functional, "linear"), (strata.nn.functional, "dropout"), (strata.nn.functional, "softmax"), (strata.nn.Linear, "forward"),
    (strata.nn.Tanh, "forward"), (strata, "sin"), (strata, "relu"), (strata, "tanh"), (strata.Tensor, "tanh"), (strata.Tensor, "clamp"),
    (strata.Tensor, "__mul__"), (strata.nn.Module, "__call__"), (strata.nn.functional, "tanh"),
]  # fmt: skip
ORIGINALS = [getattr(owner, name) for owner, name in LIBRARY]


def replace_in_library(at: int, factor: int) -> None:
    """Another function in the place of one of strata's; 0 puts it back."""
    (owner, name), original = LIBRARY[at], ORIGINALS[at]
    setattr(owner, name, (lambda *args, **kwargs: original(*args, **kwargs) + factor) if factor else original)


def mutate(side: Any, r: random.Random) -> str:
    """Changes something that the function may have read. What it was, in words."""
    s, net = side.space, side.space["NET"]
    choice = r.randrange(30)
    if choice == 0:
        s["G_INT"] = r.randint(0, 4)
    elif choice == 1:
        s["G_FLAG"] = not s["G_FLAG"]
    elif choice == 2:
        s["G_LIST"].append(r.randint(0, 3))
    elif choice == 3:
        s["G_DICT"] = dict(reversed(s["G_DICT"].items()))
    elif choice == 4:
        s["OBJ"].n = r.randint(0, 3)
    elif choice == 5:
        net.train(not net.training)
    elif choice == 6:
        net.lin.weight.requires_grad_(not net.lin.weight.requires_grad)
    elif choice == 7:
        side.set_cell(r.randint(1, 5))
    elif choice == 8:
        strata.manual_seed(9)
        net.lin = strata.nn.Linear(4, 4)
    elif choice == 9:
        factor = r.randint(1, 3)
        s["Obj"].act = lambda self, v: v * factor
    elif choice == 10:
        exec(f"def helper(a, b=3, *rest, k={r.randint(1, 4)}, **more): return a + b * k", s)
    elif choice == 11:
        net.lin.register_forward_hook(lambda module, args, output: output * 2)
    elif choice == 12:
        net.blocks.append(strata.nn.ReLU()) if len(net.blocks) < 4 else None
    elif choice == 13:
        s["Obj"].kind = r.randint(1, 4)
    elif choice == 14:
        s["OBJ"].scale = r.choice([0.25, -0.0, 0.0, 1])
    elif choice == 15:
        with strata.no_grad():
            net.lin.weight.mul_(0.5)
    elif choice == 16:
        s["chooser"].__defaults__ = None
        exec("def chooser(v, n): return v - n", s)
    elif choice == 17:
        s["helper"].__kwdefaults__ = {"k": r.randint(0, 5)}
    elif choice == 18:
        net.drop.p = r.choice([0.1, 0.5])
    elif choice == 19:
        s["OBJ"].t = strata.ones(4) * r.randint(1, 3)
    elif choice == 20:
        factor = r.randint(1, 3)
        s[r.choice(["Base", "Obj"])].__getitem__ = lambda self, k: k * factor
    elif choice == 21:
        truth = r.choice([True, False])
        s["Obj"].__bool__ = lambda self: truth
    elif choice == 22:
        s["Obj"].__bases__ = (s[r.choice(["Base", "Other"])],)
    elif choice == 23:
        s["Obj"].__getattr__ = lambda self, name: 2 if name == "extra" else object.__getattribute__(self, name)
    elif choice == 24:
        s["Obj"].__name__ = r.choice(["Obj", "Longer"])
    elif choice == 25:
        factor = r.randint(1, 3)
        s["Obj"].__setattr__ = lambda self, name, value: object.__setattr__(self, name, value * factor if name == "n" else value)
    else:
        replace_in_library(r.randrange(len(LIBRARY)), r.choice([0, 1, 1, 2]))
    return f"mutation {choice}"
