"""Verifiers of our own: the reference, the planted bugs, and one that follows a script."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from dokimos import __version__
from dokimos.core.errors import InputError, VerifierUnavailable
from dokimos.core.files import code_key
from dokimos.suites.answers import VerifierAnswer
from dokimos.verifiers.base import CertificateStyle, Invocation, Query, Verifier, as_command
from dokimos.verifiers.environments import our_module
from dokimos.verifiers.execution.limits import Outcome
from dokimos.verifiers.placed import PlacedVerifier
from dokimos.verifiers.result_file import read_result
from dokimos.verifiers.runners import RUNNERS

# The built-in verifier: exact branch and bound on small ReLU networks, every answer with a proof


class Reference(Verifier):
    """Slow and never wrong: it answers only what it has proven, and serves as the reference for others."""

    name = "reference"
    #: Branch and bound over phases; each case closed by multipliers of a linear relaxation.
    styles = (CertificateStyle.DUAL, CertificateStyle.PARTITION)
    can_stay_warm = True
    limitations: ClassVar[str] = "operators that Dokimos does not read; slow on large networks"

    def version(self) -> str | None:
        """The version of Dokimos."""
        return __version__

    def how_to_get(self) -> str:
        """It is always installed."""
        return "it ships with Dokimos"

    def command(self, query: Query) -> Invocation:
        """Its runner, in our own interpreter with our own packages."""
        files = (str(query.network_file), str(query.property_file), str(query.result))
        timeout = f"{query.wall_seconds:g}"
        options = ("--timeout", timeout, "--certificate", str(query.certificate))
        return our_module("dokimos.verifiers.runners.reference_runner", *options, *files)

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the runner wrote."""
        return read_result(query.result)


# The catalogue of planted bugs, as verifiers: ``--verifier planted=BUG``


#: What the names of bugs behind a correct attack begin with.
ATTACKING = "attacking-"


class Planted(PlacedVerifier):
    """A verifier with one known bug; its place is the name of the bug."""

    name = "planted"
    is_tried_out = False  # wrong answers are what it is for
    can_stay_warm = True
    attack_off = ("--no-attack",)

    @property
    def can_switch_attack_off(self) -> bool:
        """Attackers have an attack of their own."""
        return (self.place or "").startswith(ATTACKING)

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
            *self.switches,
            *(str(query.network_file), str(query.property_file), str(query.result)),
        )

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the runner wrote."""
        return read_result(query.result)


# A verifier that follows a script: for tests, demonstrations and trying out adapters


_RUNNER = RUNNERS / "scripted_runner.py"


class Scripted(Verifier):
    """Always installed; without a script it answers correctly if the truth is beside the instance."""

    name = "scripted"
    is_tried_out = False  # its answers follow a script
    can_stay_warm = True

    def __init__(self, script: Path | None = None) -> None:
        self._given = script

    @property
    def script(self) -> Path | None:
        """The script that would be followed now."""
        if self._given is None and (named := os.environ.get("DOKIMOS_SCRIPT")):
            return Path(named).absolute()
        return self._given

    def version(self) -> str | None:
        """A hash of the script: a different script counts as a different verifier."""
        try:
            content = self.script.read_bytes() if self.script else b""
        except OSError:
            return None
        return f"1-{hashlib.sha256(content).hexdigest()[:8]}"

    def how_to_get(self) -> str:
        """It is available, unless its script is missing."""
        if self.version() is None:
            return f"set DOKIMOS_SCRIPT to a readable file; {self.script} cannot"
        return "it ships with Dokimos; set DOKIMOS_SCRIPT to a JSON file to say what it does"

    def command(self, query: Query) -> Invocation:
        """The runner script, in our interpreter without our packages."""
        if self.version() is None:
            raise VerifierUnavailable(f"The script {self.script} of the scripted verifier cannot be read.")
        script = ("--script", self.script) if self.script else ()
        beside = (query.origin or query.property_file).resolve().parent.parent / "truth"
        script = (*script, "--truth", beside)
        task = ("--instance", query.name, query.network_file, query.property_file, query.result)
        start = as_command((sys.executable, "-I", "-S", _RUNNER))
        # Its script may name files beside it for it to write.
        writes = (self.script.parent,) if self.script else ()
        return Invocation((*start, *as_command((*script, *task))), start_words=len(start), writes=writes)

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the runner wrote."""
        return read_result(query.result)
