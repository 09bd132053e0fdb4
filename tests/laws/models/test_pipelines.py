"""Trees behind transformers: the same decisions on every record, and laws that are decided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.models.lookup import as_domain_model
from dokimos.laws.models.same_decisions import expect_faithful_trees
from dokimos.laws.models.trees import Ensemble
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.verifying import verify_law
from tests.laws.toy import law

NUMBERS = ["income", "age"]
MORE = "input x1; var v := randReal(x1.income, 200); var x2 := x1[income := v]; ENSURES d1 <= d2"


def _frame(*, gaps: bool = True) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(3)
    rows = 400
    frame = pd.DataFrame(
        {
            "income": rng.normal(50, 20, rows),
            "age": rng.integers(18, 90, rows).astype(float),
            "job": rng.choice(["nurse", "smith", "baker", "judge"], rows),
            "id": np.arange(rows),
        }
    )
    target = frame.income / 20 + (frame.job == "judge") + np.sin(frame.age / 9) + rng.normal(size=rows)
    if gaps:
        frame.loc[::7, "age"] = np.nan
        frame.loc[::11, "job"] = None
    return frame, target


def _columns(number: Any, job: Any, **options: Any) -> ColumnTransformer:
    return ColumnTransformer([("numbers", number, NUMBERS), ("job", job, ["job"])], **options)


def _pipelines() -> dict[str, Pipeline]:
    filled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    hot = OneHotEncoder(handle_unknown="ignore")
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    codes_of_known = make_pipeline(codes, SimpleImputer(strategy="most_frequent"))
    forest = RandomForestClassifier(8, max_depth=5, random_state=0)
    return {
        "one-hot": make_pipeline(_columns(filled, hot), forest),
        "dropped": make_pipeline(
            _columns(filled, OneHotEncoder(drop="first", handle_unknown="ignore")), forest
        ),
        "rare": make_pipeline(
            _columns(filled, OneHotEncoder(max_categories=2, handle_unknown="infrequent_if_exist")), forest
        ),
        "ordinal": make_pipeline(
            _columns(filled, codes_of_known), SelectKBest(k=2), DecisionTreeClassifier(max_depth=6)
        ),
        "order": make_pipeline(
            make_column_transformer((hot, ["job"]), ("passthrough", ["age"]), (MinMaxScaler(), ["income"])),
            DecisionTreeRegressor(max_depth=6),
        ),
        "kept": make_pipeline(
            ColumnTransformer([("job", hot, [2])], remainder=RobustScaler()),
            HistGradientBoostingRegressor(max_iter=20),
        ),
        "powers": make_pipeline(
            _columns(filled, hot), PolynomialFeatures(1), FunctionTransformer(), forest
        ),
    }


@pytest.mark.parametrize("name", _pipelines())
def test_a_pipeline_is_read_to_the_bit_and_a_law_on_it_is_decided(name: str) -> None:
    frame, target = _frame()
    pipeline = _pipelines()[name]
    is_number = hasattr(pipeline[-1], "loss") or isinstance(pipeline[-1], DecisionTreeRegressor)
    pipeline.fit(frame, target if is_number else (target > target.median()).astype(int))
    domain = Domain.from_frame(frame)
    model = as_domain_model(pipeline, replace(domain, classes=() if is_number else ("no", "yes")))
    trees = model.made_of
    assert isinstance(trees, Ensemble), model.unread
    rows = np.asarray(as_domain_model(lambda _: 0, domain) and _records(domain))
    assert expect_faithful_trees(model, domain.layout, rows)
    assert trees.decide(trees(rows)).tolist() == pipeline.predict(frame).tolist()
    found = verify_law(law(MORE), model=model, domain=domain, settings=VerifySettings(seconds=20))
    assert found.answer is LawAnswer.VIOLATED


def _records(domain: Domain) -> Any:
    from dokimos.laws.engine.pools import data_of

    return data_of(domain)


@pytest.mark.parametrize("sign", [1, 0])
def test_a_constraint_behind_a_scaler_is_proven(sign: int) -> None:
    frame, target = _frame(gaps=False)
    constrained = HistGradientBoostingRegressor(max_iter=30, monotonic_cst=[sign, 0])
    pipeline = make_pipeline(StandardScaler(), constrained).fit(frame[NUMBERS], target)
    domain = Domain.from_frame(frame[NUMBERS])
    found = verify_law(law(MORE), model=pipeline, domain=domain, settings=VerifySettings(seconds=20))
    assert found.answer is (LawAnswer.PROVEN if sign else LawAnswer.VIOLATED)


def test_an_array_of_numbers_needs_no_names() -> None:
    frame, target = _frame(gaps=False)
    rows = frame[NUMBERS].to_numpy()
    pipeline = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=4)).fit(rows, target)
    domain = Domain.from_frame(rows)
    model = as_domain_model(pipeline, domain)
    assert isinstance(model.made_of, Ensemble)
    assert np.array_equal(model.made_of(rows)[:, 0], pipeline.predict(rows))


def test_what_is_not_read_is_said() -> None:
    frame, target = _frame(gaps=False)
    tree = DecisionTreeRegressor(max_depth=3)
    for first, columns, said in (
        (KBinsDiscretizer(3), NUMBERS, "what a KBinsDiscretizer makes of columns"),
        (PolynomialFeatures(2), NUMBERS, "use degree 1"),
        (SimpleImputer(add_indicator=True), NUMBERS, "add_indicator"),
        (SimpleImputer(missing_values=-1), NUMBERS, "give missing values as nan"),
        (OneHotEncoder(handle_unknown="ignore"), ["age"], "age is encoded by its values, but is a number"),
    ):
        pipeline = make_pipeline(first, tree).fit(frame[columns], target)
        model = as_domain_model(pipeline, Domain.from_frame(frame[columns]))
        assert model.made_of is None and said in model.unread
    strings = make_pipeline(OneHotEncoder(), tree).fit(frame[["job"]], target)
    assert "with a domain" in as_domain_model(strings, Domain("none")).unread


def test_numbers_that_are_not_asked_about_are_said() -> None:
    """Where a test of 5·10³⁴ divides them is not looked for: all would be taken to go left."""
    frame, target = _frame(gaps=False)
    far = frame[NUMBERS] * 1e33
    pipeline = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=2)).fit(far, target)
    model = as_domain_model(pipeline, Domain.from_frame(far))
    assert model.made_of is None and "beyond 1e+30" in model.unread


def test_another_threshold_is_noticed() -> None:
    frame, target = _frame(gaps=False)
    pipeline = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=4)).fit(
        frame[NUMBERS], target
    )
    domain = Domain.from_frame(frame[NUMBERS])
    model = as_domain_model(pipeline, domain)
    assert isinstance(model.made_of, Ensemble)
    [tree] = model.made_of.trees
    off = [replace(tree, threshold=np.nextafter(tree.threshold, np.inf))]
    with pytest.raises(InputError, match="it is another model"):
        expect_faithful_trees(
            replace(model, made_of=model.made_of.changed(trees=off)), domain.layout, _records(domain)
        )
