"""What laws may call: the functions of the language itself, and those of a domain."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from dokimos.core.errors import InputError, UnreadableFile

#: Functions of the language itself and how many arguments each takes; all others come from a domain.
BUILTINS = {
    "getFeat": 2,
    "setFeat": 3,
    "label": 1,
    "randInt": 2,
    "randReal": 2,
    "strConcat": 2,
    "abs": 1,
    "min": 2,
    "max": 2,
    "score": 2,
    "proba": 2,
}
#: Those that query the model for a class.
SCORES = ("score", "proba")
#: What an `ensures` may compute over all tests; a domain's function of the same name takes precedence.
MEAN = "mean"
#: Those that draw at random.
RANDOM = ("randInt", "randReal")

#: Parameters of a domain's functions that Dokimos fills in, not the law.
_GIVEN = ("rng", "rngs", "predict")
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class Above:
    """Decides 1 where a model's only number is above a threshold, otherwise 0: a `decide` for proofs."""

    threshold: float

    def __call__(self, scores: Any) -> Any:
        """The decisions of a batch. Raises InputError where there is more than one number."""
        if scores.size != len(scores):
            raise InputError("`above` decides by one number for each record, and the model gives several.")
        return (scores.reshape(-1) > self.threshold).astype(int)


def above(threshold: float) -> Above:
    """A `decide` for a model that gives one number: 1 where that is above a threshold, otherwise 0."""
    return Above(float(threshold))


@dataclass(frozen=True)
class DomainFunction:
    """A function for laws to call: on single values, on batches, or both."""

    name: str
    single: Callable[..., Any] | None = None
    batch: Callable[..., Any] | None = None

    @property
    def takes_rng(self) -> bool:
        """Whether it draws at random, from a generator (or one for each case) that is passed to it."""
        return self._takes_any("rng", "rngs")

    @property
    def takes_rngs(self) -> bool:
        """Whether its version for batches takes a generator for each case."""
        return self.batch is not None and has_parameter(self.batch, "rngs")

    @property
    def takes_model(self) -> bool:
        """Whether it runs the model."""
        return self._takes_any("predict")

    def _takes_any(self, *names: str) -> bool:
        versions = [each for each in (self.single, self.batch) if each is not None]
        return any(has_parameter(each, name) for each in versions for name in names)

    def takes(self, count: int) -> bool:
        """Whether a law can call it with that many arguments; true if only a call can tell."""
        least, most = self._bounds()
        return least <= count and (most is None or count <= most)

    def wanted(self) -> str:
        """How many arguments it takes, in words."""
        least, most = self._bounds()
        if most is None:
            return f"{least} or more arguments" if least else "any arguments"
        counts = f"{least} to {most}" if least < most else str(most or "no")
        return f"{counts} argument{'s' * (counts != '1')}"

    def _bounds(self) -> tuple[int, int | None]:
        """The least and the greatest number of arguments that laws may pass (None: no limit)."""
        by_place = [each for each in self._parameters() if each.kind in _BY_PLACE]
        least = sum(each.default is inspect.Parameter.empty for each in by_place)
        any_number = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in self._parameters())
        return least, None if any_number else len(by_place)

    def _parameters(self) -> list[inspect.Parameter]:
        """The parameters that laws fill in: all but those of Dokimos; any, if it has no signature."""
        try:
            every = inspect.signature(self.single or self.batch).parameters  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return [inspect.Parameter("anything", inspect.Parameter.VAR_POSITIONAL)]
        return [each for name, each in every.items() if name not in _GIVEN]


def has_parameter(function: Callable[..., Any], name: str) -> bool:
    """Whether a function has a parameter of that name."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


# Python code of the user: files run as modules, and their failures in one sentence


class _AsItStands(SourceFileLoader):
    """Loads the current source: cached bytecode is matched by second and size, and so misses some edits.

    It also leaves no `__pycache__` beside the user's files.
    """

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def load_module(path: Path, *, beside: bool = False) -> ModuleType:
    """Run a domain's file as a module under its own name. Raises InputError if that fails.

    With `beside`, it finds the modules of its folder, as a script does: also those that it imports later.
    """
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
    folder = str(path.parent.absolute())
    if beside and folder not in sys.path:
        sys.path.append(folder)
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
