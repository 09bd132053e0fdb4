"""Repairs a network so that it satisfies laws: the requirements, the training, and the outcome."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos import __version__
from dokimos.core.errors import InputError
from dokimos.core.files import read_whole
from dokimos.laws.domain.definition import Domain, call_domain
from dokimos.laws.domain.features import Kind, Layout, Slot
from dokimos.laws.engine.pools import as_records
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.layers import shaped_like, without_link
from dokimos.laws.models.model_files import onnx_model
from dokimos.laws.models.objects import object_model
from dokimos.laws.models.same_decisions import are_close, expect_same_decisions, random_cases
from dokimos.laws.models.tested_model import Model
from dokimos.laws.models.trees import Ensemble, write_trees
from dokimos.laws.proving.case_tables import CaseTables
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.network_closing import NetworkCloser, read_layers
from dokimos.laws.proving.question import LawQuestion
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.stated_laws import planned, state_law
from dokimos.laws.proving.tree_questions import TreeQuestion
from dokimos.laws.repair.measures import HeldOut, ModelMeasures, measure
from dokimos.laws.repair.repair_task import (
    RepairTask,
    RepairWay,
    ScoredNetwork,
    ViolatingPairs,
    repaired,
    slope_requirements,
)
from dokimos.networks.semantics.outward import Floats

#: The share of the rows that no repair sees.
_HELD_OUT = 1 / 3
#: Cases that are drawn of each law in each epoch, and how many of those that violate it are kept.
_DRAWN, _KEPT = 4096, 256


@dataclass(frozen=True)
class RepairSettings:
    """How to repair a network, and how long `law verify` may take for each law afterwards."""

    #: None for the usual one of the kind of model.
    way: RepairWay | None = None
    epochs: int = 60
    seed: int = 0
    verify: VerifySettings = field(default_factory=lambda: VerifySettings(seconds=20.0))

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise InputError(f"A repair takes 1 epoch or more, not {self.epochs}.")


@dataclass(frozen=True)
class RepairedModel:
    """A repaired model as the content of its file, ONNX or trees, and how it and the old one perform."""

    content: bytes
    before: ModelMeasures
    after: ModelMeasures
    seed: int
    way: RepairWay
    #: The same as a fitted estimator, if such a network was given, or trees were fitted again.
    estimator: Any = None
    #: The model that was given, which keeps the laws.
    is_unchanged: bool = False

    def state_dict(self) -> dict[str, Any]:
        """Its weights as torch has them, for a Sequential of as many Linear layers with ReLUs between."""
        import torch

        layers = read_layers(without_link(self.content)[0], name="the repaired network")[1]
        return {
            f"{2 * number}.{name}": torch.from_numpy(values.astype(np.float32))
            for number, layer in enumerate(layers)
            for name, values in (("weight", layer.weights), ("bias", layer.biases))
        }


@dataclass(frozen=True)
class RepairSteps:
    """What is finished of a repair with one seed: the network's content, and how both networks perform."""

    content: bytes | None = None
    before: ModelMeasures | None = None
    after: ModelMeasures | None = None


_NOTHING = RepairSteps()


class Repair:
    """Laws, a domain with rows, and a network: everything that does not depend on the seed.

    Raises InputError if a law cannot be repaired, with the reason.
    """

    #: What the question about the model is.
    closes: type[NetworkCloser | TreeQuestion] = NetworkCloser
    #: The ways to repair it, the usual one first.
    ways: tuple[RepairWay, ...] = (RepairWay.CERTIFIED, RepairWay.CASES, RepairWay.WEIGHTS)

    def forms(self, settings: RepairSettings) -> tuple[str, ...]:
        """The suffixes of files that the repaired model can be written to."""
        return (".onnx", ".pkl") if hasattr(self._model.source, "coefs_") else (".onnx",)

    def __init__(
        self, laws: Sequence[Law], domain: Domain, model: Model, *, settings: VerifySettings
    ) -> None:
        self._laws, self._domain, self._model, self._settings = laws, domain, model, settings
        if domain.layout is None or domain.inputs is None:
            raise InputError(
                f"The domain {domain.name} needs FEATURES and `inputs` to keep the answers on."
            )
        layout = domain.layout
        #: What `law verify` says of the old network, once that is known: it does not depend on the seed.
        self._old_answers: tuple[LawAnswer, ...] | None = None
        self._questions, self._closer = self._stated()
        try:
            self._requirements = slope_requirements(self._questions)
        except Refusal as refusal:
            raise InputError(f"These laws cannot be repaired: {refusal}.") from None
        self._low, self._high = _ends(layout)
        given = call_domain(domain.inputs, domain, "inputs")
        self.rows = as_records(given, layout, domain.name).astype(np.float64)
        self._expect_complete()
        self._unseen = _unseen(domain, len(self.rows))
        self._labels = (
            None if domain.labels is None else np.asarray(call_domain(domain.labels, domain, "labels"))
        )

    def _expect_complete(self) -> None:
        gaps, layout = np.argwhere(~np.isfinite(self.rows)), self._domain.layout
        if len(gaps) and layout is not None:
            row, column = gaps[0].tolist()
            raise InputError(
                f"Domain {self._domain.name}: row {row} (0-based) of `inputs` has no "
                f"{layout.at(column).feature.name}, and a network has no scores then; leave such rows out."
            )

    def _stated(self) -> tuple[list[LawQuestion], NetworkCloser | TreeQuestion]:
        questions = []
        closer: NetworkCloser | TreeQuestion | None = None
        for law in self._laws:
            plan = planned(law, self._domain, constrained=self._settings.constrained, allow_code=True)
            try:
                stated = state_law(plan, self._model)
            except Refusal as refusal:
                raise InputError(f"{law.name}: cannot be repaired: {refusal}.") from None
            if not isinstance(stated.closer, self.closes):
                raise InputError(f"{self._model.name}: only networks and trees can be repaired.")
            if stated.question.is_of_numbers and self.closes is NetworkCloser:
                raise InputError(f"{law.name}: cannot be repaired: it compares numbers, not decisions.")
            questions.append(stated.question)
            closer = stated.closer
        if closer is None:
            raise InputError("Give at least one law to repair the model for.")
        return questions, closer

    def key(self, settings: RepairSettings) -> str:
        """A hash of everything that the outcome depends on, apart from the seed."""
        domain, model = self._domain, self._model
        assert domain.layout is not None and model.made_of is not None  # the laws were stated
        own = Path(domain.place) if domain.place and Path(domain.place).is_file() else None
        labels = None if self._labels is None else self._labels.tolist()
        parts = (
            [__version__, *map(_version, ("numpy", "onnxruntime", "torch"))],
            [law.text for law in self._laws],
            [domain.name, domain.classes, domain.constraints, domain.layout.features],
            None if own is None else sha256(read_whole(own)).hexdigest(),
            [sha256(_content(model.made_of)).hexdigest(), model.sha256],
            [self.rows.shape, sha256(self.rows.tobytes()).hexdigest(), labels],
            None if self._unseen is None else self._unseen.tolist(),
            replace(settings, seed=0, way=self.way(settings)),
        )
        return sha256("\n".join(map(repr, parts)).encode()).hexdigest()

    def way(self, settings: RepairSettings) -> RepairWay:
        """In which way the settings ask for a repair of this kind of model. Raises InputError."""
        if settings.way is None or settings.way in self.ways:
            return settings.way or self.ways[0]
        known = ", ".join(each.value for each in self.ways)
        raise InputError(f"{self._model.name}: is not repaired by {settings.way.value}; give {known}.")

    def run(
        self,
        settings: RepairSettings,
        known: RepairSteps = _NOTHING,
        keep: Callable[[RepairSteps], None] = lambda _: None,
    ) -> RepairedModel:
        """Repair the network with one seed, which decides the held-out rows and the training.

        Steps that are `known` from an earlier call with the same settings are not done again; `keep` is
        called with what is known after each step.
        """
        order = np.random.default_rng(settings.seed).permutation(len(self.rows))
        most = round(_HELD_OUT * len(order))
        if self._unseen is not None:  # these first: only they were seen by neither network
            is_unseen = np.isin(order, self._unseen)
            order, most = np.concatenate([order[is_unseen], order[~is_unseen]]), min(most, is_unseen.sum())
        held, seen = np.split(order, [most])
        columns = sorted({each.column for each in self._requirements})
        kept = HeldOut(
            self.rows[held],
            None if self._labels is None or self._unseen is None else self._labels[held],
            tuple((k, float(self._low[k]), float(self._high[k])) for k in columns),
        )
        before = known.before
        if before is None:
            before = self._measured(self._model, kept, settings, self._old_answers)
            keep(known := replace(known, before=before))
        self._old_answers = before.answers
        if before.proven == len(before.answers):  # there is nothing to repair
            given, source = _content(self._model.made_of), self._model.source
            return RepairedModel(given, before, before, settings.seed, self.way(settings), source, True)
        content = known.content if self.way(settings) is not RepairWay.REFIT else None
        if content is None:
            content = self._trained(settings, self.rows[seen])
            keep(known := replace(known, content=content))
        after = known.after
        if after is None:
            after = self._measured(self._loaded(content), kept, settings, None)
            keep(replace(known, after=after))
        return RepairedModel(
            content, before, after, settings.seed, self.way(settings), self._fitted(content)
        )

    def _fitted(self, content: bytes) -> Any:
        """The repaired network as a copy of the estimator of scikit-learn that was given, if it is one."""
        given = self._model.source
        if not hasattr(given, "coefs_"):
            return None
        made = copy.deepcopy(given)
        layers = read_layers(without_link(content)[0], name="the repaired network")[1]
        weights, biases = [layer.weights.T for layer in layers], [layer.biases for layer in layers]
        if made.n_outputs_ == 1 and len(biases[-1]) == 2:  # of two classes, it has the lead of the second
            weights[-1], biases[-1] = np.diff(weights[-1], axis=1), np.diff(biases[-1])
        made.coefs_, made.intercepts_ = weights, biases
        made.hidden_layer_sizes = tuple(len(each) for each in biases[:-1])
        made.activation, made.n_layers_ = "relu", len(weights) + 1
        return made

    def _loaded(self, content: bytes) -> Model:
        """What is measured and decided: the estimator where there is one, otherwise the file."""
        name, fitted = f"the repaired {self._domain.name}", self._fitted(content)
        if fitted is not None:
            return object_model(fitted, self._domain, name=name)
        return onnx_model(content, self._domain, name=name)

    def _trained(self, settings: RepairSettings, rows: Floats) -> bytes:
        """The content of the file of the repaired network."""
        rng = np.random.default_rng(settings.seed)
        network = repaired(
            self.task(rows),
            self.way(settings),
            epochs=settings.epochs,
            seed=settings.seed,
            find=lambda now: self._pairs(now, rows, rng),
        )
        assert isinstance(self._model.made_of, bytes)  # a network was stated
        content = shaped_like(network.onnx(self._low, self._high), self._model.made_of)
        self._expect_faithful(network, content)
        return content

    def _expect_faithful(self, network: ScoredNetwork, content: bytes) -> None:
        """Compare the file with the network that was trained, within the ranges. Raises InputError."""
        layout = self._domain.layout
        assert layout is not None  # as the constructor requires it
        made = onnx_model(content, None, name="the repaired network")
        inside = self.rows[((self.rows >= self._low) & (self.rows <= self._high)).all(axis=1)]
        columns = {column: np.zeros(0) for column in range(layout.width)}
        expect_same_decisions(
            lambda rows: network(rows.astype(np.float32)).argmax(axis=1),
            made.predict,
            inside,
            random_cases(inside, layout, layout.width, columns, inside=True),
            what="The repaired network, as a file,",
            layout=layout,
            is_rounding=lambda row: are_close(network(row.astype(np.float32)), made.scores(row)),
        )

    def _measured(
        self, model: Model, held: HeldOut, settings: RepairSettings, answers: tuple[LawAnswer, ...] | None
    ) -> ModelMeasures:
        found = (self._model, self._laws, self._domain, held, settings.verify)
        return measure(model, *found, answers=answers)

    def task(self, rows: Floats) -> RepairTask:
        """The training task: keep the answers on these rows."""
        assert isinstance(self._closer, NetworkCloser)  # as this class is for networks
        layers = tuple((layer.weights, layer.biases) for layer in self._closer.reach.layers)
        return RepairTask(layers, rows, self._low, self._high, self._requirements)

    def _pairs(
        self, network: ScoredNetwork, rows: Floats, rng: np.random.Generator
    ) -> ViolatingPairs | None:
        """Pairs of records on which a network violates the laws: random ones, from rows, and near these."""
        found: list[tuple[Floats, Floats, int, int]] = []
        for question in self._questions:
            tables = CaseTables(question, network)
            cases = tables.drawn(rng, _DRAWN)
            _put_rows(question, cases[: _DRAWN // 2], rows, rng)
            cases = cases[tables.admitted(cases)]
            order = np.argsort(-tables.worth(cases), kind="stable")[:_KEPT]
            near = tables.changed(cases[np.resize(order, _DRAWN)], rng) if len(order) else cases
            cases = np.concatenate([cases, near[tables.admitted(near)]])
            bad = cases[tables.worth(cases) >= 0][:_KEPT]
            if len(bad) == 0:
                continue
            records = [tables.columns(record, bad) for record in question.records]
            decisions = [network(each).argmax(axis=1) for each in records]
            for row in range(len(bad)):
                a, b = int(decisions[0][row]), int(decisions[1][row])
                if a != b:
                    found.append((records[0][row], records[1][row], a, b))
        if not found:
            return None
        first, second, above, below = zip(*found, strict=True)
        return ViolatingPairs(np.stack(first), np.stack(second), np.array(above), np.array(below))


def _unseen(domain: Domain, size: int) -> NDArray[np.int64] | None:
    """The rows that the old network was not trained on, None if nobody says. Raises InputError."""
    if domain.unseen is None:
        return None
    given = np.unique(np.asarray(list(call_domain(domain.unseen, domain, "unseen"))))
    if given.dtype.kind not in "iu" or len(given) == 0 or given[0] < 0 or given[-1] >= size:
        raise InputError(
            f"Domain {domain.name}: unseen() must list rows of `inputs`, by numbers from 0 to {size - 1}."
        )
    return given.astype(np.int64)


def _content(made_of: Ensemble | bytes | None) -> bytes:
    assert made_of is not None  # the laws were stated
    return made_of if isinstance(made_of, bytes) else write_trees(made_of)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _put_rows(question: LawQuestion, cases: Floats, rows: Floats, rng: np.random.Generator) -> None:
    """Make some of the rows the first input of some cases."""
    chosen = rows[rng.integers(0, len(rows), len(cases))]
    for slot, feature in zip(question.layout.slots, question.inputs[0].features, strict=True):
        if feature.variable is not None:
            cases[:, feature.variable] = _value(slot, chosen)


def _value(slot: Slot, rows: Floats) -> Floats:
    """A feature of rows as a law sees it: for a choice its index, −1 for none."""
    if slot.feature.kind is not Kind.CHOICE:
        return rows[:, slot.start]
    hot = rows[:, slot.start : slot.stop]
    return np.where(hot.any(axis=1), hot.argmax(axis=1), -1).astype(np.float64)


def _ends(layout: Layout) -> tuple[Floats, Floats]:
    """The least and greatest number of each column."""
    ends: list[tuple[float, float]] = []
    for feature in layout.features:
        if feature.kind is Kind.CHOICE:
            ends += [(0.0, 1.0)] * feature.width
        else:
            assert feature.low is not None and feature.high is not None  # the laws were translated
            ends.append((float(feature.low), float(feature.high)))
    low, high = np.array(ends).T
    return low, high
