"""A domain and laws from a CSV file: they check, and they run at once on a model fitted on that file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import dokimos
from dokimos.core.errors import InputError
from dokimos.laws.domain.data_frames import read_csv_table
from dokimos.laws.domain.definition import load_domain
from dokimos.laws.domain.features import Kind
from dokimos.laws.engine.law_results import LawSettings
from dokimos.laws.models.tested_model import decision_of
from dokimos.laws.proving.results import LawAnswer
from tests.laws.models.test_data_frames import granted, people


def _written(folder: Path, table: pd.DataFrame, name: str = "people.csv") -> Path:
    table.to_csv(folder / name, index=False)
    return folder / name


def _pipeline(table: pd.DataFrame, target: str, last: Any) -> Any:
    numbers = [name for name in table if table[name].dtype.kind in "if" and name != target]
    words = [name for name in table if name not in numbers and name != target]
    parts = [("numbers", StandardScaler(), numbers), ("words", OneHotEncoder(), words)]
    return make_pipeline(ColumnTransformer(parts), last).fit(table.drop(columns=target), table[target])


def test_a_classifier_on_strings_and_truth_values(tmp_path: Path) -> None:
    data = _written(
        tmp_path, people().rename(columns={"income": "monthly income"}).assign(loan=granted(people()))
    )
    started = dokimos.init_laws(data, target="loan", out=tmp_path / "laws")
    names = [path.stem for path, _ in started.laws]
    assert names == ["fair_city", "monotone_monthly_income", "robust_age"]
    assert not any(one.is_wrong or one.problems for one in dokimos.lint_law(tmp_path / "laws"))
    model = _pipeline(pd.read_csv(data), "loan", LogisticRegression())
    tested = dokimos.test_law(tmp_path / "laws", model=model, settings=LawSettings(budget=200))
    counts = [(result.failed, result.tested, result.is_violated) for result in tested.results]
    assert counts == [(0, 60, True), (0, 200, False), (0, 180, False)]  # 60 people, each once
    words = tested.results[0].violations[0].words
    changes = ("rises from no to yes", "falls from yes to no")
    assert any(f"the predicted value of loan {change}" in words for change in changes)
    domain = load_domain(str(started.domain))
    assert domain.layout is not None and domain.labels is not None
    shown = [(each.name, each.kind, each.values) for each in domain.layout.features]
    assert shown[2:] == [("city", Kind.CHOICE, ("Athens", "Bern", "Cairo")), ("member", Kind.INTEGER, ())]
    assert sorted(set(domain.labels())) == [0, 1]
    deciding = decision_of(domain)  # a model may give names, or numbers: xgboost's classes are numbers
    assert deciding(np.array(["yes", "no"])).tolist() == deciding(np.array([1, 0])).tolist() == [1, 0]


def test_numbers_are_not_taken_for_classes_whose_names_are_numbers(tmp_path: Path) -> None:
    data = _written(tmp_path, people().assign(loan=["1", "2", "many"] * 20))
    started = dokimos.init_laws(data, target="loan", out=tmp_path / "laws")
    deciding = decision_of(load_domain(str(started.domain)))
    assert deciding(np.array(["2", "many"])).tolist() == [1, 2]
    assert deciding(np.eye(3)).tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="answers 2, which is the name of one of its CLASSES and"):
        deciding(np.array([2, 1]))


def test_what_is_decided_by_names_of_classes_is_proven_as_it_is_tested(tmp_path: Path) -> None:
    """The names of the classes are in another order than their labels, so order alone would be wrong."""
    table = people()[["income", "age"]].assign(loan=np.where(people()["income"] > 5, "a yes", "no"))
    started = dokimos.init_laws(_written(tmp_path, table), target="loan", out=tmp_path / "laws")
    text = started.domain.read_text()
    started.domain.write_text(text.replace('["a yes", "no"]', '["no", "a yes"]'))
    model = DecisionTreeClassifier(max_depth=1).fit(table[["income", "age"]], table["loan"])
    law = tmp_path / "laws" / "rises.law"
    law.write_text(dokimos.new_law("monotone", feature="income", domain=started.domain.stem))
    [proven] = dokimos.verify_law(law, model=model)
    assert proven.decision.answer is LawAnswer.PROVEN
    assert not dokimos.test_law(law, model=model).is_violated
    law.write_text(law.read_text().replace("d1 <= d2", 'd1 != "no" || d2 == "no"'))
    [refuted] = dokimos.verify_law(law, model=model)
    assert refuted.decision.answer is LawAnswer.VIOLATED and dokimos.test_law(law, model=model).is_violated
    law.write_text(law.read_text().replace('d2 == "no"', 'd2 == "yes"'))
    [linted] = dokimos.lint_law(law)
    assert "has no value" in linted.problems[0].message and "no, a yes" in linted.problems[0].message


def test_a_regressor_gets_laws_with_a_tolerance(tmp_path: Path) -> None:
    table = people().assign(price=lambda each: each["income"] * 100.5 + each["age"])
    data = _written(tmp_path, table, "2 houses.csv")
    started = dokimos.init_laws(data, target="price", out=tmp_path)
    assert started.domain.name == "data_2_houses.py"
    assert "abs(d1 - d2) <= 43" in (tmp_path / "robust_age.law").read_text()
    rising = (tmp_path / "monotone_income.law").read_text()
    assert "never lowers the prediction." in rising and "ensures d1 <= d2;" in rising
    model = _pipeline(pd.read_csv(data), "price", LinearRegression())
    tested = dokimos.test_law(tmp_path, model=model, settings=LawSettings(budget=100))
    assert [(result.failed, result.violated) for result in tested.results] == [(0, 0)] * 3


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b,y\n1,2,0\n3,1,1\n5,9,1\n", ["invariant_b", "monotone_a", "robust_b"]),
        ("sex,town,y\nf,x,1\nm,z,0\n", ["fair_sex", "fair_town"]),
        ("in,y\n1,2.5\n2,7.25\n9,8\n", ["invariant_data_in", "monotone_data_in", "robust_data_in"]),
        ("id;age;y\n1;30;0\n2;20;1\n3;50;1\n", ["invariant_age", "monotone_age", "robust_age"]),
    ],
)
def test_laws_for_other_tables(tmp_path: Path, text: str, names: list[str]) -> None:
    (tmp_path / "some.csv").write_text(text)
    started = dokimos.init_laws(tmp_path / "some.csv", target="y", out=tmp_path)
    assert [path.stem for path, _ in started.laws] == names
    assert not any(one.is_wrong for one in dokimos.lint_law(tmp_path))
    tested = dokimos.test_law(tmp_path, model=lambda record: 0, settings=LawSettings(budget=20))
    assert all(result.failed == 0 and result.tested for result in tested.results)


def test_values_that_are_missing_or_of_several_kinds(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text('\ufeffn,x,s,t,e\n1,,a,True,\n2,1e-3,NA,FALSE,\n,2.5,"b,c",,\n')
    assert read_csv_table(path).columns == {
        "n": (1, 2, None),
        "x": (None, 0.001, 2.5),
        "s": ("a", None, "b,c"),
        "t": (True, False, None),
        "e": (None, None, None),
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,y\n", "at least one more"),
        ("a,a\n1,2\n", "line 1: two columns are called a"),
        ("a,,y\n1,2,3\n", "line 1: a column has no name"),
        ("a,y\n1,2\n1\n", "line 3: 1 values, where 2 columns"),
        ('a,y\n"1,2\n', "line 2: unexpected end"),
        ("a,z\n1,2\n", r"no column y; there are a, z"),
        ("y\n1\n", "no other column than y"),
        ("a,y\n1,\n", "The column y is empty"),
    ],
)
def test_files_that_nothing_can_be_made_of(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "some.csv").write_text(text)
    with pytest.raises(InputError, match=reason):
        dokimos.init_laws(tmp_path / "some.csv", target="y", out=tmp_path / "laws")
    assert not (tmp_path / "laws").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "some.csv").write_text("a,y\n1,2\n2,3\n")
    (tmp_path / "robust_a.law").write_text("mine")
    with pytest.raises(InputError, match=r"robust_a.law: already exists"):
        dokimos.init_laws(tmp_path / "some.csv", target="y", out=tmp_path)
    assert not (tmp_path / "some.py").exists()


def test_fairness_counts_people_each_with_every_other_value(tmp_path: Path) -> None:
    """Once, a person was paired with strangers: several violations for each, and not all values tried."""
    path = tmp_path / "some.csv"
    cities = ["a", "b", "c", "a", "", "b"]
    path.write_text("city,paid,y\n" + "".join(f"{each},{k % 2},{k % 2}\n" for k, each in enumerate(cities)))
    started = dokimos.init_laws(path, target="y", out=tmp_path / "laws")
    text = started.domain.read_text()
    assert 'choice("city", "a", "b", "c", none=True)' in text and 'flag("paid")' in text
    fair = {law.stem: law for law, _ in started.laws}
    assert "x1[paid := 1 - x1.paid]" in fair["fair_paid"].read_text()

    def only_c(record: Any) -> int:
        return int(record[2] == 1)

    (tested,) = dokimos.test_law(fair["fair_city"], model=only_c).results
    assert (tested.tested, tested.violated, tested.is_exhaustive) == (6, 6, True)
    assert "with city c instead of" in tested.violations[0].words
    assert "otherwise it stays 0" in tested.violations[0].words
