"""A domain: the inputs that a law is about, their features, the model, and functions for laws to call.

A domain is a plain Python file (or package). What it may define, all of it optional:

    FEATURES   a list of names, or of features made by `integer`, `real`, `flag`, `choice` and `text`
    INDICES    {-1: "job"}: further indices that laws may use for features
    CLASSES    names of the decisions 0, 1, …, from the least to the greatest
    DECISION   what is decided, for sentences: "risk"
    ORDERED    False where a greater decision is not more of it: sentences then say "changes", not "rises"
    inputs()   the test set: an array with one record a row, or a list of records
    labels()   the right decision of each input
    model()    the model to test where none is given: anything that `models.py` takes
    MODELS     {"tree": function}: further models by name, each made by a function like model()
    GROUPS     names of features to tell rates by where no others are asked for
    decide(s)  decisions from what the model gives for a batch, where that is not simply the largest
    encode(xs) the numbers that a network sees of a batch of records, where they are not the records
    picture(x) a record as a picture: a 2-D array of uint8, 0 black (or 3-D: red, green, blue)
    text(x)    a record as text
    start(rng)              a record to begin from, for `dokimos law fuzz`
    walk(x, rng, predict)   records reached from there, some of which the model (`predict`) has chosen
    any other public function f(...), for laws to call, on single records and values; beside it
    f_batch(...) takes arrays instead, one row for each case; a parameter `rng` gets a seeded generator, and
    `predict`, in functions that the block calls, the model: decisions for a batch
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.laws.features import Feature, Layout
from dokimos.laws.language.problems import did_you_mean
from dokimos.laws.language.syntax import BUILTINS, Law

#: Functions of a domain's file that are not for laws to call.
_HOOKS = ("encode", "picture", "text", "start", "walk")
_RESERVED = {"inputs", "labels", "model", "decide", "predict", *_HOOKS}
_BATCH = "_batch"
#: Parameters of a domain's functions that no law gives a value.
_GIVEN = ("rng", "rngs", "predict")
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class DomainNotFound(InputError):
    """No domain has the name that a law imports."""


@dataclass(frozen=True)
class DomainFunction:
    """A function for laws to call: on single values, on batches, or both."""

    name: str
    single: Callable[..., Any] | None = None
    batch: Callable[..., Any] | None = None

    @property
    def takes_rng(self) -> bool:
        """Whether it draws at random, from a generator (or one for each case) that it is given."""
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
        """Whether a law can call it with so many arguments; true where only a call can tell."""
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
        """How many arguments laws give it, at least and at most (None: there is no most)."""
        by_place = [each for each in self._parameters() if each.kind in _BY_PLACE]
        least = sum(each.default is inspect.Parameter.empty for each in by_place)
        any_number = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in self._parameters())
        return least, None if any_number else len(by_place)

    def _parameters(self) -> list[inspect.Parameter]:
        """What laws give it: all but what Dokimos does; anything where it does not say what it takes."""
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


@dataclass(frozen=True)
class Domain:
    """What a domain's file defines, read once."""

    name: str
    layout: Layout | None = None
    functions: Mapping[str, DomainFunction] = field(default_factory=dict)
    inputs: Callable[[], Any] | None = None
    labels: Callable[[], Any] | None = None
    model: Callable[[], Any] | None = None
    decide: Callable[[Any], Any] | None = None
    encode: Callable[[Any], Any] | None = None
    picture: Callable[[Any], Any] | None = None
    text: Callable[[Any], str] | None = None
    start: Callable[..., Any] | None = None
    walk: Callable[..., Any] | None = None
    models: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    decision: str = "decision"
    is_ordered: bool = True
    is_shipped: bool = False
    #: What names the domain in a later run: a shipped one's name, or the path of its file.
    place: str | None = None

    def with_functions_of(self, other: Domain) -> Domain:
        """This domain with what another adds: functions, and whatever this one lacks."""
        return Domain(
            name=self.name,
            layout=self.layout or other.layout,
            functions={**other.functions, **self.functions},
            inputs=self.inputs or other.inputs,
            labels=self.labels or other.labels,
            model=self.model or other.model,
            decide=self.decide or other.decide,
            **{hook: getattr(self, hook) or getattr(other, hook) for hook in _HOOKS},
            models={**other.models, **self.models},
            groups=self.groups or other.groups,
            classes=self.classes or other.classes,
            decision=self.decision if self.decision != "decision" else other.decision,
            is_ordered=self.is_ordered and other.is_ordered,
            is_shipped=self.is_shipped and other.is_shipped,
            place=self.place,
        )


def shipped_domains() -> tuple[str, ...]:
    """The names of the domains that come with Dokimos."""
    from dokimos.laws.studies import domains

    return tuple(sorted(module.name for module in pkgutil.iter_modules(domains.__path__)))


def domain_of(
    law: Law, *, folder: Path | None = None, given: str | None = None, allow_code: bool = True
) -> Domain | None:
    """The domain that a law imports, or `given`; None where there is neither.

    Files are looked for beside the law (in `folder`), then among the shipped domains. Where
    `allow_code` is false only the latter may run. Raises DomainNotFound, or InputError where the
    domain's own code fails.
    """
    names = [given] if given is not None else [each.name for each in law.imports]
    found: Domain | None = None
    for name in names:
        domain = load_domain(name, folder=folder, allow_code=allow_code)
        found = domain if found is None else found.with_functions_of(domain)
    return found


def load_domain(name: str, *, folder: Path | None = None, allow_code: bool = True) -> Domain:
    """The domain called `name`, or in the file `name` where that ends in .py. See `domain_of`."""
    path = Path(name) if name.endswith(".py") else _file_beside(name, folder)
    if path is not None:
        if not allow_code:
            raise InputError(f"{path}: is Python code, which --no-code refuses to run.")
        stem = path.stem if name.endswith(".py") else name
        return read_domain(load_module(path), name=stem, place=str(path))
    if name in shipped_domains():
        module = importlib.import_module(f"dokimos.laws.studies.domains.{name}")
        return read_domain(module, name=name, place=name, is_shipped=True)
    hint = did_you_mean(name, shipped_domains())
    where = f"{folder or Path()}/{name.replace('.', '/')}.py"
    raise DomainNotFound(f"There is no domain {name}{hint}: neither {where} nor a shipped one.")


def _file_beside(name: str, folder: Path | None) -> Path | None:
    base = (folder or Path()) / Path(*name.split("."))
    for path in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


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
        raise InputError(f"{path}: {failure(problem, str(path))}") from None
    return module


def failure(problem: BaseException, file: str) -> str:
    """What went wrong in user code, with the line in `file` where it did."""
    if isinstance(problem, SyntaxError) and problem.filename == file:
        return f"line {problem.lineno}: {problem.msg}."
    frames = [each for each in traceback.extract_tb(problem.__traceback__) if each.filename == file]
    where = f"line {frames[-1].lineno}: " if frames else ""
    return f"{where}{type(problem).__name__}: {problem}"


def read_domain(
    module: ModuleType | Any, *, name: str, place: str | None = None, is_shipped: bool = False
) -> Domain:
    """The domain that a module (or any object with such attributes) defines. Raises InputError."""
    features = getattr(module, "FEATURES", None)
    layout = (
        None if features is None else Layout(_features(features, name), getattr(module, "INDICES", None))
    )
    if layout is not None and layout.width == 0:
        raise InputError(f"Domain {name}: FEATURES is empty; leave it out where records have no features.")
    return Domain(
        name=name,
        layout=layout,
        functions=_functions(module),
        inputs=getattr(module, "inputs", None),
        labels=getattr(module, "labels", None),
        model=getattr(module, "model", None),
        decide=getattr(module, "decide", None),
        **{hook: _own(module, hook) for hook in _HOOKS},
        models=dict(getattr(module, "MODELS", {})),
        groups=_groups(getattr(module, "GROUPS", ()), layout, name),
        classes=tuple(str(each) for each in getattr(module, "CLASSES", ())),
        decision=str(getattr(module, "DECISION", "decision")),
        is_ordered=bool(getattr(module, "ORDERED", True)),
        is_shipped=is_shipped,
        place=place,
    )


def _features(given: Sequence[Feature | str], name: str) -> list[Feature]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputError(f"Domain {name}: FEATURES must be a list of features or names, not {given!r}.")
    features = [Feature(each) if isinstance(each, str) else each for each in given]
    for each in features:
        if not isinstance(each, Feature):
            raise InputError(f"Domain {name}: {each!r} in FEATURES is neither a Feature nor a name.")
    return features


def _groups(given: Sequence[str], layout: Layout | None, name: str) -> tuple[str, ...]:
    for each in given:
        if layout is None:
            raise InputError(f"Domain {name}: GROUPS names {each}, and there are no FEATURES.")
        try:
            layout.named(each)
        except InputError as problem:
            raise InputError(f"Domain {name}: GROUPS: {problem}.") from None
    return tuple(given)


def _own(module: ModuleType | Any, name: str) -> Any:
    """A function defined in the module itself, None for one imported there (such as the feature `text`)."""
    value = getattr(module, name, None)
    is_own = getattr(value, "__module__", None) == getattr(module, "__name__", None)
    return value if callable(value) and is_own else None


def _functions(module: ModuleType | Any) -> dict[str, DomainFunction]:
    """The functions defined in the module itself (imported ones are its own affair)."""
    own = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not inspect.isclass(value)
        and _own(module, name) is not None
        and name not in _RESERVED
    }
    models = getattr(module, "MODELS", {}).values()
    own = {name: value for name, value in own.items() if value not in models}
    names = {name.removesuffix(_BATCH) for name in own}
    functions = {name: DomainFunction(name, own.get(name), own.get(name + _BATCH)) for name in names}
    for name in functions:
        if name in BUILTINS and name not in ("getFeat", "setFeat", "label"):
            raise InputError(f"The domain's function {name} has the name of a builtin; rename it.")
    return functions
