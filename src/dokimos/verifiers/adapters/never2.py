"""NeVer2, from PyPI's pynever, by its Python interface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from dokimos.core.errors import InputError
from dokimos.suites.answers import VerifierAnswer
from dokimos.suites.entry import read_vnnlib_file
from dokimos.suites.vnnlib.model import Case, Conjunction, Property
from dokimos.verifiers.base import CertificateStyle, Invocation, Query, as_command
from dokimos.verifiers.environments import PinnedEnvironment, PinnedVerifier, pins_of
from dokimos.verifiers.execution.limits import Outcome
from dokimos.verifiers.result_file import read_result
from dokimos.verifiers.runners import RUNNERS

_RUNNER = RUNNERS / "never2_runner.py"
_QUESTION = "question.json"


class Never2(PinnedVerifier):
    """Takes the property as matrices, one query per case; strict constraints become non-strict.

    torchvision, which it declares as a dependency, is left out: it is imported for training only.
    """

    name = "never2"
    #: Star sets, refined by splitting.
    styles = (CertificateStyle.PARTITION, CertificateStyle.REACHABILITY)
    takes = "pynever 1.3.2 from PyPI with torch, about 1.4 GB"
    limitations: ClassVar[str] = (
        "all but fully connected ReLU networks; constraints mixing inputs and outputs"
    )
    unread_operators = (
        "AveragePool BatchNormalization Clip Concat Constant ConstantOfShape Exp Expand "
        "Gather GlobalAveragePool Identity LeakyRelu Max Min Neg Pad Pow ReduceMean ReduceSum "
        "Sigmoid Slice Softmax Split Squeeze Tanh Unsqueeze"
    )
    environment = PinnedEnvironment(
        verifier="never2",
        version="1.3.2",
        requirements=pins_of("never2"),
    )

    def smoke(self) -> tuple[str, ...]:
        """Answer two tiny queries."""
        return (str(_RUNNER), "--smoke")

    def command(self, query: Query) -> Invocation:
        """The runner script, with the property as matrices in the run's folder."""
        timeout = ("--timeout", f"{query.wall_seconds:g}")
        files = (query.network_file, query.folder / _QUESTION, query.result)
        return Invocation(
            as_command((self.environment.python, _RUNNER, *timeout, *files)),
            files={_QUESTION: json.dumps(_question(query.property_file))},
        )

    def read_answer(self, outcome: Outcome, query: Query) -> VerifierAnswer:
        """What the runner wrote."""
        return read_result(query.result)


def _question(property_file: Path) -> dict[str, Any]:
    """The property as the runner reads it."""
    try:
        asked = read_vnnlib_file(property_file)
    except InputError as error:
        return {"unsupported": f"the property cannot be put into matrices: {error}"}
    if len(asked.networks) != 1:
        return {"unsupported": "NeVer2 verifies one network at a time"}
    if any(c.inputs for case in asked.cases for part in case.any_of for c in part):
        return {"unsupported": "NeVer2 does not support constraints mixing inputs and outputs"}
    cases = [case for case in asked.cases if case.any_of and not case.box.is_empty]
    return {"cases": [_case(case, asked) for case in cases]}


def _case(case: Case, asked: Property) -> dict[str, Any]:
    return {
        "lower": [float(x) for x in case.box.lower],
        "upper": [float(x) for x in case.box.upper],
        "unsafe": [_polytope(part, asked.output_size) for part in case.any_of],
    }


def _polytope(part: Conjunction, outputs: int) -> dict[str, Any]:
    """matrix·y <= bound; a conjunction without constraints holds where 0 <= 0."""
    rows, bound = [], []
    for constraint in part:
        row = [0.0] * outputs
        for j, d in constraint.outputs:
            row[j] = float(d)
        rows.append(row)
        bound.append(float(constraint.bound))
    return {"matrix": rows or [[0.0] * outputs], "bound": bound or [0.0]}
