"""Which libraries keep the monotone constraints that they take? A hunt through their settings.

monotone_libraries.py [--library NAME]... [--draws 3] [--rows 60] [--out FOLDER]

Fits models with the constraint that the prediction rises with `a`, on small data that tempts to break it,
under many settings of scikit-learn, XGBoost, LightGBM and CatBoost (those that are installed). For each
model, `dokimos.monotone` proves the constraint for every record in the ranges of the data, or finds two
records that break it. Then rows are left out and numbers made shorter, for as long as what is left breaks
the constraint by a tenth of that or more. Prints a line for each setting, and for a broken one the
counterexample and the data; FOLDER gets the data as CSV.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dokimos

COLUMNS = ("a", "b")
#: A fitted model of two features that should rise with the first.
Fit = Callable[[pd.DataFrame, pd.Series], Any]


@dataclass(frozen=True)
class Setting:
    """One way to fit with one library."""

    library: str
    words: str
    fit: Fit
    is_classifier: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a setting: how many models were proven, and the smallest data that breaks it."""

    setting: Setting
    proven: int
    open: int
    why_open: str = ""
    drop: float = 0.0
    words: str = ""
    rows: pd.DataFrame | None = None


def scikit_learn() -> Iterator[Setting]:
    """scikit-learn's settings."""
    from sklearn.ensemble import (
        ExtraTreesRegressor,
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestRegressor,
    )
    from sklearn.tree import DecisionTreeRegressor

    def of(made: Any, **given: Any) -> Fit:
        constraint = given.pop("monotonic_cst", [1, 0])
        return lambda x, y: made(monotonic_cst=constraint, random_state=0, **given).fit(x, y)

    boosted = {"min_samples_leaf": 2, "max_iter": 20}
    losses = [{"loss": name} for name in ("squared_error", "absolute_error", "poisson", "gamma")]
    losses += [{"loss": "quantile", "quantile": q} for q in (0.1, 0.5, 0.9)]
    for loss in losses:
        words = f"HistGradientBoostingRegressor({_said(loss)})"
        yield Setting("scikit-learn", words, of(HistGradientBoostingRegressor, **loss, **boosted))
    binary = of(HistGradientBoostingClassifier, **boosted)
    yield Setting("scikit-learn", "HistGradientBoostingClassifier()", binary, is_classifier=True)
    for made, more in itertools.product(
        (DecisionTreeRegressor, RandomForestRegressor, ExtraTreesRegressor),
        ({}, {"criterion": "friedman_mse"}, {"max_leaf_nodes": 6}),
    ):
        few = {} if made is DecisionTreeRegressor else {"n_estimators": 5}
        yield Setting("scikit-learn", f"{made.__name__}({_said(more)})", of(made, **more, **few))


def xgboost() -> Iterator[Setting]:
    """XGBoost's settings."""
    from xgboost import XGBClassifier, XGBRegressor

    objectives = ("squarederror", "absoluteerror", "quantileerror", "pseudohubererror", "squaredlogerror")
    methods = ({"tree_method": name} for name in ("exact", "hist", "approx"))
    grows = (
        {},
        {"grow_policy": "lossguide", "max_leaves": 6},
        {"booster": "dart"},
        {"num_parallel_tree": 3},
    )
    for objective, method, grow in itertools.product(objectives, methods, grows):
        chosen: dict[str, Any] = {"objective": f"reg:{objective}", **method, **grow}
        if method["tree_method"] == "exact" and grow:
            continue
        more = {"quantile_alpha": 0.5} if objective == "quantileerror" else {}
        yield Setting("xgboost", _said(chosen), _xgboost(XGBRegressor, {**chosen, **more}))
    chosen = {"objective": "binary:logistic"}
    yield Setting("xgboost", _said(chosen), _xgboost(XGBClassifier, chosen), is_classifier=True)


def _xgboost(made: Any, chosen: Mapping[str, Any]) -> Fit:
    return lambda x, y: made(
        n_estimators=10, max_depth=4, monotone_constraints=(1, 0), n_jobs=1, **chosen
    ).fit(x, y)


def lightgbm() -> Iterator[Setting]:
    """LightGBM's settings."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    objectives = ("regression", "regression_l1", "huber", "fair", "quantile", "mape", "poisson")
    methods = ("basic", "intermediate", "advanced")
    for objective, method in itertools.product(objectives, methods):
        chosen = {"objective": objective, "monotone_constraints_method": method}
        yield Setting("lightgbm", _said(chosen), _lightgbm(LGBMRegressor, chosen))
    for extra in (
        {"linear_tree": True},
        {"boosting_type": "dart"},
        {"boosting_type": "rf"},
        {"extra_trees": True},
    ):
        yield Setting("lightgbm", _said(extra), _lightgbm(LGBMRegressor, extra))
    yield Setting("lightgbm", "binary", _lightgbm(LGBMClassifier, {}), is_classifier=True)


def _lightgbm(made: Any, chosen: Mapping[str, Any]) -> Fit:
    more: dict[str, Any] = {"min_child_samples": 2, "min_data_in_bin": 1, "verbose": -1, "n_jobs": 1}
    if chosen.get("boosting_type") == "rf":
        more |= {"bagging_freq": 1, "bagging_fraction": 0.7}
    return lambda x, y: made(
        n_estimators=10, num_leaves=8, monotone_constraints=[1, 0], random_state=0, **more, **chosen
    ).fit(x, y)


def catboost() -> Iterator[Setting]:
    """CatBoost's settings."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    losses = ("RMSE", "MAE", "Quantile:alpha=0.5", "LogCosh", "Poisson", "Expectile:alpha=0.7")
    for loss, grow in itertools.product(losses, ("SymmetricTree", "Depthwise", "Lossguide")):
        chosen = {"loss_function": loss, "grow_policy": grow}
        yield Setting("catboost", _said(chosen), _catboost(CatBoostRegressor, chosen))
    yield Setting("catboost", "Logloss", _catboost(CatBoostClassifier, {}), is_classifier=True)


def _catboost(made: Any, chosen: Mapping[str, Any]) -> Fit:
    return lambda x, y: made(
        iterations=10,
        depth=3,
        monotone_constraints=[1, 0],
        min_data_in_leaf=1,
        random_seed=0,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        **chosen,
    ).fit(x, y)


LIBRARIES: Mapping[str, tuple[str, Callable[[], Iterator[Setting]]]] = {
    "scikit-learn": ("sklearn", scikit_learn),
    "xgboost": ("xgboost", xgboost),
    "lightgbm": ("lightgbm", lightgbm),
    "catboost": ("catboost", catboost),
}


def _said(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in given.items())


def drawn(rng: np.random.Generator, rows: int, *, is_classifier: bool) -> pd.DataFrame:
    """Small whole numbers, and a target that rises with `a` only in part."""
    a, b = rng.integers(0, 8, size=(2, rows))
    y = np.sin(1.3 * a) + 0.25 * b * rng.choice([-1, 1]) + rng.normal(scale=0.5, size=rows)
    y = (y > np.median(y)).astype(float) if is_classifier else np.round(4 * (y - y.min() + 0.25)) / 4
    return pd.DataFrame({"a": a.astype(float), "b": b.astype(float), "y": y})


def broken(setting: Setting, data: pd.DataFrame) -> tuple[str, float, str]:
    """Whether the constraint is `proven`, `violated` (by how much, and where), or why neither is known."""
    features = data[list(COLUMNS)]
    try:
        model = setting.fit(features, data["y"])
        found = dokimos.monotone(model, features, {"a": 1}, settings=dokimos.VerifySettings(seconds=5.0))
    except Exception as error:  # settings that a library, or Dokimos, does not take for this data
        return " ".join(f"{type(error).__name__}: {error}".split())[:120], 0.0, ""
    steps = [one.counterexample for one in found.features if one.counterexample is not None]
    if found.is_violated and steps:
        return "violated", max(step.before - step.after for step in steps), repr(found)
    decision = found.features[0].decision
    return "proven" if found.is_proven else decision.reason or decision.answer.value, 0.0, ""


def smallest(setting: Setting, data: pd.DataFrame, least: float) -> pd.DataFrame:
    """The data with as many rows left out, and numbers set to 0 or rounded, as the violation allows."""

    def still(candidate: pd.DataFrame) -> bool:
        answer, drop, _ = broken(setting, candidate)
        return answer == "violated" and drop >= least

    size = len(data) // 2
    while size:
        start = 0
        while start < len(data):
            left = data.drop(data.index[start : start + size])
            if len(left) and still(left):
                data = left
            else:
                start += size
        size //= 2
    for place, column in itertools.product(range(len(data)), data.columns):
        for value in (0.0, float(np.round(data.iloc[place][column]))):
            shorter = data.copy()
            shorter.iloc[place, shorter.columns.get_loc(column)] = value
            if value != data.iloc[place][column] and still(shorter):
                data = shorter
                break
    return data.sort_values(list(data.columns)).reset_index(drop=True)


def hunted(setting: Setting, *, draws: int, rows: int) -> Outcome:
    """Models on `draws` data sets; the first that breaks its constraint is made small."""
    proven, open_, why = 0, 0, ""
    for seed in range(draws):
        data = drawn(np.random.default_rng(seed), rows, is_classifier=setting.is_classifier)
        answer, drop, _ = broken(setting, data)
        if answer == "violated" and drop > 1e-6:
            small = smallest(setting, data, drop / 10)
            _, drop, words = broken(setting, small)
            return Outcome(setting, proven, open_, why, drop, words, small)
        proven += answer == "proven"
        open_ += answer != "proven"
        why = why if answer == "proven" else answer
    return Outcome(setting, proven, open_, why)


def report(found: Outcome) -> str:
    """A line, and for a broken constraint the counterexample and the data."""
    name = f"- {found.setting.words}"
    if found.rows is None:
        others = f", {found.open} not decided: {found.why_open}" if found.open else ""
        return f"{name}: {found.proven} proven{others}"
    text = f"{name}: BROKEN by {found.drop:.3g}, on {len(found.rows)} rows"
    return "\n".join([text, *found.words.splitlines()[1:], found.rows.to_csv(index=False).rstrip()])


def main(given: Sequence[str] | None = None) -> None:
    """Hunt through all settings, and print what comes of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--library", action="append", choices=list(LIBRARIES), default=None)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(given)
    warnings.simplefilter("ignore")
    for name in options.library or LIBRARIES:
        module, settings = LIBRARIES[name]
        if importlib.util.find_spec(module) is None:
            print(f"{name}: not installed")
            continue
        print(f"{name} {importlib.import_module(module).__version__}")
        for number, setting in enumerate(settings()):
            found = hunted(setting, draws=options.draws, rows=options.rows)
            print(report(found), flush=True)
            if options.out is not None and found.rows is not None:
                options.out.mkdir(parents=True, exist_ok=True)
                found.rows.to_csv(options.out / f"{name}-{number}.csv", index=False)


if __name__ == "__main__":
    main()
