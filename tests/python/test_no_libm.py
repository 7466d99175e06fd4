"""No function of libm computes: what it returns differs between machines. See Note [No libm]."""

import os
import struct
import subprocess
import sys

import strata

# Exact, or rounded correctly by definition; each has its float form.
EXACT = {"fma", "floor", "ceil", "trunc", "rint", "nearbyint", "ldexp", "frexp", "nextafter", "sqrt", "fabs"}


def needed_of(library, path):
    """The dynamic symbols of an ELF file that are bound to versions of `library`, such as libm.so."""
    data = open(path, "rb").read()
    at, size, count, names = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HHH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(count)]

    def text(section, offset):
        start = sections[section][4] + offset
        return data[start : data.index(b"\0", start)].decode()

    by_name = {text(names, s[0]): s for s in sections}
    versions, needs, symbols = (by_name[n] for n in (".gnu.version", ".gnu.version_r", ".dynsym"))
    wanted, at = set(), needs[4]
    for _ in range(needs[7]):  # a library each, then its versions
        _, count, file, first, step = struct.unpack_from("<HHIII", data, at)
        entry = at + first
        for _ in range(count):
            _, _, number, _, after = struct.unpack_from("<IHHII", data, entry)
            if text(needs[6], file).startswith(library):
                wanted.add(number)
            entry += after
        at += step
    found = set()
    for i in range(symbols[5] // 24):
        name, _, _, section = struct.unpack_from("<IBBH", data, symbols[4] + 24 * i)
        if section == 0 and struct.unpack_from("<H", data, versions[4] + 2 * i)[0] & 0x7FFF in wanted:
            found.add(text(symbols[6], name))
    return found


def test_the_core_needs_nothing_of_libm_but_what_is_exact():
    core = os.path.join(os.path.dirname(strata.__file__), "libstrata.so")
    needed = needed_of("libm.so", core)
    assert needed and needed <= EXACT | {name + "f" for name in EXACT}
    assert "malloc" in needed_of("libc.so", core)


CHILD = """
import hashlib, sys
import strata
from strata import special

strata.backends.library(False)
strata.manual_seed(3)
h = hashlib.sha256()
def add(t):
    for part in (t.real, t.imag) if t.is_complex() else (t,):
        h.update(strata.where(part.isnan(), strata.zeros((), dtype=part.dtype), part).reshape(-1).view(strata.uint8).numpy().tobytes())

x = strata.randn(3000, dtype=strata.float64)
for dtype in (strata.float32, strata.float64, strata.bfloat16, strata.float16):
    y = (3 * x).to(dtype)
    for t in (y, y.view(3, 1000), y.view(1500, 2), y.view(60, 50)):
        for dim in range(t.dim()):
            add(t.logcumsumexp(dim)), add(t.cumsum(dim)), add(t.cumprod(dim))
for dtype in (strata.complex64, strata.complex128):
    y = strata.complex(x, x.flip(0)).to(dtype)
    add(y.logcumsumexp(0)), add(y.view(100, 30).cumprod(0))

degree = strata.tensor([3.0, 70000.0, 1e9], dtype=strata.float64)
for name in ("t", "u", "v", "w"):
    for dtype in (strata.float32, strata.float64):
        add(getattr(special, "chebyshev_polynomial_" + name)((x / 4).to(dtype)[:, None], degree.to(dtype)))
        add(getattr(special, "shifted_chebyshev_polynomial_" + name)((x / 4).to(dtype)[:, None], degree.to(dtype)))
add(special.hermite_polynomial_h(x, degree[:1])), add(special.legendre_polynomial_p(x, degree[:1]))
a = x.abs()
add(special.gammainc(a, a.flip(0))), add(special.zeta(a + 1, a.flip(0) + 0.1)), add(special.polygamma(3, a))

for rate in (0.3, 40.0, 1e5, 3e10):
    add(strata.poisson(strata.full((500,), rate, dtype=strata.float64)))
for count, p in ((10.0, 0.3), (1e4, 0.4), (1e12, 0.5)):
    add(strata.binomial(strata.full((500,), count, dtype=strata.float64), strata.full((500,), p, dtype=strata.float64)))
for p in (0.1, 0.25, 0.7):
    add(strata.empty(500, dtype=strata.float64).geometric_(p))

add(strata.linalg.matrix_exp(x[:2700].view(3, 30, 30)))
add(strata.round(1000 * x, decimals=2)), add(strata.round(1000 * x, decimals=-2))

for base in (0.7, 2 - 3j):
    z = x[:100].clone().requires_grad_()
    out = base**z
    (out.real if out.is_complex() else out).sum().backward()
    add(z.grad)

for kind in (strata.optim.Adam, strata.optim.AdamW, strata.optim.NAdam, strata.optim.RAdam, strata.optim.Adamax,
             strata.optim.ASGD, strata.optim.Adafactor):
    for dtype in (strata.float32, strata.float64):
        p = strata.nn.Parameter(x.to(dtype).clone())
        steps = kind([p], lr=0.01)
        for k in range(12):
            p.grad = (p.detach() - 1) * 0.3
            steps.step()
        add(p.detach())
print(h.hexdigest())
"""


def test_instruction_sets_and_threads_agree():
    """Also where C++ computes with single numbers."""
    seen = set()
    for name, threads in (("base", 1), ("v3", 1), ("v4", 1), ("v4", 2), ("base", 2)):
        env = dict(os.environ, STRATA_CPU=name, OMP_NUM_THREADS=str(threads))
        run = subprocess.run([sys.executable, "-c", CHILD], env=env, capture_output=True, text=True)
        if "does not have the instruction set" not in run.stderr:
            assert run.returncode == 0, run.stderr
            seen.add(run.stdout)
    assert len(seen) == 1
