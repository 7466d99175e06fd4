#!/usr/bin/env bash
# Measures what a change of the table costs: a build without changes, with one changed `compute`, and with the operators
# that docs/add-an-operator.md adds, which are then called from Python. Ends with the table as it was, built.
# Usage: tools/check_rebuild.sh [LIMIT]; exit code 1 when a build takes more than LIMIT seconds (60) or an answer is wrong.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
limit="${1:-60}"
build="${STRATA_BUILD:-$PWD/build/release}"
table=ops/activation.yaml
kept=$(mktemp -d)
failed=0

restore() {
  if ! diff -rq "$kept/ops" ops >/dev/null; then
    cp -r "$kept/ops" .
    cmake --build "$build" >/dev/null
  fi
  rm -rf "$kept"
}

# timed WHAT: builds, prints the seconds and the number of steps.
timed() {
  local start end seconds steps
  start=$(date +%s.%N)
  cmake --build "$build" >"$build/rebuild.log" 2>&1 || { grep -A6 'error' "$build/rebuild.log"; exit 1; }
  end=$(date +%s.%N)
  seconds=$(echo "$end $start" | awk '{ printf "%.1f", $1 - $2 }')
  steps=$(grep -cE '^\[[0-9]+/' "$build/rebuild.log" || true)
  echo "$1: $seconds s, $steps steps"
  if awk -v s="$seconds" -v l="$limit" 'BEGIN { exit !(s > l) }'; then
    echo "  more than $limit s"
    failed=1
  fi
}

./run build
cp -r ops "$kept"
trap restore EXIT

timed "no change"
grep -q 'no work to do' "$build/rebuild.log" || { echo "  a build without changes did something"; failed=1; }

sed -i 's|^  compute: maximum(self, 0)$|  compute: maximum(self, 0 * self)|' "$table"
cmp -s "$kept/$table" "$table" && { echo "the entry of relu looks otherwise than this check expects"; exit 1; }
timed "one compute changed"
cp "$kept/$table" "$table"
cmake --build "$build" >/dev/null

sed -n '/^```diff$/,/^```$/p' docs/add-an-operator.md | sed '1d;$d' | git apply -
timed "four operators added, one of each kind"
./run python - <<'PY' || failed=1
import math

import strata

x = strata.tensor([0.0, 1.0, -2.0], dtype=strata.float64, requires_grad=True)
want = [(math.sqrt(v * v + 1) - 1) / 2 + v for v in x.tolist()]
out = strata.empty(3, dtype=strata.float64)
strata.bent_identity(x.detach(), out=out)
changed = x.detach().clone()
changed.bent_identity_()
y = x.bent_identity()
assert type(y.grad_fn).__name__ == "BentIdentityBackward0", y.grad_fn
for got in (strata.bent_identity(x), y, out, changed, strata.ops.aten.bent_identity(x)):
    assert all(abs(g - w) < 1e-12 for g, w in zip(got.tolist(), want)), (got, want)
assert strata.autograd.gradcheck(strata.bent_identity, [x]) and strata.autograd.gradgradcheck(strata.bent_identity, [x])
print("bent_identity: function, method, in-place, out=, gradient: as they should be")

from strata.autograd import gradcheck, gradgradcheck

m = strata.tensor([[1.0, 2.0, -3.0], [4.0, 0.5, 6.0]], dtype=strata.float64, requires_grad=True)
assert strata.mean_square(m, 1).tolist() == [14 / 3, (16 + 0.25 + 36) / 3] and m.mean_square(keepdim=True).shape == (1, 1)
assert gradcheck(lambda t: t.mean_square(0), [m]) and gradgradcheck(lambda t: t.mean_square(0), [m])
at = strata.tensor([5, -6, 0])
assert strata.take_squares(m, at).tolist() == [36, 1, 1] and gradcheck(lambda t: t.take_squares(at), [m])
v = m.detach().swap_last()
v[0, 1] = 7
assert v.shape == (3, 2) and v._base is not None and m[1, 0].item() == 7 and gradcheck(lambda t: t.swap_last() * 2, [m])
w = m * 1
w.swap_last().mul_(3)
assert strata.autograd.grad(w.sum(), m)[0].tolist() == [[3.0] * 3] * 2
print("mean_square, take_squares, swap_last: values, gradients and writes through a view: as they should be")
PY
exit "$failed"
