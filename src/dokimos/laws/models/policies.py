"""Policies of stable-baselines3, from the zip files that it writes."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from dokimos.core import strict_json
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.laws.models.files import warn_of_code

#: A file does not name its algorithm; a setting that only one algorithm has identifies it. Order matters.
_TELLTALES = (
    ("clip_range", "PPO"),
    ("exploration_initial_eps", "DQN"),
    ("policy_delay", "TD3"),
    ("target_entropy", "SAC"),
    ("gae_lambda", "A2C"),
)


def load_policy(path: Path) -> Any:
    """The policy in a zip file of stable-baselines3; opening it runs code. Raises InputError."""
    settings = _settings(path)
    name = next((algorithm for key, algorithm in _TELLTALES if key in settings), None)
    if name is None:
        raise UnreadableFile(
            path, "was saved by an unknown algorithm; load it in Python and give FILE.py:NAME."
        )
    try:
        import stable_baselines3
    except ImportError:
        raise InputError(f"{path}: needs the package stable-baselines3, which is not installed.") from None
    warn_of_code(path, "a policy that stable-baselines3 saved, with pickles in it")
    try:
        return getattr(stable_baselines3, name).load(path, device="cpu")
    except Exception as problem:
        raise UnreadableFile(path, f"cannot be loaded: {type(problem).__name__}: {problem}.") from None


def _settings(path: Path) -> dict[str, Any]:
    """The settings in the file that the policy was trained with."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo("data").file_size > strict_json.MOST_BYTES:
                raise zipfile.BadZipFile("too large")
            document = strict_json.parse(archive.read("data"), file=path, nan=True)
        return strict_json.convert(document, dict[str, Any], file=path, what="a policy")
    except OSError as problem:
        raise UnreadableFile(path, f"cannot be read: {problem.strerror or problem}.") from None
    except (KeyError, UnreadableFile, zipfile.BadZipFile):
        raise UnreadableFile(path, "is not a policy that stable-baselines3 saved.") from None
