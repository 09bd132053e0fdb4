"""A verifier that does what a script says: for tests, demonstrations and one's own adapters.

It is a real process, so that limits, logs and the ending of process trees are tried for real. The script is
a JSON file, named by `Scripted(script)` or by the environment variable DOKIMOS_SCRIPT::

    {"default": {"behaviour": "right"},
     "instances": {"pairs-3": {"behaviour": "hang", "detached": true}},
     "truth": "quick/truth",
     "executions": "runs.txt"}

Every instance takes its own entry or the default one. `right` and `wrong` know the label from the entry
(`"label"`, `"witness"`) or from the file <truth>/<instance>.json; the folder is `truth`, or else the
suite's own. Each start appends the instance's name to the file `executions`. The behaviours are listed in
`BEHAVIOURS`; the runner's docstring says what each takes.
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
    """Always installed; without a script it is right wherever the truth lies beside the instance."""

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
        """A hash of the script: another script is another verifier."""
        try:
            content = self.script.read_bytes() if self.script else b""
        except OSError:
            return None
        return f"1-{hashlib.sha256(content).hexdigest()[:8]}"

    def how_to_get(self) -> str:
        """It is there, unless its script is not."""
        if self.version() is None:
            return f"let DOKIMOS_SCRIPT name a file that can be read; {self.script} cannot"
        return "it ships with Dokimos; DOKIMOS_SCRIPT may name a JSON file that says what it does"

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
