"""What laws are about: their files, the domain of each, and the model that it is tested on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from dokimos.core.errors import InputError
from dokimos.core.files import as_paths
from dokimos.core.readable import did_you_mean
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.domain.definition import (
    Domain,
    DomainNotFound,
    shipped_domains,
    shipped_laws,
)
from dokimos.laws.engine.confirmation import SavedViolations
from dokimos.laws.engine.law_results import LawSettings
from dokimos.laws.language.parser import SUFFIXES, read_law
from dokimos.laws.language.record_constraints import domain_of
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import as_domain_model, as_model, given_model, load_model
from dokimos.laws.models.tested_model import Model

_log = logging.getLogger("dokimos")

DomainSource: TypeAlias = str | Path | Domain
"""A Python file, the name of a shipped domain, or a domain, such as `Domain.from_frame` makes."""
LawSource = str | Path | Law | Sequence[str | Path | Law]
"""One or several files of laws, folders of them, names of shipped domains, or laws that were read."""


def law_files(laws: LawSource) -> list[Path]:
    """The files of the given laws: files, those in folders, and those of shipped domains, in order.

    Raises InputError if a folder has no laws, or a name is unknown.
    """
    files: list[Path] = []
    none = "Give laws: files, folders of them, or the name of a shipped domain."
    given = [laws] if isinstance(laws, str | Path | Law) else laws
    for path in as_paths([_file_of(each) for each in given], none=none):
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())
            if not inside:
                raise InputError(f"{path}: this folder has no laws (files ending in .law or .nom).")
            files += inside
        elif not path.exists() and (shipped := shipped_laws(str(path))):
            files += shipped
        elif not path.exists():
            raise InputError(f"{path}: there is no such file, folder or shipped {_nearest(str(path))}.")
        else:
            files.append(path)
    return files


def _file_of(law: str | Path | Law) -> str | Path:
    if not isinstance(law, Law):
        return law
    if law.path is None:
        raise InputError(f"{law.name}: was not read from a file; write its text to one, and give that.")
    return law.path


def laws_in(laws: LawSource) -> list[tuple[Path, Law]]:
    """The given laws, each with its file; one that was not read from a file, with what it is called."""
    given = [laws] if isinstance(laws, str | Path | Law) else laws
    found: list[tuple[Path, Law]] = []
    for each in given or law_files(given):
        if isinstance(each, Law):
            found.append((Path(f"{each.name}.law") if each.path is None else each.path, each))
        else:
            found += [(path, read_law(path)) for path in law_files(each)]
    return found


def _nearest(name: str) -> str:
    """What a name that nothing has could mean: a domain, or a law of the domain that it begins with."""
    domain, _, law = name.partition("/")
    if not law or domain not in shipped_domains():
        return f"domain{did_you_mean(name, shipped_domains())}"
    known = [f"{domain}/{path.stem}" for path in shipped_laws(domain)]
    return "law" + (did_you_mean(name, known) or f"; there are {', '.join(known)}")


def law_domain(
    law: Law, path: Path, given: DomainSource | None, *, allow_code: bool, may_lack: bool = False
) -> Domain | None:
    """The given domain, or the one that a law imports; without one, InputError, or None if `may_lack`."""
    if isinstance(given, Domain):
        return given
    try:
        return domain_of(law, folder=path.parent, given=given, allow_code=allow_code)
    except DomainNotFound as problem:
        if not may_lack or given is not None:
            raise
        _log.warning("%s: %s Functions and features are not checked.", path, problem)
        return None


# The models that laws are tested on


class LoadedOnce:
    """The domains and models of several laws; laws that import the same domain share its data and model."""

    def __init__(self, model: Any, domain: DomainSource | None, settings: LawSettings) -> None:
        self._model, self._domain, self._settings = model, domain, settings
        self._loaded: dict[tuple[Path, tuple[str, ...]], tuple[Domain | None, Any]] = {}

    def __call__(self, law: Law, path: Path) -> tuple[Domain | None, Any]:
        """The domain of a law, and the model that it is tested on. Raises InputError."""
        key = path.parent, tuple(each.name for each in law.imports)
        if key not in self._loaded:
            found = law_domain(law, path, self._domain, allow_code=self._settings.allow_code)
            found = None if found is None else with_table(found, self._settings.source)
            self._loaded[key] = found, self._model_of(found)
        return self._loaded[key]

    def _model_of(self, domain: Domain | None) -> Any:
        if self._model is None and domain is not None and domain.model is not None:
            return as_domain_model(None, domain)
        return given_model(self._model, domain, allow_code=self._settings.allow_code)


def recorded_model(
    saved: SavedViolations, given: str | Path | None, domain: Domain | None, *, allow_code: bool
) -> Model:
    """The model that a file of violations records, unless another is given. Raises InputError."""
    is_file = Path(saved.model).is_file() or Path(saved.model.rpartition(":")[0]).is_file()
    own = domain.model if domain is not None and given is None and not is_file else None
    if own is not None:
        return as_model(own(), domain, name=saved.model)
    return load_model(saved.model if given is None else given, domain, allow_code=allow_code)
