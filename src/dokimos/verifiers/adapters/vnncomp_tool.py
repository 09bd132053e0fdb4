"""Any VNN-COMP tool: a folder with run_instance.sh, and prepare_instance.sh if it needs preparation."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Self

from dokimos.suites.answers import VerifierAnswer
from dokimos.verifiers.base import NO_ATTACK, CertificateStyle, Finding, Invocation, Query, as_command
from dokimos.verifiers.execution.limits import Outcome
from dokimos.verifiers.placed import PlacedVerifier, repository_of, tree_digest
from dokimos.verifiers.result_file import read_verdict, refusal
from dokimos.verifiers.runners import RUNNERS
from dokimos.verifiers.script_guard import called_file, finding, guarded

_RUNNER = RUNNERS / "vnncomp_runner.py"
_RUN, _RUN_WITHOUT_ATTACK = "run_instance.sh", "run_instance_without_attack.sh"
_PREPARE = "prepare_instance.sh"
#: The benchmark name that is passed to the tool; many tools choose their settings by it.
CATEGORY_VARIABLE = "DOKIMOS_VNNCOMP_CATEGORY"
_USUAL = "test"


class VnncompTool(PlacedVerifier):
    """Its scripts are called as in VNN-COMP, version v1; preparation counts towards the wall limit, except
    in an edition, where it has a limit of its own.

    They were written for machines on which nothing else runs, and run behind a guard (`script_guard.py`).
    Many write into their own folder, so it stays writable. If a tool's prepare script does nothing but kill
    processes and reset devices, `prepares` is false, and it is not called.

    The category is `test`, or what ``,category=…`` after the place or DOKIMOS_VNNCOMP_CATEGORY says; a
    different category counts as a different version. The version is a hash of the tool's files as they are,
    in its folder or in the repository that contains it.

    The competition's scripts have no switch for a tool's own attack. To add one, put
    run_instance_without_attack.sh, called in the same way, into the folder.
    """

    name = "vnncomp"
    limitations: ClassVar[str] = "what the tool at that place cannot read"
    settings: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"category": "the benchmark name that is passed to the tool; many choose their settings by it"}
    )
    prepares: ClassVar[bool] = True

    def how_to_get(self) -> str:
        """How to tell Dokimos where it is."""
        return (
            f"unpack and install it yourself, then --verifier {self.kind}=/path/to/the/folder/with/"
            f"run_instance.sh (or set {self.variable})"
        )

    def trouble(self, place: str) -> str | None:
        """A folder must hold run_instance.sh."""
        script = Path(place).expanduser() / _RUN
        return None if script.is_file() else f"there is no file {script}"

    def parts(self, place: str) -> Iterable[bytes]:
        """All its files."""
        yield tree_digest(Path(place).expanduser())

    @property
    def category(self) -> str:
        """The name of the benchmark that is passed to it."""
        return self.setting("category") or os.environ.get(CATEGORY_VARIABLE) or _USUAL

    @property
    def called_as(self) -> str:
        """Includes the category, which may come from the environment."""
        called = super().called_as
        if self.category == _USUAL or self.place is None or ",category=" in called:
            return called
        loud = called.removesuffix(NO_ATTACK)
        spelled = loud if self._given else f"{loud}={self.place}"
        return f"{spelled},category={self.category}{called[len(loud) :]}"

    def version(self) -> str | None:
        """A hash of its files, and the category if it is not the default."""
        found = super().version()
        is_usual = self.category == _USUAL or self.setting("category")
        return found if found is None or is_usual else f"{found}-{self.category}"

    @property
    def can_switch_attack_off(self) -> bool:
        """Whether there is a script without the attack."""
        return self.place is not None and (Path(self.place).expanduser() / _RUN_WITHOUT_ATTACK).is_file()

    def command(self, query: Query) -> Invocation:
        """Prepare, then run, in one process tree."""
        *prepare, script = self._called(self.require())
        if query.is_prepared:
            prepare = []
        return self._guarded(query, prepare, (script, query.result, f"{query.wall_seconds:g}"))

    def preparation(self, query: Query) -> Invocation | None:
        """Its script for that, alone."""
        *prepare, _ = self._called(self.require())
        return self._guarded(query, prepare, ()) if prepare else None

    def for_category(self, name: str) -> Self:
        """The same tool, with this category passed to its scripts."""
        if self.place is None or self.setting("category"):
            return self
        told = self.at(f"{self._given or self.place},category={name}")
        told.name = self.name
        return told

    def _guarded(self, query: Query, prepare: Sequence[Path], run: Sequence[object]) -> Invocation:
        """The runner on these scripts: `run` is that of the tool, its result and its time, if it is run."""
        script, *rest = map(str, run or ("",))
        files = (query.network_file, query.property_file)
        first = str(prepare[0]) if prepare else ""
        words = (first, called_file(query.folder), script, self.category, *files, *rest)
        scripts = [Path(each) for each in (first, script) if each]
        return guarded(
            as_command((sys.executable, "-I", "-S", _RUNNER, *map(str, words))),
            scripts=scripts,
            folder=query.folder,
            writes=(repository_of(scripts[0].parent),),
            trust=query.trust,
        )

    def guard(self) -> Finding | None:
        """What protects the user's processes from its scripts on this machine."""
        return finding(self._called(self.require()))

    def _called(self, place: str) -> tuple[Path, ...]:
        """The scripts that are called, in order."""
        folder = Path(place).expanduser().absolute()
        prepare = folder / _PREPARE
        script = folder / (_RUN if self.attacks else _RUN_WITHOUT_ATTACK)
        return (prepare, script) if self.prepares and prepare.is_file() else (script,)

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """The verdict in the result file of VNN-COMP."""
        return read_verdict(query.result)

    def explained(self, given: VerifierAnswer, log: Path) -> VerifierAnswer:
        """`unsupported` if its log ends with its message about an operator that it cannot read."""
        return refusal(given, log)


# PyRAT, as packaged for VNN-COMP


class Pyrat(VnncompTool):
    """Its place is the folder of its competition scripts."""

    name = "pyrat"
    prepares = False
    #: Abstract domains pushed forward, refined by splitting.
    styles = (CertificateStyle.PARTITION, CertificateStyle.REACHABILITY)
