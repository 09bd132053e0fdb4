"""Domains by name: a Python file beside the law, or a registered domain."""

from __future__ import annotations

from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.core.registry import Registry
from dokimos.core.suggestions import did_you_mean
from dokimos.laws.domain.definition import Domain, read_domain
from dokimos.laws.domain.user_code import load_module

#: The domains that come with Dokimos. The names alone import nothing.
DOMAINS: Registry[Domain] = Registry(
    "domain",
    {
        name: f"dokimos.laws.studies.shipped:{name}"
        for name in ("compas", "german_credit", "lunar_lander", "mnist", "reviews", "speech")
    },
)


class DomainNotFound(InputError):
    """No domain has the name that a law imports."""


def shipped_domains() -> tuple[str, ...]:
    """The names of the domains that come with Dokimos."""
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
            raise InputError(f"{path}: this is Python code, which --no-code refuses to run.")
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
