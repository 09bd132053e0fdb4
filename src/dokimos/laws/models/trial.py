"""Whether a library survives a file of a model: `dokimos.laws.models.trial LIBRARY FORM … < FILE`.

xgboost, lightgbm and catboost read damaged files in C++ that does not look: some end the process, some
never end. So a file of theirs is first loaded, and asked for a few predictions, in a process that has
nothing to lose. Only its survival counts; what a library does not take, it refuses here as well.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from dokimos.core.errors import UnreadableFile
from dokimos.core.one_core import THREADS

#: CPU seconds and memory beyond what the file itself takes, and for each byte of it.
_SECONDS, _SECONDS_PER_BYTE = 20, 2e-6
_MEMORY, _MEMORY_PER_BYTE = 4 << 30, 100
#: How many records are predicted, and what is in them.
_RECORDS, _VALUES = 64, (0.0, 1.0, -1.0, 1e6, -1e6, np.nan)


def lightgbm_object(package: Any, content: bytes, form: str) -> Any:
    """The Booster in a text file of lightgbm."""
    return package.Booster(model_str=content.decode())


def xgboost_object(package: Any, content: bytes, form: str) -> Any:
    """The Booster in a JSON or UBJSON file of xgboost."""
    booster = package.Booster()
    booster.load_model(bytearray(content))
    return booster


def catboost_object(package: Any, content: bytes, form: str) -> Any:
    """The classifier or regressor in a file of catboost."""
    with tempfile.NamedTemporaryFile(suffix=f".{form}") as file:
        file.write(content)
        file.flush()
        found = package.CatBoostRegressor().load_model(file.name, format=form)
        is_classifier = len(found.classes_) > 0
        return package.CatBoostClassifier().load_model(file.name, format=form) if is_classifier else found


LOADERS: Mapping[str, Callable[[Any, bytes, str], Any]] = {
    "xgboost": xgboost_object,
    "lightgbm": lightgbm_object,
    "catboost": catboost_object,
}


@cache
def expect_survival(library: str, content: bytes, form: str, *, name: str) -> None:
    """Raise UnreadableFile if the library does not survive the file; its absence is another matter."""
    is_loaded = library in sys.modules
    if getattr(sys.modules[library], "__spec__", None) is None if is_loaded else find_spec(library) is None:
        return
    limits = (int(_SECONDS + _SECONDS_PER_BYTE * len(content)), _MEMORY + _MEMORY_PER_BYTE * len(content))
    path = os.pathsep.join(each for each in sys.path if each)
    done = subprocess.run(
        [sys.executable, "-P", "-m", __name__, library, form, *map(str, limits)],
        input=content,
        env={**os.environ, "PYTHONPATH": path} | dict.fromkeys(THREADS, "1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode < 0:
        raise UnreadableFile(name, f"is damaged: {library} does not survive loading and using it.")


def main(library: str, form: str, seconds: str, memory: str) -> None:
    """Load the model on standard input, read its trees, and predict."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    with contextlib.suppress(Exception):
        _use(LOADERS[library](importlib.import_module(library), sys.stdin.buffer.read(), form))


def _use(given: Any) -> None:
    """Read the trees of a model, and predict; at the end it is given up, which some do not survive."""
    from dokimos.laws.models.objects import object_model

    count = {"xgboost": "num_features", "lightgbm": "num_feature"}.get(type(given).__module__.split(".")[0])
    columns = getattr(given, count)() if count else len(given.feature_names_)
    rows = np.random.default_rng(0).choice(_VALUES, (_RECORDS, columns))
    object_model(given, None, name="the model").predict(rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
