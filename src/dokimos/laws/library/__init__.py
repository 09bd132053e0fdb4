"""The laws that come with the shipped domains, one folder for each."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from dokimos.errors import InputError
from dokimos.laws.domain import shipped_domains
from dokimos.laws.problems import did_you_mean

if TYPE_CHECKING:
    from dokimos.laws.training import Study


def shipped_laws(domain: str) -> list[Path]:
    """The files of a shipped domain's laws, none where there is no such domain."""
    return sorted((Path(__file__).parent / domain).glob("*.law")) if domain in shipped_domains() else []


def find_study(name: str) -> Study:
    """The case study of a shipped domain. Raises InputError."""
    if name not in shipped_domains():
        hint = did_you_mean(name, shipped_domains())
        raise InputError(f"There is no case study {name}{hint}; there are {', '.join(shipped_domains())}.")
    study: Study = importlib.import_module(f"dokimos.laws.domains.{name}").STUDY
    return study
