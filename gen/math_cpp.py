"""The shared mathematics texts, embedded as C++ strings."""

from __future__ import annotations

from pathlib import Path

from .emit import HEADER, Output


def write(root: Path, out: Output) -> None:
    parts = []
    for path in sorted((root / "src/lower/math").glob("*.expr")):
        text = path.read_text()
        pieces = [text[i:i + 8000] for i in range(0, len(text), 8000)]
        parts.append(f'    {{"{path.stem}",\n' + "\n".join(f'R"~({p})~"' for p in pieces) + "},\n")
    out.write("math_texts.cpp", HEADER + '#include "lower/math/library.h"\n\nnamespace strata::lower {\n\n'
              "const MathText* math_texts() {\n  static const MathText texts[] = {\n" + "".join(parts) +
              "    {nullptr, nullptr}};\n  return texts;\n}\n\n}  // namespace strata::lower\n")
