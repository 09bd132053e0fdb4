"""The domain that a law imports."""

from __future__ import annotations

from pathlib import Path

from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.lookup import load_domain
from dokimos.laws.language.constraints import constraints_of
from dokimos.laws.language.syntax import Law


def domain_of(
    law: Law, *, folder: Path | None = None, given: str | Path | None = None, allow_code: bool = True
) -> Domain | None:
    """The domain that a law imports, or `given`; None if there is neither.

    If a law imports several, the first one counts, extended by the others. Raises what `load_domain` does,
    and LawError if a constraint of the domain is wrong.
    """
    names = [given] if given is not None else [each.name for each in law.imports]
    found: Domain | None = None
    for name in names:
        domain = load_domain(name, folder=folder, allow_code=allow_code)
        found = domain if found is None else found.with_functions_of(domain)
    if found is not None:
        constraints_of(found)
    return found
