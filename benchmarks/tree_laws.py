"""Laws on ensembles of trees: decided, with CPU seconds for finding and for checking again.

    .venv/bin/python benchmarks/tree_laws.py            monotonicity, and one-record laws, of fitted models
    .venv/bin/python benchmarks/tree_laws.py --full     harder ones too, with 30 CPU seconds for each

Where `dtai-veritas` is installed, it is asked the same one-record questions, in turn, about the same trees:
is there a record in the box whose score is on the wrong side of 0? It computes in floats and writes no
proof; our time has the proof and its check in it.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws import integer
from dokimos.laws.domain.definition import Domain, read_domain
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.scikit import read_scikit
from dokimos.laws.models.tested_model import Model
from dokimos.laws.models.trees import DecisionTree, Ensemble
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.stated_laws import planned, state_law
from dokimos.laws.proving.verifying import verify_law

FEATURES, ROWS, MOST = 20, 4000, 100
SECONDS = 60.0


def _domain() -> Domain:
    features = [integer(f"f{k}", 0, MOST) for k in range(FEATURES)]
    return read_domain(SimpleNamespace(FEATURES=features, CLASSES=["no", "yes"]), name="numbers")


def _rising(feature: int) -> Law:
    """More of a feature never turns a yes into a no."""
    return parse_law(
        f"input x1; var v := randInt(x1.f{feature} + 1, {MOST}); var x2 := x1[f{feature} := v]; output d1;"
        " output d2; { d1 = predict(x1)\n d2 = predict(x2) } ensures d1 <= d2;",
        name="rising",
    )


def _corner(weights: NDArray[np.float64], count: int) -> tuple[Law, dict[int, tuple[int, int]]]:
    """Records whose strongest features speak for a yes get one."""
    box = {}
    for k in np.argsort(-np.abs(weights))[:count].tolist():
        box[k] = (60, MOST) if weights[k] > 0 else (0, 40)
    given = " ".join(f"requires x1.f{k} >= {a}; requires x1.f{k} <= {b};" for k, (a, b) in box.items())
    text = f"input x1; {given} output d1; {{ d1 = predict(x1) }} ensures d1 == 1;"
    return parse_law(text, name=f"corner of {count}"), box


def _data(seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, MOST + 1, (ROWS, FEATURES)).astype(np.float64)
    weights = rng.normal(size=FEATURES) / 50
    bend = 0.5 * np.sin(rows[:, 0] / 10) * np.sign(rows[:, 1] - 50)
    return rows, ((rows - 50) @ weights + bend + rng.normal(size=ROWS) > 0).astype(np.int64), weights


def _monotone_tree(rng: np.random.Generator, depth: int, feature: int) -> DecisionTree:
    """A full tree with random tests, whose values never fall when a feature rises."""
    inner, nodes = 2**depth - 1, 2 ** (depth + 1) - 1
    own = np.arange(nodes)
    is_leaf = own >= inner
    tests = np.where(is_leaf, -1, rng.integers(0, FEATURES, nodes))
    low, high = np.full(nodes, -0.1), np.full(nodes, 0.1)
    for node in range(inner):
        for child in (2 * node + 1, 2 * node + 2):
            low[child], high[child] = low[node], high[node]
        if tests[node] == feature:
            high[2 * node + 1] = low[2 * node + 2] = rng.uniform(low[node], high[node])
    value = np.zeros((nodes, 2))
    value[:, 1] = rng.uniform(low, high)
    left, right = (np.where(is_leaf, own, 2 * own + k) for k in (1, 2))
    return DecisionTree(tests, rng.integers(0, MOST, nodes) + 0.5, left, right, value)


def _decide(what: str, law: Law, trees: Ensemble, goal: str, seconds: float = SECONDS) -> float:
    model = Model("trees", trees, trees.decide, made_of=trees)
    found = verify_law(law, model=model, domain=_domain(), settings=VerifySettings(seconds=seconds))
    leaves = 0 if found.cover is None else found.cover.leaves
    zones = f"{leaves:,} zone" + "s" * (leaves != 1) if leaves else ""
    checked = ""
    if found.cover is not None:
        plan = planned(law, _domain(), constrained=True, allow_code=True)
        begun = time.process_time()
        state_law(plan, model).check(found.cover)
        checked = f"{time.process_time() - begun:.2f}"
    print(
        f"{what:44} {law.name:14} {found.answer.value:9} {found.step:22} {found.seconds:7.2f} {checked:>7} "
        f"{zones:14} {goal}",
        flush=True,
    )
    assert found.answer is not LawAnswer.REFUSED, found.reason
    return found.seconds


def _veritas(trees: Ensemble, box: dict[int, tuple[int, int]], seconds: float) -> tuple[str, float]:
    """What Veritas says about the least score in a box, and in how many CPU seconds."""
    veritas: Any = importlib.import_module("veritas")
    made = veritas.AddTree(1, veritas.AddTreeType.REGR)
    for tree in trees.trees:
        _copy(tree, trees.scale, made.add_tree())
    made.set_base_score(0, float(trees.base[1]))
    ends = [box.get(k, (0, MOST)) for k in range(FEATURES)]
    config = veritas.Config(veritas.HeuristicType.MIN_OUTPUT)
    config.stop_when_num_solutions_exceeds = 1
    config.ignore_state_when_worse_than = 0.0
    begun = time.process_time()
    search = config.get_search(made, [veritas.Interval(a - 0.25, b + 0.25) for a, b in ends])
    going_on = (veritas.StopReason.NONE, veritas.StopReason.OUT_OF_TIME)
    reason = going_on[0]
    while reason in going_on and time.process_time() - begun < seconds:
        reason = search.step_for(1.0, 100)
    if reason in going_on:
        answer = LawAnswer.OPEN
    else:
        answer = LawAnswer.VIOLATED if search.num_solutions() else LawAnswer.PROVEN
    return answer.value, time.process_time() - begun


def _copy(tree: DecisionTree, scale: float, made: Any) -> None:
    pending = [(0, made.root())]
    while pending:
        node, place = pending.pop()
        if tree.feature[node] < 0:
            made.set_leaf_value(place, 0, float(scale * tree.value[node, 1]))
            continue
        # Veritas goes left where a number is below a split, we where it is at most the threshold.
        made.split(place, int(tree.feature[node]), float(np.floor(tree.threshold[node]) + 0.5))
        pending += [(int(tree.left[node]), made.left(place)), (int(tree.right[node]), made.right(place))]


def _boosted(trees: int, depth: int, seed: int) -> tuple[Ensemble, NDArray[np.float64]]:
    rows, labels, weights = _data(seed)
    ensemble: Any = importlib.import_module("sklearn.ensemble")
    fitted = ensemble.GradientBoostingClassifier(n_estimators=trees, max_depth=depth, random_state=seed)
    return read_scikit(fitted.fit(rows, labels)), weights


def _forest(trees: int, depth: int | None, rising: int | None = None) -> Ensemble:
    rows, labels, _ = _data(0)
    constraints = None if rising is None else [int(k == rising) for k in range(FEATURES)]
    ensemble: Any = importlib.import_module("sklearn.ensemble")
    fitted = ensemble.RandomForestClassifier(
        trees, max_depth=depth, monotonic_cst=constraints, random_state=0
    )
    return read_scikit(fitted.fit(rows, labels))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one line for each question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="harder questions too")
    full = parser.parse_args(arguments).full
    print(f"{'trees':44} {'law':14} {'answer':9} {'by':22} {'CPU s':>7} {'recheck':>7} {'proof':14} goal")
    _decide("forest 100 x 6, monotone constraint", _rising(3), _forest(100, 6, 3), "proven in 2 s")
    rng = np.random.default_rng(0)
    rising = Ensemble(
        [_monotone_tree(rng, 6, 3) for _ in range(500)], inputs=FEATURES, base=[0.0, 0.0], scale=0.1
    )
    _decide("boosted 500 x 6, monotone by construction", _rising(3), rising, "proven in 10 s")
    for depth in (6, 10, None):
        what = f"forest 30 x {depth or 'any depth'}, no constraint"
        _decide(what, _rising(3), _forest(30, depth), "decided in 60 s")
    _decide("forest 30 x 6, monotone constraint", _rising(3), _forest(30, 6, 3), "")
    total = np.zeros(2)
    known = importlib.util.find_spec("veritas") is not None
    for trees, depth in ((50, 4), (100, 4), (50, 6), *(((500, 4),) if full else ())):
        made, weights = _boosted(trees, depth, 0)
        _decide(f"boosted {trees} x {depth}", _rising(3), made, "")
        for count in (6, 8, 10, 12):
            law, box = _corner(weights, count)
            limit = 30.0 if trees == 500 else SECONDS
            goal = "1 s" if (trees, depth) == (100, 4) else "30 s"
            ours = _decide(f"boosted {trees} x {depth}", law, made, f"decided in {goal}", limit)
            if known:
                answer, seconds = _veritas(made, box, limit)
                print(f"{'':44} {'Veritas':14} {answer:9} {'':22} {seconds:7.2f}", flush=True)
                total += np.array([ours, seconds])
    if known:
        print(f"one-record questions, in all: {total[0]:.2f} CPU s, checked; Veritas {total[1]:.2f} CPU s")
    else:
        print("dtai-veritas is not installed: pip install dtai-veritas, to ask it too")


if __name__ == "__main__":
    main()
