"""Python code of the user: files run as modules, and their failures in one sentence."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from dokimos.core.errors import InputError, UnreadableFile


class _AsItStands(SourceFileLoader):
    """Loads the current source: cached bytecode is matched by second and size, and so misses some edits.

    It also leaves no `__pycache__` beside the user's files.
    """

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def load_module(path: Path) -> ModuleType:
    """Run a domain's file as a module under its own name. Raises InputError if that fails."""
    if not path.is_file():
        raise UnreadableFile(path, "there is no such file.")
    stem = path.parent.name if path.name == "__init__.py" else path.stem
    name = f"dokimos_domain_{stem}"
    places = [str(path.parent)] if path.name == "__init__.py" else None
    loader = _AsItStands(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader, is_package=places is not None)
    assert spec is not None  # a loader is given
    spec.submodule_search_locations = places
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # as an import would: dataclasses and pickle look modules up there
    try:
        loader.exec_module(module)
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
