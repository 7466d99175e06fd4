#!/bin/sh
# Builds the checker in a scratch folder (ULP_BUILD, else a folder under TMPDIR) and runs it with the given arguments.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${ULP_BUILD:-${TMPDIR:-/tmp}/strata-ulp}
cxx=${ULP_CXX:-clang++-19}
level=x86-64-v3
if grep -q avx512vl /proc/cpuinfo; then level=x86-64-v4; fi
mkdir -p "$build"
flags="-std=c++20 -O2 -march=$level -ffp-contract=off -fwrapv -fno-math-errno -Wall -Wno-unused-function -Wno-unused-variable"
for part in kernels reference reference_special main; do
  if [ ! -f "$build/$part.o" ] ||
    [ -n "$(find "$here" "$here/../../src/lower/math" -newer "$build/$part.o")" ]; then
    # shellcheck disable=SC2086
    "$cxx" $flags -c "$here/$part.cpp" -o "$build/$part.o"
  fi
done
"$cxx" "$build/kernels.o" "$build/reference.o" "$build/reference_special.o" "$build/main.o" -lquadmath -lm -o "$build/ulp"
exec "$build/ulp" "$@"
