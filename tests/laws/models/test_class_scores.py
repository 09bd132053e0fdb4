"""What models give for a class: `score(x, class)` and `proba(x, class)` in laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.tree import DecisionTreeClassifier

from dokimos.core.errors import InputError
from dokimos.laws.language.syntax import LawError
from dokimos.laws.models.objects import object_model
from dokimos.laws.models.tested_model import network_classes
from tests.laws.toy import domain, inputs, run


def _scores(records: NDArray[Any]) -> NDArray[Any]:
    """Three scores, of which the first falls with felonies and the last rises."""
    felonies = records[:, 1].astype(np.float64)
    return np.stack([-felonies, np.zeros(len(records)), felonies], axis=1)


_scores.batched = True  # type: ignore[attr-defined]

ONE_MORE = "input x1; var x2 := x1[felonies := x1.felonies + 1];"


def test_a_law_bounds_how_a_score_changes() -> None:
    held = run(f"{ONE_MORE} ENSURES score(x2, 2) - score(x1, 2) == 1", model=_scores)
    assert (held.violated, held.failed, held.tested) == (0, 0, 40)
    assert run(f"{ONE_MORE} ENSURES score(x1, 0) <= score(x2, 0)", model=_scores).violated == 40


def test_a_class_is_named_by_its_number_its_name_or_a_decision() -> None:
    same = 'score(x1, "high") == score(x1, 2) && score(x1, d1) == max(score(x1, 0), score(x1, 2))'
    assert run(f"{ONE_MORE} ENSURES {same}", model=_scores).violated == 0
    with pytest.raises(LawError, match=r":2:31: the model has no class 'huge'; it has low, medium, high"):
        run(f'{ONE_MORE} ENSURES score(x1, "huge") > 0', model=_scores)


def test_probabilities_are_a_softmax_unless_they_are_probabilities() -> None:
    held = run(f"{ONE_MORE} ENSURES proba(x1, 2) <= proba(x2, 2) && proba(x1, 2) < 1.1", model=_scores)
    assert held.violated == 0
    shares = network_classes(lambda rows: np.array([[0.25, 0.75], [1.0, 2.0]]))
    found = shares.of(np.zeros((2, 1)), np.array([1, 1]), (), kind="proba")
    assert found == pytest.approx([0.75, 1 / (1 + np.exp(-1))])


def test_a_precondition_and_a_block_may_ask_for_scores_too() -> None:
    near = run(f"{ONE_MORE} requires score(x1, 2) >= 10; ENSURES d1 <= d2", model=_scores)
    assert near.rejected == int((inputs()[:, 1] < 10).sum()) and near.tested + near.rejected == 40
    block = 'input x1; output s; { s = score(x1, "high") } ensures s == x1.felonies;'
    assert run(block, model=_scores, budget=50).violated == 0
    alone = run("input x1; { } ensures score(x1, 2) < 19;", model=_scores)
    assert alone.violations[0].words.startswith("here the law is violated")


def test_scores_that_fail_are_failures_of_single_cases() -> None:
    def brittle(records: NDArray[Any]) -> NDArray[Any]:
        return np.where(records[:, 1:2] == 3, np.nan, _scores(records))

    brittle.batched = True  # type: ignore[attr-defined]
    result = run("input x1; { } ensures score(x1, 2) >= 0;", model=brittle)
    assert result.failed == int((inputs()[:, 1] == 3).sum()) > 0
    assert "it gives nan, which is not a score" in result.errors[0][0]


def test_estimators_have_scores_probabilities_and_labels() -> None:
    rows, wanted = inputs(), np.where(inputs()[:, 1] > 9, "much", "little")
    classifier = LogisticRegression(max_iter=2000).fit(rows, wanted)
    classes = object_model(classifier, None, name="m").classes
    much = np.full(len(rows), "much", dtype=object)
    assert classes.of(rows, much, (), kind="proba") == pytest.approx(classifier.predict_proba(rows)[:, 1])
    assert classes.of(rows, much, (), kind="score") == pytest.approx(classifier.decision_function(rows))
    tree = DecisionTreeClassifier(max_depth=2).fit(rows, wanted)
    shares = object_model(tree, None, name="t").classes.of(rows, much, (), kind="score")
    assert shares == pytest.approx(tree.predict_proba(rows)[:, 1])


def test_what_a_model_does_not_have_is_said() -> None:
    rows, wanted = inputs(), (inputs()[:, 1] > 9).astype(int)
    margins = object_model(RidgeClassifier().fit(rows, wanted), None, name="m").classes
    with pytest.raises(InputError, match="gives no probabilities; use score"):
        margins.of(rows, wanted, (), kind="proba")
    number = object_model(LinearRegression().fit(rows, wanted), None, name="m").classes
    assert len(number.of(rows, np.zeros(len(rows)), (), kind="score")) == len(rows)
    words = object_model(lambda record: "yes", None, name="m").classes
    with pytest.raises(InputError, match="gives no scores for classes"):
        words.of(rows, wanted, (), kind="score")
    with pytest.raises(LawError, match="one number for each record, so there is no proba"):
        run("input x1; { } ensures proba(x1, 0) > 0;", of=domain())


def test_a_law_that_only_asks_for_scores_says_something_about_the_model() -> None:
    with pytest.raises(LawError, match="needs the class"):
        run("input x1; { } ensures score(x1, true) > 0;", model=_scores)
    with pytest.raises(LawError, match="mentions no output"):
        run("input x1; { } ensures x1.age > 0;", model=_scores)


def test_records_whose_scores_are_asked_for_are_judged_records() -> None:
    """They are run twice, and may leave their ranges, as those that the block predicts."""
    far = "input x1; var x2 := x1[felonies := x1.felonies + 100]; { } ensures score(x2, 2) >= score(x1, 2);"
    result = run(far, model=_scores)
    assert (result.violated, result.outside, result.is_exhaustive) == (0, 40, True)
    draws = np.random.default_rng(1)

    def wavering(records: NDArray[Any]) -> NDArray[Any]:
        return _scores(records) + draws.normal(size=(len(records), 3))

    wavering.batched = True  # type: ignore[attr-defined]
    assert run(far, model=wavering).not_deterministic
