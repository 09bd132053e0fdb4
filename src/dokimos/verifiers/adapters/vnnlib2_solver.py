"""Any solver with the command line of the VNN-LIB 2.0 standard."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from dokimos.suites.answers import VerifierAnswer
from dokimos.verifiers.base import Invocation, Query
from dokimos.verifiers.conversions import INPUT_NAME, OUTPUT_NAME
from dokimos.verifiers.environments import our_module
from dokimos.verifiers.execution.limits import Outcome
from dokimos.verifiers.placed import PlacedVerifier, file_content
from dokimos.verifiers.result_file import read_verdict, refusal
from dokimos.verifiers.runners.vnnlib2_runner import KILLED


class Vnnlib2Solver(PlacedVerifier):
    """Its place is a command: ``COMMAND verify q.vnnlib --network f=a.onnx --timeout T`` is run.

    A property in VNN-LIB 1.0 is converted to 2.0 first, with the same decimals. The answer is the first
    line of standard output, and the witness follows it; exit codes are ignored, but a solver killed by a
    signal has not answered. Its version is a hash of the program's file, and of the files among its
    arguments. ``,no_attack=WORDS`` after the command says what more to write to switch its own attack off.
    """

    name = "vnnlib2"
    limitations: ClassVar[str] = "what that solver cannot read"
    settings: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"no_attack": "the arguments that switch its own attack off"}
    )

    def how_to_get(self) -> str:
        """How to tell Dokimos its command."""
        return (
            f"install a solver of VNN-LIB 2.0, then --verifier {self.kind}='its command' "
            f"(or set {self.variable})"
        )

    def trouble(self, place: str) -> str | None:
        """The first word must be an executable program."""
        try:
            words = shlex.split(place)
        except ValueError as error:
            return f"{place!r} is not a command ({error})"
        if not words or shutil.which(words[0]) is None:
            return f"{(words or [place])[0]!r} is not a program that can be run"
        try:
            shlex.split(self.setting("no_attack") or "")
        except ValueError as error:
            return f"its `no_attack` is not a list of arguments ({error})"
        return None

    @property
    def can_switch_attack_off(self) -> bool:
        """Whether its place says how."""
        return bool(self.setting("no_attack"))

    @property
    def switches(self) -> tuple[str, ...]:
        """What follows its command."""
        return () if self.attacks else tuple(shlex.split(self.setting("no_attack") or ""))

    def parts(self, place: str) -> Iterable[bytes]:
        """The program itself, and those of its arguments that are files."""
        program, *rest = shlex.split(place)
        yield file_content(Path(shutil.which(program) or program))
        yield from (file_content(Path(word)) for word in rest)

    def command(self, query: Query) -> Invocation:
        """The runner, which converts to 2.0, starts the solver and saves its standard output."""
        files = (str(query.network_file), str(query.property_file), str(query.result))
        options = ("--timeout", f"{query.wall_seconds:g}", *files)
        # It runs in another folder, but paths in its command are relative to this one.
        program, *rest = shlex.split(self.require())
        words = (str(Path(shutil.which(program) or program).absolute()), *map(_found, rest), *self.switches)
        return our_module("dokimos.verifiers.runners.vnnlib2_runner", *options, "--", *words)

    def accepts(self, exit_code: int) -> bool:
        """The standard gives exit codes no meaning, and solvers exit with 1 for `sat`."""
        return exit_code < KILLED

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """The verdict on the first line of the standard output that the runner saved."""
        return read_verdict(query.result, input_name=INPUT_NAME, output_name=OUTPUT_NAME)

    def explained(self, given: VerifierAnswer, log: Path) -> VerifierAnswer:
        """`unsupported` if its log ends with its message about an operator that it cannot read."""
        return refusal(given, log)


def _found(word: str) -> str:
    """The absolute path if a word is the path of a file; otherwise the word."""
    path = Path(word)
    return str(path.absolute()) if path.is_file() else word
