"""The catalogue of planted bugs, as verifiers: ``--verifier planted=BUG``.

Each runs in its own process, like any tool. Those that misread something take the label and the witness
from the suite's `truth/`, which no real verifier may read.
"""

from __future__ import annotations

from collections.abc import Iterable

from dokimos.core.errors import InputError
from dokimos.core.home import code_key
from dokimos.execution.outcomes import Outcome
from dokimos.suites.answers import VerifierAnswer
from dokimos.verifiers.base import Invocation, Query
from dokimos.verifiers.own_interpreter import our_module
from dokimos.verifiers.placed import PlacedVerifier
from dokimos.verifiers.results import read_result


class Planted(PlacedVerifier):
    """A verifier with one known bug; its place is the name of the bug."""

    name = "planted"
    is_tried_out = False  # wrong answers are what it is for
    can_stay_warm = True

    def how_to_get(self) -> str:
        """Where the bugs are listed."""
        return "it ships with Dokimos; write --verifier planted=BUG (docs/planted-bugs.md lists the bugs)"

    def trouble(self, place: str) -> str | None:
        """Why there is no such bug, with the name that may have been meant."""
        from dokimos.verifiers.planted.catalogue import PLANTED

        try:
            PLANTED[place]
        except InputError as error:
            return str(error).rstrip(".?")
        return None

    def parts(self, place: str) -> Iterable[bytes]:
        """All of Dokimos: the bugs share everything that they do not misread."""
        yield f"{code_key()} {place}".encode()

    @property
    def has_certain_version(self) -> bool:
        """It is a hash of all of Dokimos, with which it ships."""
        return True

    def command(self, query: Query) -> Invocation:
        """Its runner, in our own interpreter with our own packages."""
        truth = (query.origin or query.property_file).resolve().parent.parent / "truth"
        return our_module(
            "dokimos.verifiers.runners.planted",
            *("--bug", self.require(), "--timeout", f"{query.wall_seconds:g}"),
            *("--truth", str(truth / f"{query.name}.json")),
            *(str(query.network_file), str(query.property_file), str(query.result)),
        )

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the runner wrote."""
        return read_result(query.result)
