"""Which laws are decided on the models that people have: some 40 of them, six laws each.

    python benchmarks/law_models.py              # one in twelve models whose libraries are installed
    python benchmarks/law_models.py --full       # all of them, a quarter of an hour
    python benchmarks/law_models.py --only hist --tests 1000000
    python benchmarks/law_models.py --seconds 60 --tests 100000
    python benchmarks/law_models.py --broken     # settings that break the monotonicity that was asked for

A law that is proven is tested with draws from the ranges as well: a violation there is a wrong proof, and
the exit code is 1. With --broken, each model is asked about in a process of its own, started after the fit.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dokimos import Domain, VerifySettings
from dokimos.laws.engine.law_results import LawSettings
from dokimos.laws.engine.law_test import test_law
from dokimos.laws.language.parser import parse_law
from dokimos.laws.proving.results import LawAnswer
from dokimos.laws.proving.verifying import verify_law

ROWS = 600
BLOCK = "output d1; output d2; { d1 = predict(x1)\n  d2 = predict(x2) }"
#: By name: the records of a law, what it ensures of classes, and of numbers.
LAWS = {
    "monotone": ("var x2 := x1[income := x1.income + randReal(0, 20)];", "d1 <= d2", "d1 <= d2"),
    "within": ("var x2 := x1[income := x1.income + randReal(0, 20)];", "d1 <= d2 + 1", "d1 <= d2 + 1"),
    "invariant": ("input y; var x2 := x1[age := y.age];", "d1 == d2", "abs(d1 - d2) <= 2"),
    "robust": ("var x2 := x1[income := x1.income + randReal(-1, 1)];", "d1 == d2", "abs(d1 - d2) <= 0.5"),
    "fair": ("var x2 := x1[sex := 1 - x1.sex];", "d1 == d2", "abs(d1 - d2) <= 0.1"),
    "bounded": ("var x2 := x1;", "d1 >= 0 && d2 <= 2", "d1 >= -30 && d2 <= 30"),
}


def data() -> tuple[pd.DataFrame, Any]:
    """Records and a number to predict."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.uniform(0, 100, ROWS).round(1),
            "age": rng.integers(18, 90, ROWS),
            "debt": (10 * rng.normal(size=ROWS)).round(2),
            "sex": rng.integers(0, 2, ROWS),
        }
    )
    target = frame.income / 25 + np.sin(frame.income / 7) / 2 + (frame.age - 50) ** 2 / 900
    return frame, target + rng.standard_t(3, size=ROWS) / 2


def models() -> dict[str, tuple[str, Callable[[], Any]]]:
    """By name, what is predicted (number, two, three) and an estimator that is not fitted."""

    def of(module: str, name: str, **options: Any) -> Callable[[], Any]:
        return lambda: getattr(importlib.import_module(module), name)(**options)

    def piped(*steps: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: importlib.import_module("sklearn.pipeline").make_pipeline(
            *(each() for each in steps)
        )

    trees, ensembles, linear = "sklearn.tree", "sklearn.ensemble", "sklearn.linear_model"
    scale = of("sklearn.preprocessing", "StandardScaler")
    light = {"verbose": -1, "num_threads": 1, "n_estimators": 60}
    cat = {"verbose": 0, "thread_count": 1, "iterations": 60, "allow_writing_files": False}
    boost = {"n_estimators": 60, "max_depth": 4, "n_jobs": 1}
    up = [1, 0, 0, 0]
    hist = "HistGradientBoostingRegressor"
    found: dict[str, tuple[str, Callable[[], Any]]] = {
        "tree two": ("two", of(trees, "DecisionTreeClassifier", max_depth=6)),
        "tree three": ("three", of(trees, "DecisionTreeClassifier", max_depth=6)),
        "tree": ("number", of(trees, "DecisionTreeRegressor", max_depth=6)),
        "forest two": ("two", of(ensembles, "RandomForestClassifier", n_estimators=20, max_depth=5)),
        "forest": ("number", of(ensembles, "RandomForestRegressor", n_estimators=20, max_depth=5)),
        "forest up": ("number", of(ensembles, "RandomForestRegressor", n_estimators=20, monotonic_cst=up)),
        "extra two": ("two", of(ensembles, "ExtraTreesClassifier", n_estimators=20, max_depth=5)),
        "extra": ("number", of(ensembles, "ExtraTreesRegressor", n_estimators=20, max_depth=5)),
        "gradient two": ("two", of(ensembles, "GradientBoostingClassifier", n_estimators=60)),
        "gradient": ("number", of(ensembles, "GradientBoostingRegressor", n_estimators=60)),
        "hist two": ("two", of(ensembles, "HistGradientBoostingClassifier", max_iter=60)),
        "hist three": ("three", of(ensembles, "HistGradientBoostingClassifier", max_iter=30)),
        "hist up": ("two", of(ensembles, "HistGradientBoostingClassifier", monotonic_cst=up)),
        "hist": ("number", of(ensembles, hist, monotonic_cst=up)),
        "hist absolute": ("number", of(ensembles, hist, loss="absolute_error", monotonic_cst=up)),
        "hist poisson": ("number", of(ensembles, hist, loss="poisson", monotonic_cst=up)),
        "ada": ("two", of(ensembles, "AdaBoostClassifier", n_estimators=30)),
        "isolation": ("none", of(ensembles, "IsolationForest", n_estimators=30)),
        "logistic": ("two", of(linear, "LogisticRegression", max_iter=2000)),
        "logistic three": ("three", of(linear, "LogisticRegression", max_iter=2000)),
        "ridge": ("two", of(linear, "RidgeClassifier")),
        "svc": ("two", of("sklearn.svm", "LinearSVC")),
        "sgd": ("two", piped(scale, of(linear, "SGDClassifier"))),
        "perceptron": (
            "two",
            piped(scale, of("sklearn.neural_network", "MLPClassifier", hidden_layer_sizes=(8,))),
        ),
        "least squares": ("number", of(linear, "LinearRegression")),
        "lasso": ("number", piped(scale, of(linear, "Lasso", alpha=0.01))),
        "poisson": ("number", piped(scale, of(linear, "PoissonRegressor"))),
        "perceptron number": (
            "number",
            piped(
                scale,
                of("sklearn.neural_network", "MLPRegressor", hidden_layer_sizes=(8,), max_iter=500),
            ),
        ),
        "scaled tree": ("two", piped(scale, of(trees, "DecisionTreeClassifier", max_depth=6))),
        "scaled hist": ("number", piped(scale, of(ensembles, hist, monotonic_cst=up))),
        "scaled forest": (
            "two",
            piped(scale, of(ensembles, "RandomForestClassifier", n_estimators=15, max_depth=5)),
        ),
        "scaled logistic": ("two", piped(scale, of(linear, "LogisticRegression"))),
        "xgb two": ("two", of("xgboost", "XGBClassifier", **boost)),
        "xgb up": ("two", of("xgboost", "XGBClassifier", monotone_constraints=tuple(up), **boost)),
        "xgb three": ("three", of("xgboost", "XGBClassifier", **boost)),
        "xgb": ("number", of("xgboost", "XGBRegressor", monotone_constraints=tuple(up), **boost)),
        "xgb absolute": ("number", of("xgboost", "XGBRegressor", objective="reg:absoluteerror", **boost)),
        "lightgbm two": ("two", of("lightgbm", "LGBMClassifier", **light)),
        "lightgbm three": ("three", of("lightgbm", "LGBMClassifier", **light)),
        "lightgbm up": ("number", of("lightgbm", "LGBMRegressor", monotone_constraints=up, **light)),
        "lightgbm quantile": ("number", of("lightgbm", "LGBMRegressor", objective="quantile", **light)),
        "lightgbm linear": ("number", of("lightgbm", "LGBMRegressor", linear_tree=True, **light)),
        "catboost two": ("two", of("catboost", "CatBoostClassifier", **cat)),
        "catboost three": ("three", of("catboost", "CatBoostClassifier", **cat)),
        "catboost up": ("number", of("catboost", "CatBoostRegressor", monotone_constraints=up, **cat)),
        "catboost quantile": (
            "number",
            of("catboost", "CatBoostRegressor", loss_function="Quantile", **cat),
        ),
    }
    return found


def fitted(name: str) -> tuple[Any, Domain]:
    """A model of the table, and the domain of its records."""
    kind, make = models()[name]
    frame, target = data()
    classes = pd.qcut(target, 3 if kind == "three" else 2, labels=False)
    answers = {"number": np.maximum(target, 0.01) if "poisson" in name else target, "none": None}.get(
        kind, classes
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(frame, answers)
    named = {"two": ("low", "high"), "three": ("low", "middle", "high")}.get(kind, ())
    return model, replace(Domain.from_frame(frame), classes=named)


def decide(names: Sequence[str], seconds: float, tests: int) -> int:
    """Print the answers, and return how many proofs a test refutes."""
    answers: Counter[str] = Counter()
    wrong = 0
    print(f"{'model':18}" + "".join(f"{law:>16}" for law in LAWS))
    for name in names:
        try:
            model, domain = fitted(name)
        except ImportError as missing:
            print(f"{name:18} {missing}")
            continue
        cells, reason = [], ""
        for law, (records, of_classes, of_numbers) in LAWS.items():
            is_class = bool(domain.classes) or name == "isolation"
            parsed = parse_law(
                f"input x1; {records} {BLOCK} ensures {of_classes if is_class else of_numbers};", name=law
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = verify_law(
                    parsed, model=model, domain=domain, settings=VerifySettings(seconds=seconds)
                )
                if found.answer is LawAnswer.PROVEN and tests:
                    settings = LawSettings(source="range", in_range=True, budget=tests, shrink=False)
                    ran = test_law(parsed, model=model, domain=domain, settings=settings)
                    wrong += bool(ran.violations)
                    answers["tests"] += ran.tested
            answers[found.answer.value] += 1
            reason = found.reason or reason
            cells.append(f"{found.answer.value} {found.seconds:.1f} s")
        print(f"{name:18}" + "".join(f"{cell:>16}" for cell in cells), flush=True)
        if reason:
            print(f"{'':18}   {reason}")
    total = sum(answers[each.value] for each in LawAnswer)
    decided = answers["proven"] + answers["violated"]
    print(
        f"decided: {decided} of {total}, {100 * decided / max(1, total):.0f} %: "
        + ", ".join(f"{answers[each.value]} {each.value}" for each in LawAnswer)
    )
    print(f"proofs that {answers['tests']:,} tests refute: {wrong}")
    return wrong


#: Settings that break the monotonicity that they are given, and healthy ones of each library.
BROKEN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "xgboost squarederror": ("xgboost", "XGBRegressor", {}),
    "xgboost quantileerror": (
        "xgboost",
        "XGBRegressor",
        {"objective": "reg:quantileerror", "quantile_alpha": 0.9},
    ),
    "xgboost absoluteerror": ("xgboost", "XGBRegressor", {"objective": "reg:absoluteerror"}),
    "hist squared_error": ("sklearn.ensemble", "HistGradientBoostingRegressor", {}),
    "hist quantile": (
        "sklearn.ensemble",
        "HistGradientBoostingRegressor",
        {"loss": "quantile", "quantile": 0.9},
    ),
    "hist absolute_error": (
        "sklearn.ensemble",
        "HistGradientBoostingRegressor",
        {"loss": "absolute_error"},
    ),
    "lightgbm": ("lightgbm", "LGBMRegressor", {"verbose": -1}),
    "lightgbm linear_tree": ("lightgbm", "LGBMRegressor", {"verbose": -1, "linear_tree": True}),
    "catboost RMSE": ("catboost", "CatBoostRegressor", {"verbose": 0, "iterations": 200}),
    "catboost RMSEWithUncertainty": (
        "catboost",
        "CatBoostRegressor",
        {"verbose": 0, "iterations": 200, "loss_function": "RMSEWithUncertainty"},
    ),
    "catboost MultiQuantile": (
        "catboost",
        "CatBoostRegressor",
        {"verbose": 0, "iterations": 200, "loss_function": "MultiQuantile:alpha=0.2,0.8"},
    ),
}
_ASK = """
import pickle, sys, time
import dokimos
found = dokimos.monotone(pickle.load(open(sys.argv[1], 'rb')), pickle.load(open(sys.argv[2], 'rb')))
print(f"{time.process_time():.1f} CPU-s")
print(found)
"""


def refute(names: Sequence[str]) -> None:
    """Fit each model, and ask a new process whether it rises with income."""
    import pickle
    import tempfile
    from pathlib import Path

    frame, target = data()
    for name in names:
        module, kind, options = BROKEN[name]
        key = "monotonic_cst" if kind.startswith("Hist") else "monotone_constraints"
        given = {"income": 1} if "Hist" in kind or "Cat" in kind or "XGB" in kind else [1, 0, 0, 0]
        more = {"allow_writing_files": False} if "Cat" in kind else {}
        try:
            made = getattr(importlib.import_module(module), kind)(**{key: given}, **options, **more)
        except ImportError as missing:
            print(f"{name:30} {missing}")
            continue
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            paths = [str(Path(folder) / each) for each in ("model.pkl", "data.pkl")]
            for path, content in zip(paths, (made.fit(frame, target), frame), strict=True):
                Path(path).write_bytes(pickle.dumps(content))
            begun = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", _ASK, *paths],
                capture_output=True,
                text=True,
                check=False,
            )
        took, _, said = done.stdout.partition("\n")
        print(
            f"{name:30} {took or done.stderr[-300:]} of {time.perf_counter() - begun:.1f} s\n    "
            + said.strip().replace("\n", "\n    "),
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds for each law")
    parser.add_argument("--tests", type=int, default=2000, help="tests of each law that is proven")
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--full", action="store_true", help="all models")
    options = parser.parse_args(arguments)
    if options.broken:
        refute([name for name in BROKEN if options.only in name])
        return
    names = [name for name in models() if options.only in name]
    chosen = names if options.full or options.only else names[::12]
    if decide(chosen, options.seconds, options.tests):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
