"""What a domain's file defines, read once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from dokimos.core.errors import InputError
from dokimos.core.plugins import PluggableRegistry
from dokimos.core.readable import did_you_mean
from dokimos.laws.domain.features import Feature, Layout
from dokimos.laws.domain.functions import BUILTINS, SCORES, DomainFunction, explain, load_module

#: Functions of a domain's file that are not for laws to call.
_HOOKS = ("encode", "picture", "text", "start", "walk")
_RESERVED = {"inputs", "labels", "unseen", "model", "decide", "predict", *_HOOKS}
_BATCH = "_batch"


@dataclass(frozen=True)
class Domain:
    """What a domain's file defines, read once."""

    name: str
    layout: Layout | None = None
    functions: Mapping[str, DomainFunction] = field(default_factory=dict)
    inputs: Callable[[], Any] | None = None
    labels: Callable[[], Any] | None = None
    #: The numbers of the rows of `inputs` that the domain's models were not trained on.
    unseen: Callable[[], Any] | None = None
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
    #: What is true of every record, in the language of laws; features are written by their names.
    constraints: tuple[str, ...] = ()
    #: How a later run finds the domain: the name of a shipped one, or the path of its file.
    place: str | None = None
    #: The files of the laws that ship with it.
    laws: tuple[Path, ...] = ()
    #: Further laws, as a paper prints them.
    printed: tuple[Path, ...] = ()

    @classmethod
    def from_frame(cls, table: Any, *, target: str | None = None) -> Domain:
        """The domain of the rows of a DataFrame, or of an array, without the column `target`.

        Ranges, values and what may be missing are those of the data. Raises InputError.
        """
        from dokimos.laws.domain.data_frames import domain_of

        return domain_of(table, target=target)

    def with_functions_of(self, other: Domain) -> Domain:
        """This domain, extended by another's functions and by whatever this one lacks."""
        return Domain(
            name=self.name,
            layout=self.layout or other.layout,
            functions={**other.functions, **self.functions},
            inputs=self.inputs or other.inputs,
            labels=self.labels or other.labels,
            unseen=self.unseen or other.unseen,
            model=self.model or other.model,
            decide=self.decide or other.decide,
            **{hook: getattr(self, hook) or getattr(other, hook) for hook in _HOOKS},
            models={**other.models, **self.models},
            groups=self.groups or other.groups,
            classes=self.classes or other.classes,
            decision=self.decision if self.decision != "decision" else other.decision,
            is_ordered=self.is_ordered and other.is_ordered,
            constraints=self.constraints if self.layout is not None else other.constraints,
            place=self.place,
            laws=self.laws,
        )


def call_domain(function: Callable[[], Any], domain: Domain, what: str) -> Any:
    """The result of a function of a domain's file. Raises InputError if it fails."""
    try:
        return function()
    except InputError:
        raise
    except Exception as problem:
        raise InputError(f"Domain {domain.name}: {explain(problem, what)}.") from None


def read_domain(
    module: ModuleType | Any,
    *,
    name: str,
    place: str | None = None,
    laws: tuple[Path, ...] = (),
    printed: tuple[Path, ...] = (),
) -> Domain:
    """The domain that a module (or any object with such attributes) defines. Raises InputError."""
    features = getattr(module, "FEATURES", None)
    layout = None if features is None else _layout(_features(features, name), _indices(module, name), name)
    if layout is not None and layout.width == 0:
        raise InputError(f"Domain {name}: FEATURES is empty; leave it out if records have no features.")
    models = _by_name(getattr(module, "MODELS", {}), "MODELS", name)
    return Domain(
        name=name,
        layout=layout,
        functions=_functions(module, models),
        **{
            function: _function(module, function, name)
            for function in ("inputs", "labels", "unseen", "model", "decide")
        },
        **{hook: _own(module, hook) for hook in _HOOKS},
        models=models,
        groups=_groups(getattr(module, "GROUPS", ()), layout, name),
        classes=tuple(str(each) for each in _listed(getattr(module, "CLASSES", ()), "CLASSES", name)),
        decision=str(getattr(module, "DECISION", "decision")),
        is_ordered=bool(getattr(module, "ORDERED", True)),
        constraints=_constraints(getattr(module, "CONSTRAINTS", ()), layout, name),
        place=place,
        laws=laws,
        printed=printed,
    )


def _features(given: Sequence[Feature | str], name: str) -> list[Feature]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputError(
            f"Domain {name}: FEATURES must be a list of features or names, not {_short(given)}."
        )
    features = [Feature(each) if isinstance(each, str) else each for each in given]
    for each in features:
        if not isinstance(each, Feature):
            raise InputError(f"Domain {name}: {_short(each)} in FEATURES is neither a Feature nor a name.")
    return features


def _layout(features: list[Feature], indices: Mapping[int, str], name: str) -> Layout:
    try:
        return Layout(features, indices)
    except InputError as problem:
        raise InputError(f"Domain {name}: {str(problem).rstrip('.')}.") from None


def _listed(given: Any, what: str, name: str) -> Sequence[Any]:
    listed = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(listed, str | bytes) or not isinstance(listed, Sequence):
        raise InputError(f"Domain {name}: {what} must be a list, not {_short(given)}.")
    return listed


def _indices(module: ModuleType | Any, name: str) -> Mapping[int, str]:
    given = getattr(module, "INDICES", None) or {}
    plain = isinstance(given, Mapping) and all(type(k) is int and type(v) is str for k, v in given.items())
    if not plain:
        raise InputError(f"Domain {name}: INDICES must map integers to names, not {_short(given)}.")
    return given


def _by_name(given: Any, what: str, name: str) -> dict[str, Callable[..., Any]]:
    plain = isinstance(given, Mapping) and all(type(k) is str and callable(v) for k, v in given.items())
    if not plain:
        raise InputError(f"Domain {name}: {what} must map names to functions, not {_short(given)}.")
    return dict(given)


def _function(module: ModuleType | Any, what: str, name: str) -> Callable[..., Any] | None:
    given = getattr(module, what, None)
    if given is not None and not callable(given):
        raise InputError(f"Domain {name}: {what} must be a function, not {_short(given)}.")
    return given


def _short(given: Any) -> str:
    """A short form of a value, for messages."""
    try:
        said = " ".join(repr(given).split())
    except Exception:
        said = f"a {type(given).__name__}"
    return said if len(said) <= 80 else f"{said[:77]}..."


def _groups(given: Any, layout: Layout | None, name: str) -> tuple[str, ...]:
    for each in _listed(given, "GROUPS", name):
        if type(each) is not str:
            raise InputError(f"Domain {name}: GROUPS must list names of features, not {_short(each)}.")
        if layout is None:
            raise InputError(f"Domain {name}: GROUPS names {each}, but there are no FEATURES.")
        try:
            layout.named(each)
        except InputError as problem:
            raise InputError(f"Domain {name}: GROUPS: {problem}.") from None
    return tuple(given)


def _constraints(given: Sequence[str], layout: Layout | None, name: str) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(each, str) for each in given):
        raise InputError(f"Domain {name}: CONSTRAINTS must be a list of conditions, each a string.")
    if given and layout is None:
        raise InputError(f"Domain {name}: CONSTRAINTS mentions features, but there are no FEATURES.")
    return tuple(given)


def _own(module: ModuleType | Any, name: str) -> Any:
    """A function defined in the module itself, None for one imported there (such as the feature `text`)."""
    value = getattr(module, name, None)
    is_own = getattr(value, "__module__", None) == getattr(module, "__name__", None)
    return value if callable(value) and is_own else None


def _functions(module: ModuleType | Any, models: Mapping[str, Any]) -> dict[str, DomainFunction]:
    """The functions defined in the module itself, without imported ones."""
    own = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not inspect.isclass(value)
        and _own(module, name) is not None
        and name not in _RESERVED
    }
    own = {
        name: value for name, value in own.items() if all(value is not model for model in models.values())
    }
    names = {name.removesuffix(_BATCH) for name in own}
    functions = {name: DomainFunction(name, own.get(name), own.get(name + _BATCH)) for name in names}
    for name in functions:
        if name in BUILTINS and name not in ("getFeat", "setFeat", "label", *SCORES):
            raise InputError(f"The domain's function {name} has the name of a builtin; rename it.")
    return functions


# Domains by name: a Python file beside the law, or a registered domain


#: The domains that come with Dokimos, and those of installed packages. The names alone import nothing.
DOMAINS: PluggableRegistry[Domain] = PluggableRegistry(
    "domain",
    {name: f"dokimos.laws.examples.catalogue:{name}" for name in ("compas", "german_credit")},
    group="dokimos.domains",
    expects=Domain,
)


class DomainNotFound(InputError):
    """No domain has the name that a law imports."""


def shipped_domains() -> tuple[str, ...]:
    """The names of the domains that come with Dokimos or with an installed package."""
    return tuple(DOMAINS)


def shipped_laws(domain: str) -> list[Path]:
    """The files of a shipped domain's laws, or the one that DOMAIN/LAW names; empty if there is none."""
    name, _, law = domain.partition("/")
    if name not in DOMAINS:
        return []
    found = DOMAINS[name]
    return [path for path in (*found.laws, *found.printed) if path.stem == law] if law else list(found.laws)


def load_domain(name: str | Path, *, folder: Path | None = None, allow_code: bool = True) -> Domain:
    """The domain called `name`, or the one in the file `name` if that ends in .py.

    Looks for a file in `folder` first, then among the shipped domains. If `allow_code` is false, only
    shipped domains are loaded. Raises DomainNotFound, or InputError if the domain's own code fails.
    """
    name = str(name)
    path = domain_file(name, folder=folder)
    if path is not None:
        if not allow_code:
            raise InputError(f"{path}: this is Python code, which `allow_code=False` refuses to run.")
        stem = path.stem if name.endswith(".py") else name
        return read_domain(load_module(path), name=stem, place=str(path))
    if name in DOMAINS:
        return DOMAINS[name]
    hint = did_you_mean(name, DOMAINS)
    where = f"{folder or Path()}/{name.replace('.', '/')}.py"
    raise DomainNotFound(f"There is no domain {name}{hint}: neither {where} nor a shipped one.")


def domain_file(name: str | Path, *, folder: Path | None = None) -> Path | None:
    """The Python file that `load_domain` would run for this name; None for a shipped domain."""
    return Path(name) if str(name).endswith(".py") else _file_beside(str(name), folder)


def _file_beside(name: str, folder: Path | None) -> Path | None:
    base = (folder or Path()) / Path(*name.split("."))
    for path in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None
