"""Python that the user brings: files run as modules, and what went wrong in them, in one sentence."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from dokimos.core.errors import InputError, UnreadableFile


def load_module(path: Path) -> ModuleType:
    """Run a domain's file as a module of its own name. Raises InputError where that fails."""
    if not path.is_file():
        raise UnreadableFile(path, "there is no such file.")
    stem = path.parent.name if path.name == "__init__.py" else path.stem
    name = f"dokimos_domain_{stem}"
    places = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=places)
    assert spec is not None and spec.loader is not None  # the suffix is .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # as an import would: dataclasses and pickle look modules up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as problem:
        raise InputError(f"{path}: {_failure(problem, str(path))}") from None
    return module


def _failure(problem: BaseException, file: str) -> str:
    """What went wrong in user code, with the line in `file` where it did."""
    if isinstance(problem, SyntaxError) and problem.filename == file:
        return f"line {problem.lineno}: {problem.msg}."
    frames = [each for each in traceback.extract_tb(problem.__traceback__) if each.filename == file]
    where = f"line {frames[-1].lineno}: " if frames else ""
    return f"{where}{type(problem).__name__}: {problem}"


def explain(problem: BaseException, what: str) -> str:
    """An exception of user code in one line, with the place where it was raised."""
    frames = traceback.extract_tb(problem.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    said = " ".join(str(problem).split())
    return f"{what} raised {type(problem).__name__}: {said}{place}"
