"""Linear models, perceptrons and torch modules as networks: laws on them are decided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    RidgeClassifier,
    SGDClassifier,
    SGDOneClassSVM,
    TweedieRegressor,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PowerTransformer, StandardScaler
from sklearn.svm import SVC

from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.pools import data_of
from dokimos.laws.models.lookup import as_domain_model
from dokimos.laws.proving.network_closing import NetworkReach
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.verifying import verify_law
from tests.laws.toy import law

pytestmark = pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
MORE = "input x1; var v := randInt(x1.income, 60); var x2 := x1[income := v]; ENSURES d1 <= d2"


def _frame() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(5)
    rows = 300
    frame = pd.DataFrame(
        {
            "income": rng.integers(0, 60, rows),
            "age": rng.uniform(18, 90, rows).round(1),
            "job": rng.choice(["baker", "judge", "nurse"], rows),
        }
    )
    target = frame.income / 30 + (frame.job == "judge") - frame.age / 80 + rng.normal(size=rows) / 3
    return frame, (target > target.median()).astype(int)


def _models() -> dict[str, Any]:
    columns = make_column_transformer(
        (StandardScaler(), ["income"]), (MinMaxScaler(), ["age"]), (OneHotEncoder(), ["job"])
    )
    return {
        "logistic": make_pipeline(columns, LogisticRegression()),
        "ridge": make_pipeline(columns, RidgeClassifier()),
        "three": make_pipeline(columns, SGDClassifier(random_state=0)),
        "perceptron": make_pipeline(
            columns, MLPClassifier((6,), solver="lbfgs", max_iter=200, random_state=0)
        ),
    }


@pytest.mark.parametrize("name", _models())
def test_a_pipeline_with_a_linear_model_or_a_perceptron_is_a_network_of_records(name: str) -> None:
    frame, target = _frame()
    answers = target + (frame.income > 50) * 1 if name == "three" else target
    model = _models()[name].fit(frame, answers)
    domain = replace(Domain.from_frame(frame), classes=("a", "b", "c")[: answers.max() + 1])
    own = as_domain_model(model, domain)
    assert isinstance(own.made_of, bytes), own.unread
    assert domain.layout is not None
    reach = NetworkReach(own.made_of, domain.layout, name="m")
    rows = data_of(domain)
    scores = reach.scores(rows)
    theirs = model.decision_function(frame) if hasattr(model, "decision_function") else None
    if theirs is not None:
        margins = scores[:, 1] - scores[:, 0] if theirs.ndim == 1 else scores
        assert np.allclose(margins, theirs, atol=1e-4)
    assert (scores.argmax(axis=1) == model.predict(frame)).mean() > 0.99
    found = verify_law(law(MORE), model=model, domain=domain, settings=VerifySettings(seconds=20))
    if name in ("logistic", "ridge"):
        assert found.answer is LawAnswer.PROVEN
    less = law(MORE.replace("<=", ">="))
    assert verify_law(less, model=model, domain=domain).answer is LawAnswer.VIOLATED


def test_a_linear_model_of_an_array_is_read_by_place() -> None:
    frame, target = _frame()
    rows = frame[["income", "age"]].to_numpy()
    model = LogisticRegression(max_iter=500).fit(rows, target)
    domain = replace(Domain.from_frame(rows), classes=("no", "yes"))
    more = MORE.replace("income", "f0")
    assert verify_law(law(more), model=model, domain=domain).answer is LawAnswer.PROVEN


def test_a_torch_module_is_read_as_torch_exports_it() -> None:
    torch = pytest.importorskip("torch")
    frame, _ = _frame()
    domain = replace(Domain.from_frame(frame[["income", "age"]]), classes=("no", "yes"))

    class Module(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(2, 4), torch.nn.Linear(4, 2)

        def forward(self, x: Any) -> Any:
            return self.second(torch.relu(self.first(x)))

    torch.manual_seed(0)
    own = as_domain_model(Module(), domain)
    assert isinstance(own.made_of, bytes), own.unread
    found = verify_law(law(MORE), model=own, domain=domain, settings=VerifySettings(seconds=20))
    assert found.answer in (LawAnswer.PROVEN, LawAnswer.VIOLATED), found.reason


def test_what_is_not_read_is_said() -> None:
    frame, target = _frame()
    numbers = frame[["income", "age"]]
    domain = Domain.from_frame(numbers)
    for model, answers, said in (
        (SVC(kernel="linear"), np.arange(len(frame)) % 3, "votes between pairs"),
        (SGDOneClassSVM(), None, "not a kind of model whose inside"),
        (TweedieRegressor(power=1.5), frame.income + 1.0, "what it makes of the last layer"),
        (MLPClassifier((3,), activation="tanh", max_iter=5), target, "activation='relu'"),
        (make_pipeline(MinMaxScaler(clip=True), LogisticRegression()), target, "is not linear"),
        (make_pipeline(PowerTransformer(), LogisticRegression()), target, "a PowerTransformer in front"),
    ):
        own = as_domain_model(model.fit(numbers, answers), domain)
        assert own.made_of is None and said in own.unread


def test_classes_have_names_and_regressors_give_numbers() -> None:
    """Rising with income, and falling: of each model, one is proven and the other violated."""
    frame, target = _frame()
    numbers = frame[["income", "age"]]
    named = np.where(target, "yes", "no")
    filled = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
    perceptron = MLPRegressor(hidden_layer_sizes=3, solver="lbfgs", max_iter=500, random_state=2)
    scaled = make_pipeline(StandardScaler(), perceptron)
    of_names = '!(d1 == "yes" && d2 == "no")', '!(d1 == "no" && d2 == "yes")'
    of_numbers = "d1 <= d2 + 0.001", "d2 <= d1 + 0.001"
    for model, answers, laws in (
        (LogisticRegression(), named, of_names),
        (filled, named, of_names),
        (LinearRegression(), frame.income - 0.5 * frame.age, of_numbers),
        (make_pipeline(StandardScaler(), PoissonRegressor()), frame.income + 1.0, ("d1 <= d2", "d2 <= d1")),
        (scaled, frame.income, of_numbers),
    ):
        model.fit(numbers, answers)
        found = [
            verify_law(
                law(MORE.replace("d1 <= d2", each)),
                model=model,
                domain=Domain.from_frame(numbers),
                settings=VerifySettings(seconds=5),
            ).answer
            for each in laws
        ]
        assert found == [LawAnswer.PROVEN, LawAnswer.VIOLATED], model


def test_a_law_that_nothing_violates_holds_of_a_network_too() -> None:
    frame, target = _frame()
    rows = frame[["income", "age"]]
    model = LogisticRegression(max_iter=500).fit(rows, target)
    domain = replace(Domain.from_frame(rows), classes=("no", "yes"))
    always = law(MORE.replace("d1 <= d2", "d1 <= d2 + 1"))
    assert verify_law(always, model=model, domain=domain).answer is LawAnswer.PROVEN
