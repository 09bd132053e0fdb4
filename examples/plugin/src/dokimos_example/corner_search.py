"""A verifier: the adapter that Dokimos talks to."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import ClassVar

from dokimos.suites.answers import VerifierAnswer
from dokimos.verifiers.base import Invocation, Query, Verifier
from dokimos.verifiers.execution.limits import Outcome
from dokimos.verifiers.result_file import read_result


class CornerSearch(Verifier):
    """Looks at the centre and at random corners; it finds counterexamples and proves nothing."""

    name = "corner-search"
    limitations: ClassVar[str] = "it never answers unsat"

    def version(self) -> str | None:
        """That of this package."""
        return version("dokimos-example")

    def how_to_get(self) -> str:
        """It comes with its adapter."""
        return "it comes with dokimos-example"

    def command(self, query: Query) -> Invocation:
        """The search, in a process of its own."""
        files = (str(query.network_file), str(query.property_file), str(query.result))
        return Invocation((sys.executable, "-m", "dokimos_example.search", *files))

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the search wrote."""
        return read_result(query.result)
