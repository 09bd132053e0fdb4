"""Any tool of VNN-COMP: a folder with run_instance.sh, and prepare_instance.sh where it needs preparing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from dokimos.execution.outcomes import Outcome
from dokimos.suites.answers import VerifierAnswer
from dokimos.verifiers.base import Invocation, Query, as_command
from dokimos.verifiers.placed import PlacedVerifier
from dokimos.verifiers.runners import RUNNERS
from dokimos.verifiers.vnncomp_results import read_verdict

_RUNNER = RUNNERS / "vnncomp_runner.py"
_RUN, _RUN_WITHOUT_ATTACK = "run_instance.sh", "run_instance_without_attack.sh"
_SCRIPTS = (_RUN, "prepare_instance.sh", "install_tool.sh", _RUN_WITHOUT_ATTACK)
#: The name of the benchmark that is passed to the tool; many choose their settings by it.
CATEGORY_VARIABLE = "DOKIMOS_VNNCOMP_CATEGORY"
_USUAL = "test"


class VnncompTool(PlacedVerifier):
    """Its scripts are called as in VNN-COMP, version v1; preparing counts towards the wall limit here.

    The category is `test`, or what DOKIMOS_VNNCOMP_CATEGORY says; another one is another version. That is
    a hash of the scripts and of the commit that is checked out there or one folder above, if any.

    The competition's scripts have no switch for a tool's own attack. A folder that also holds
    run_instance_without_attack.sh, called in the same way, has one.
    """

    name = "vnncomp"
    limitations: ClassVar[str] = "what the tool at that place cannot read"

    def how_to_get(self) -> str:
        """Where to say where it is."""
        return (
            f"unpack and install it yourself, then --verifier {self.kind}=/path/to/the/folder/with/"
            f"run_instance.sh (or set {self.variable})"
        )

    def trouble(self, place: str) -> str | None:
        """A folder must hold run_instance.sh."""
        script = Path(place).expanduser() / _RUN
        return None if script.is_file() else f"there is no file {script}"

    def parts(self, place: str) -> Iterable[Path]:
        """The scripts, and what git says is checked out."""
        folder = Path(place).expanduser()
        yield from (folder / script for script in _SCRIPTS)
        # Tools keep these scripts in a folder vnncomp_scripts of their repository.
        for git in (folder / ".git", folder.absolute().parent / ".git"):
            if (head := git / "HEAD").is_file():
                branch = git / head.read_text(errors="replace").strip().removeprefix("ref: ")
                yield head
                yield branch if branch.is_file() else git / "packed-refs"
                return

    def version(self) -> str | None:
        """A hash of its files, and the category where that is not the usual one."""
        found, category = super().version(), _category()
        return found if found is None or category == _USUAL else f"{found}-{category}"

    @property
    def can_switch_attack_off(self) -> bool:
        """Whether there is a second script."""
        return self.place is not None and (Path(self.place).expanduser() / _RUN_WITHOUT_ATTACK).is_file()

    def command(self, query: Query) -> Invocation:
        """Prepare, then run, in one process tree."""
        script = Path(self.require()).expanduser().absolute() / (
            _RUN if self.attacks else _RUN_WITHOUT_ATTACK
        )
        files = (query.network_file, query.property_file, query.result)
        options = (script, _category(), *files, f"{query.wall_seconds:g}")
        return Invocation(as_command((sys.executable, "-I", "-S", _RUNNER, *options)))

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """The verdict in the result file of VNN-COMP."""
        return read_verdict(query.result)


def _category() -> str:
    return os.environ.get(CATEGORY_VARIABLE) or _USUAL
