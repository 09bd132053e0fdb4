"""A verifier that follows a script: for tests, demonstrations and trying out adapters.

It is a real process, so that limits, logs and the killing of process trees are really exercised. The script
is a JSON file, named by `Scripted(script)` or by the environment variable DOKIMOS_SCRIPT::

    {"default": {"behaviour": "right"},
     "instances": {"pairs-3": {"behaviour": "hang", "detached": true}},
     "truth": "quick/truth",
     "executions": "runs.txt"}

Every instance uses its own entry or the default one. `right` and `wrong` take the label from the entry
(`"label"`, `"witness"`) or from the file <truth>/<instance>.json; the folder is `truth`, or else the
suite's own. Each start appends the instance's name to the file `executions`. The behaviours are listed in
`BEHAVIOURS`; the runner's docstring explains them.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from dokimos.core.errors import VerifierUnavailable
from dokimos.execution.outcomes import Outcome
from dokimos.suites.answers import VerifierAnswer
from dokimos.verifiers.base import Invocation, Query, Verifier, as_command
from dokimos.verifiers.results import read_result
from dokimos.verifiers.runners import RUNNERS

_RUNNER = RUNNERS / "scripted_runner.py"

BEHAVIOURS = (
    "right",
    "wrong",
    "slow",
    "busy",
    "crash",
    "hang",
    "flood",
    "memory",
    "bogus-witness",
    "outside-witness",
    "no-witness",
    "garbage",
    "partial",
    "says",
)


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
        return Invocation((*start, *as_command((*script, *task))), start_words=len(start))

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the runner wrote."""
        return read_result(query.result)
