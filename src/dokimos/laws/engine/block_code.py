"""The block of a law that does more than predict: its Python code, run case by case."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import DokimosError
from dokimos.laws.domain.functions import SCORES, DomainFunction, explain
from dokimos.laws.engine.calls import Failures, block_rng, call_single, single_value
from dokimos.laws.engine.case_frame import Frame, Records, column, stack
from dokimos.laws.engine.evaluation import Evaluator
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.engine.values import scoring
from dokimos.laws.language import syntax as laws
from dokimos.laws.models.tested_model import Model

#: The name of the largest seed in laws written for the published tool.
MAX_INT = 2**31 - 1


#: What holds several values: laws compare numbers, texts and truth values.
_SEVERAL = (list, tuple, set, frozenset, dict)


def _wrong_outputs(outputs: list[str], names: dict[str, Any]) -> str:
    """What is wrong with the values that a block gave to outputs; empty if nothing is."""
    missing = [name for name in outputs if name not in names]
    if missing:
        return f"the block ended without a value for {', '.join(missing)}"
    for name in outputs:
        value = names[name]
        if isinstance(value, _SEVERAL) or (isinstance(value, np.ndarray) and value.ndim > 0):
            kind = "record" if isinstance(value, np.ndarray) else type(value).__name__
            return f"the output {name} is a {kind}, not a number, a text or a truth value"
    return ""


class BlockCode:
    """Runs the block of a law against a model."""

    def __init__(self, plan: LawPlan, model: Model, labels: Callable[[], NDArray[Any]]) -> None:
        self._plan, self._model, self._labels = plan, model, labels
        self._score = scoring(model, plan.domain.classes)
        self._warned: dict[Any, Any] = {}  # so that a warning of the block is shown once, not in every case

    def outputs(self, frame: Frame, failures: Failures) -> dict[str, list[Any]]:
        """The value of each output in the cases that do not fail; the others go to `failures`.

        Raises GivenUp if `failures` does.
        """
        assert self._plan.code is not None
        outputs: dict[str, list[Any]] = {each.name: [] for each in self._plan.law.outputs}
        for row in range(frame.size):
            names = self._namespace(frame, row)
            try:
                exec(self._plan.code, names)
            except DokimosError:
                raise
            except Exception as problem:
                failures.add(int(frame.ids[row]), explain(problem, "the block"))
                failures.expect_another(frame.ids[: row + 1])
                continue
            if wrong := _wrong_outputs(list(outputs), names):
                failures.add(int(frame.ids[row]), wrong)
                failures.expect_another(frame.ids[: row + 1])
                continue
            for name, values in outputs.items():
                values.append(names[name])
        return outputs

    def _namespace(self, frame: Frame, row: int) -> dict[str, Any]:
        """The names in the block of one case: the law's, the domain's functions, builtins, `predict`."""
        rng = block_rng(int(frame.seeds[row]))
        functions: dict[str, Any] = {
            "predict": lambda record: column([self._model.predict(stack([record]))[0]]).item(),
            "randInt": lambda low, high: int(rng.integers(low, high, endpoint=True)),
            "randReal": lambda low, high: float(rng.uniform(low, high)),
            "getFeat": self._get_feature,
            "setFeat": self._set_feature,
            "strConcat": lambda left, right: left + right,
            "MAX_INT": MAX_INT,
            **{kind: partial(self._class_score, kind) for kind in SCORES},
        }
        for name, own in self._plan.domain.functions.items():
            functions[name] = partial(_called, own, rng, self._model)
        origin = next((value.origin for value in frame.values.values() if isinstance(value, Records)), None)
        if origin is not None:
            functions["label"] = lambda record: single_value(self._labels()[origin[row : row + 1]], 0)
        spaces = {each.name: SimpleNamespace(**functions) for each in self._plan.law.imports}
        values = {name: single_value(value, row) for name, value in frame.values.items()}
        return {**functions, **spaces, **values, "__warningregistry__": self._warned}

    def _class_score(self, kind: str, record: Any, wanted: Any) -> float:
        return float(self._score(kind, stack([record]), column([wanted]))[0])

    def _get_feature(self, record: Any, feature: str | int) -> Any:
        one = Records(np.asarray(record)[None])
        return single_value(self._alone_in_block().feature(one, feature, self._in_block), 0)

    def _set_feature(self, record: Any, feature: str | int, value: Any) -> Any:
        one = Records(np.asarray(record)[None])
        return self._alone_in_block().changed(one, feature, column([value]), self._in_block).data[0]

    def _alone_in_block(self) -> Evaluator:
        nothing = np.zeros(1, dtype=np.int64)
        return Evaluator(self._plan, Frame(nothing, nothing, {}), _Raising(), self._labels)

    @property
    def _in_block(self) -> laws.Expression:
        """A syntax node at the position of the block, for messages."""
        return laws.Literal(None, at=self._plan.law.block.at)


class _Raising(Failures):
    """Turns errors inside the block into exceptions of the block."""

    def add(self, case: int, reason: str) -> None:
        raise ValueError(reason)


def _called(function: DomainFunction, rng: np.random.Generator, model: Model, *arguments: Any) -> Any:
    return call_single(function, arguments, rng, model.predict)
