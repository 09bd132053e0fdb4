"""Estimators that were fitted on a DataFrame are handed one, with its names and dtypes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dokimos.core.errors import InputError
from dokimos.laws import Feature, category, choice, features_of, flag, integer, real
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.domain.definition import Domain, read_domain
from dokimos.laws.engine.pools import as_records
from dokimos.laws.models.estimators import handing
from dokimos.laws.models.objects import object_model
from tests.laws.toy import run


def people(count: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, count),
            "income": rng.uniform(0, 9, count).round(2),
            "city": rng.choice(["Athens", "Bern", "Cairo"], count),
            "member": rng.random(count) < 0.5,
        }
    )


def granted(table: pd.DataFrame) -> Any:
    return np.where((table["income"] > 4) | (table["city"] == "Bern"), "yes", "no")


def pipeline(table: pd.DataFrame) -> Any:
    """Columns are chosen by their names: nothing but a DataFrame will do."""
    prepared = ColumnTransformer(
        [("scale", StandardScaler(), ["age", "income"]), ("one hot", OneHotEncoder(), ["city"])]
    )
    return make_pipeline(prepared, LogisticRegression(C=100.0)).fit(table, granted(table))


def of_people(**more: Any) -> Domain:
    return read_domain(SimpleNamespace(inputs=people, **more), name="people")


MOVED = 'input x1; requires x1.city != "Bern"; var x2 := x1[city := "Bern"];'


@pytest.mark.no_cover
def test_a_pipeline_fitted_on_a_dataframe_is_tested_on_its_columns() -> None:
    result = run(f"{MOVED} ENSURES d1 == d2", model=pipeline(people()), of=of_people())
    table = people()[people()["city"] != "Bern"]
    before = pipeline(people()).predict(table)
    after = pipeline(people()).predict(table.assign(city="Bern"))
    assert (result.failed, result.tested) == (0, len(table))
    assert result.violated == int((before != after).sum()) > 0
    assert "city 'Bern' instead of " in result.violations[0].words


@pytest.mark.no_cover
def test_declared_features_serve_as_well_in_any_order() -> None:
    features = [category("city", "Athens", "Bern", "Cairo"), flag("member"), real("income"), integer("age")]
    declared = of_people(FEATURES=features)
    model = pipeline(people())
    inferred = run(f"{MOVED} ENSURES d1 == d2", model=model, of=of_people())
    found = run(f"{MOVED} ENSURES d1 == d2", model=model, of=declared)
    assert found.violated == inferred.violated and found.failed == 0


def test_a_one_hot_choice_is_handed_over_as_its_string() -> None:
    features = [integer("age"), real("income"), choice("city", "Athens", "Bern", "Cairo")]
    of_choices = of_people(FEATURES=features)
    table = people()[["age", "income", "city"]]
    model = object_model(pipeline(table), of_choices, name="m")
    rows = as_records(people(), of_choices.layout, "inputs()")
    assert rows.shape == (60, 5)
    assert model.predict(rows).tolist() == pipeline(table).predict(table).tolist()


def test_columns_of_trees_are_found_by_name_not_by_place() -> None:
    table = people()[["income", "age"]]
    tree = DecisionTreeClassifier(max_depth=3).fit(table, granted(people()))
    turned = read_domain(SimpleNamespace(FEATURES=[integer("age"), real("income")]), name="people")
    rows = table[["age", "income"]].to_numpy()
    assert object_model(tree, turned, name="m").predict(rows).tolist() == tree.predict(table).tolist()


def test_a_dataframe_comes_back_as_it_was() -> None:
    table = people().astype({"city": "category", "age": "int32", "member": "bool"})
    found = with_table(read_domain(SimpleNamespace(inputs=lambda: table), name="people"))
    assert found.layout is not None
    rows = as_records(table, found.layout, "inputs()")
    again = handing(SimpleNamespace(), found, name="m")(rows)
    pd.testing.assert_frame_equal(again, table)
    rows[0, 0] = 18.5  # what no integer holds is not rounded away
    rows[1, 2] = "Delhi"
    changed = handing(SimpleNamespace(), found, name="m")(rows)
    assert changed["age"].iloc[0] == 18.5 and changed["city"].iloc[1] == "Delhi"


def test_missing_values_come_back_as_missing() -> None:
    table = pd.DataFrame({"age": [1.0, np.nan], "city": ["Bern", None], "n": pd.array([1, None], "Int64")})
    found = with_table(read_domain(SimpleNamespace(inputs=lambda: table), name="people"))
    rows = as_records(table, found.layout, "inputs()")
    again = handing(SimpleNamespace(), found, name="m")(rows)
    assert again.isna().to_numpy().tolist() == [[False] * 3, [True] * 3]
    assert again["n"].dtype == "Int64"
    assert run("input x1; { } ensures score(x1, 0) == 1;", model=_counting, of=found).failed == 0


class _counting:  # noqa: N801
    """A model that needs no fitting, and a DataFrame."""

    @staticmethod
    def predict(table: Any) -> Any:
        return np.ones(len(table.columns.tolist() and table))


CITIES = ("Athens", "Bern", "Cairo")


@pytest.mark.no_cover
@pytest.mark.parametrize("city", [None, category("city", *CITIES), choice("city", *CITIES, none=True)])
def test_a_missing_string_is_the_same_alone_and_in_a_batch(city: Feature | None) -> None:
    table = people().drop(columns="member")
    model = pipeline(table.assign(city=table["city"].where(table.index % 3 > 0, np.nan)))
    missing = table.assign(city=table["city"].where(table.index % 2 > 0, np.nan))
    if city is None:
        found = with_table(read_domain(SimpleNamespace(inputs=lambda: missing), name="people"))
    else:
        features = [integer("age"), real("income"), city]
        found = read_domain(SimpleNamespace(FEATURES=features), name="people")
    rows = as_records(missing, found.layout, "inputs()")
    of_model = object_model(model, found, name="m")
    alone = [of_model.predict(rows[i : i + 1])[0] for i in range(len(rows))]
    assert of_model.predict(rows).tolist() == alone == model.predict(missing).tolist()
    handed = handing(model, found, name="m")
    assert np.isnan(handed(rows[:1])["city"].iloc[0])


def test_features_of_a_dataframe() -> None:
    shown = [(each.name, each.kind.value, each.low, each.values) for each in features_of(people())]
    lowest = float(people()["income"].min())
    assert shown == [
        ("age", "integer", int(people()["age"].min()), ()),
        ("income", "real", lowest, ()),
        ("city", "category", None, ("Athens", "Bern", "Cairo")),
        ("member", "integer", 0, ()),
    ]
    with pytest.raises(InputError, match="The column day holds datetime64"):
        features_of(pd.DataFrame({"day": pd.to_datetime(["2026-01-01"])}))
    with pytest.raises(InputError, match="neither a number nor a string"):
        features_of(pd.DataFrame({"odd": [("a",), ("b",)]}))


def test_a_column_that_no_feature_has_is_said_before_anything_runs() -> None:
    lacking = read_domain(SimpleNamespace(FEATURES=[integer("age"), real("incomes")]), name="people")
    with pytest.raises(
        InputError, match=r"fitted on the column income, but no feature has that name \(did you"
    ):
        object_model(pipeline(people()), lacking, name="m")
    lacking = of_people(FEATURES=[integer("ages")])
    with pytest.raises(InputError, match="has no column ages, which FEATURES names"):
        run("input x1; { } ensures score(x1, 0) == 0;", model=_counting, of=lacking)


def test_columns_that_a_pipeline_leaves_out_need_no_feature() -> None:
    features = [integer("age"), real("income"), category("city")]
    model = object_model(pipeline(people()), of_people(FEATURES=features), name="m")
    rows = as_records(people(), of_people(FEATURES=features).layout, "inputs()")
    assert model.predict(rows).tolist() == pipeline(people()).predict(people()).tolist()


def test_ranges_draw_from_categories() -> None:
    result = run(f"{MOVED} ENSURES d1 == d2", model=pipeline(people()), of=of_people(), source="range")
    assert result.tested == 5000 and result.failed == 0 and result.violated
