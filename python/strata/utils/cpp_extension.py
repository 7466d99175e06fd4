"""Operators in C++, built while a program runs or by setuptools: `load(name, sources)`, `CppExtension`.

A source includes `strata/library.h` (STRATA_LIBRARY) or, as PyTorch's do, `torch/extension.h` (TORCH_LIBRARY, PYBIND11_MODULE).
The functions of PYBIND11_MODULE are operators of the namespace of the extension's name, whose types are those that operators
take: tensors, numbers, texts, lists of them, optional values, tuples as results.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import strata
from strata import _C, _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["CppExtension", "include_paths", "library_paths", "load", "load_inline"]

_FLAGS = ("-std=c++20", "-O2", "-fPIC", "-Wno-deprecated-declarations")


def _home() -> Path:
    """The folder of the library that runs."""
    return Path(os.path.realpath(_C.__file__)).parent


def include_paths() -> list[str]:
    """Folders of headers: the package's own, or those of the clone that it was built in. RuntimeError where there are none."""
    packed = Path(__file__).resolve().parents[1] / "include"
    if packed.is_dir():
        return [str(packed)]
    clone = Path(__file__).resolve().parents[3]
    found = [clone / "include", clone / "src", _home() / "gen"]
    if not all(folder.is_dir() for folder in found):
        raise RuntimeError(f"cpp_extension: the headers are not there: expected {packed}, or a clone's {found[0]}; install strata anew")
    return [str(folder) for folder in found]


def library_paths() -> list[str]:
    """The folder of libstrata.so."""
    return [str(_home())]


def _compiler() -> str:
    named = os.environ.get("CXX")
    found = named or next((c for c in ("c++", "g++", "clang++", "clang++-19") if shutil.which(c)), None)
    if found is None:
        raise RuntimeError("cpp_extension: no C++ compiler is there: expected c++, g++ or clang++; install one, or name it by CXX")
    return found


def _run(command: list[str], verbose: bool) -> None:
    if verbose:
        print(shlex.join(command), flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if verbose and done.stdout + done.stderr:
        print(done.stdout + done.stderr, flush=True)
    if done.returncode:
        raise RuntimeError(f"Error building extension: {shlex.join(command)}\n{done.stderr[-8000:]}")


def _folder(name: str) -> Path:
    base = os.environ.get("TORCH_EXTENSIONS_DIR") or os.environ.get("STRATA_EXTENSIONS_DIR")
    return (Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "strata/extensions") / name


def _stamp(commands: list[list[str]], sources: list[Path], headers: Sequence[str]) -> str:
    """What a library was made of; another text is another library."""
    digest = hashlib.sha256(repr(commands).encode())
    for source in sources:
        digest.update(source.read_bytes())
    for folder in headers:
        for header in sorted(Path(folder).rglob("*.h*")) if Path(folder).is_dir() else []:
            digest.update(header.read_bytes())
    digest.update(str((_home() / "libstrata.so").stat().st_mtime_ns).encode())
    return digest.hexdigest()


def fill_module(module: ModuleType) -> ModuleType:
    """Puts the operators of the namespace of its name into a module. RuntimeError for what the library raised that has
    just been loaded."""
    name = module.__name__.rpartition(".")[2]
    if failed := _C._library_failures():
        raise RuntimeError(f"{name}: " + "; ".join(failed))
    for full in strata.ops.names():
        namespace, _, op = full.partition("::")
        if namespace == name:
            base = op.partition(".")[0]
            setattr(module, base, getattr(getattr(strata.ops, name), base))
    return module


def load(
    name: str,
    sources: str | Sequence[str],
    extra_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
    **others: Any,
) -> Any:
    """Builds a shared library of C++ sources and loads it; what was built of the same sources before is used again.

    Returns a module of the operators of the namespace `name`, or the library's path where not is_python_module.
    build_directory: else a folder in ~/.cache/strata/extensions (STRATA_EXTENSIONS_DIR). RuntimeError with the compiler's
    words where it does not compile, ValueError for a name that is none, NotImplementedError for sources and options of
    devices, which PyTorch's has too.
    """
    if not name.isidentifier():
        raise ValueError(f"load: expected a name that is an identifier, got {name!r}")
    files = [Path(sources)] if isinstance(sources, (str, os.PathLike)) else [Path(s) for s in sources]
    if asked := [key for key, value in others.items() if value]:
        raise NotImplementedError(f"load: {name}: {', '.join(asked)}: only C++ for processors is built")
    if any(f.suffix not in (".cpp", ".cc", ".cxx", ".c++") for f in files):
        raise NotImplementedError(f"load: {name}: expected C++ sources (.cpp, .cc, .cxx), got {', '.join(map(str, files))}")
    if is_standalone:
        raise NotImplementedError("load: is_standalone is not provided: link a program against an installed prefix (docs/cpp.md)")
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(f"load: {name}: there is no source {file}")
    folder = Path(build_directory) if build_directory else _folder(name)
    folder.mkdir(parents=True, exist_ok=True)
    compiler, includes = _compiler(), [*include_paths(), *(extra_include_paths or [])]
    flags = [*_FLAGS, f"-DTORCH_EXTENSION_NAME={name}", *(f"-I{i}" for i in includes), *(extra_cflags or [])]
    objects = [folder / f"{k}_{file.stem}.o" for k, file in enumerate(files)]
    commands = [[compiler, *flags, "-c", str(file), "-o", str(o)] for file, o in zip(files, objects, strict=True)]
    where = library_paths()[0]
    link = [f"-L{where}", "-lstrata", f"-Wl,-rpath,{where}", *(extra_ldflags or [])]
    stamp = _stamp([*commands, link], files, extra_include_paths or [])
    # A library that is open is never written: another text has another file.
    library = folder / f"{name}_{stamp[:16]}.so"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            for command in commands:
                _run(command, verbose)
            made = folder / f"{library.name}.part"
            _run([compiler, "-shared", *map(str, objects), "-o", str(made), *link], verbose)
            made.replace(library)
            for o in objects if not keep_intermediates else []:
                o.unlink()
    strata.ops.load_library(str(library))
    return fill_module(ModuleType(name)) if is_python_module else str(library)


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    functions: str | Sequence[str] | dict[str, str] | None = None,
    build_directory: str | None = None,
    **more: Any,
) -> Any:
    """load() of texts: `torch/extension.h` stands before them, and `functions` are given to Python by name."""
    texts = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    names = [functions] if isinstance(functions, str) else list(functions or [])
    lines = ["#include <torch/extension.h>", *texts]
    if names:
        lines += ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", *(f'  m.def("{f}", &{f});' for f in names), "}"]
    folder = Path(build_directory) if build_directory else _folder(name)
    folder.mkdir(parents=True, exist_ok=True)
    source, text = folder / "main.cpp", "\n".join(lines) + "\n"
    if not source.exists() or source.read_text() != text:
        source.write_text(text)
    return load(name, str(source), build_directory=str(folder), **more)


def CppExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """setuptools' Extension for a module of operators in C++, which `import name` gives once `strata` is imported."""
    import setuptools

    module = name.rpartition(".")[2]
    kwargs["include_dirs"] = [*kwargs.get("include_dirs", []), *include_paths()]
    kwargs["library_dirs"] = [*kwargs.get("library_dirs", []), *library_paths()]
    kwargs["runtime_library_dirs"] = [*kwargs.get("runtime_library_dirs", []), *library_paths()]
    kwargs["libraries"] = [*kwargs.get("libraries", []), "strata"]
    kwargs["define_macros"] = [*kwargs.get("define_macros", []), ("TORCH_EXTENSION_NAME", module), ("STRATA_PYTHON_MODULE", None)]
    flags = kwargs.get("extra_compile_args", [])
    kwargs["extra_compile_args"] = [*_FLAGS, *(flags.get("cxx", []) if isinstance(flags, dict) else flags)]
    kwargs["language"] = "c++"
    return setuptools.Extension(name, list(sources), *args, **kwargs)


def _build_extension() -> type:
    from setuptools.command.build_ext import build_ext

    class BuildExtension(build_ext):
        """setuptools' build_ext, under PyTorch's name."""

        @classmethod
        def with_options(cls, **options: Any) -> type:
            return cls

    return BuildExtension


def _other(name: str) -> Any:
    if name == "BuildExtension":
        return _build_extension()
    raise KeyError(name)


__getattr__ = _lazy.of(globals(), otherwise=_other)[0]
