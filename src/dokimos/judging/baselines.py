"""What was right when it was taken: the file that a gate compares answers with."""

from __future__ import annotations

import logging
import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from dokimos.campaigns.journal import Seconds
from dokimos.core import strict_json
from dokimos.core.documents import require_known_keys
from dokimos.core.errors import UnreadableFile
from dokimos.core.files import cannot_write, only_one, write_whole
from dokimos.core.typed_values import convert
from dokimos.judging.verdicts import Verdict

_log = logging.getLogger("dokimos")
SCHEMA: Literal[1] = 1


#: What is solved in more than this share of its limit is near it: the next machine may be slower.
NEAR_SHARE = 0.5


_MOST_BYTES = 64 << 20


_WHAT = "a baseline of `dokimos gate`"


RunKey = tuple[str, str, str]
"""A run by the names of its verifier, its suite and its instance."""


@dataclass(frozen=True)
class BaselineRun:
    """One run as it was when the baseline was taken; `seconds` of `limit_seconds` were used."""

    verifier: str
    suite: str
    instance: str
    verdict: Verdict
    seconds: Seconds
    limit_seconds: Seconds

    @property
    def key(self) -> RunKey:
        """Which run it is."""
        return self.verifier, self.suite, self.instance

    @property
    def is_near(self) -> bool:
        """Whether it used more than half of its time."""
        return self.seconds > NEAR_SHARE * self.limit_seconds


@dataclass(frozen=True)
class ExpectedFailure:
    """A wrong or unwitnessed answer that is expected, and why it is tolerated for now."""

    verifier: str
    suite: str
    instance: str
    reason: Annotated[str, Meta(min_length=1)]

    @property
    def key(self) -> RunKey:
        """Which run it is."""
        return self.verifier, self.suite, self.instance


@dataclass(frozen=True)
class Baseline:
    """What a gate compares answers with."""

    runs: tuple[BaselineRun, ...] = ()
    expected_failures: tuple[ExpectedFailure, ...] = ()

    @property
    def expected(self) -> dict[RunKey, str]:
        """The reasons of the expected failures."""
        return {failure.key: failure.reason for failure in self.expected_failures}


@dataclass(frozen=True)
class _Form(Baseline):
    """The file: a baseline and the number of its format."""

    schema: Literal[1] = SCHEMA


def worst_of(runs: Sequence[BaselineRun]) -> dict[RunKey, BaselineRun]:
    """One run of each: of several, one that is wrong, or else one that is not right."""
    found: dict[RunKey, BaselineRun] = {}
    for run in runs:
        before = found.get(run.key)
        if before is None or _badness(run) > _badness(before):
            found[run.key] = run
    return found


def _badness(run: BaselineRun) -> int:
    return 2 if run.verdict.is_wrong else int(not run.verdict.is_right)


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file. Raises UnreadableFile if it is not a baseline."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise UnreadableFile(
            path, "there is no baseline here; make one with `dokimos gate … --update-baseline`."
        ) from error
    except OSError as error:
        raise UnreadableFile(path, f"it cannot be read: {error.strerror}.") from error
    if len(content) > _MOST_BYTES:
        raise UnreadableFile(path, "it is too large for a baseline.")
    document = strict_json.parse(content, file=path)
    found = convert(document, _Form, file=path, what=_WHAT)
    require_known_keys(document, _Form, file=path, what=_WHAT)
    return found


def write_baseline(
    path: Path,
    runs: Sequence[BaselineRun],
    *,
    before: Baseline | None,
    instances: Mapping[str, Container[str]] | None = None,
) -> None:
    """Write a baseline of these runs, and keep the earlier runs that were not part of this gate.

    Expected failures stay unless they were run again and are right. `instances` has the names of all
    instances of some suites: runs on instances that no longer exist are dropped.
    """
    held, seen = before or Baseline(), worst_of(runs)
    known = instances or {}

    def stays(run: BaselineRun | ExpectedFailure) -> bool:
        return run.key not in seen and (run.suite not in known or run.instance in known[run.suite])

    not_right = {key for key, run in seen.items() if run.verdict is not Verdict.CORRECT}
    kept = tuple(one for one in held.expected_failures if one.key in not_right or stays(one))
    listed = [*seen.values(), *(run for run in held.runs if stays(run))]
    in_order = tuple(sorted(listed, key=lambda run: run.key))
    write_whole(path, strict_json.write(_Form(in_order, kept)), what="the baseline", durable=True)


def renew_baseline(
    path: Path, runs: Sequence[BaselineRun], *, instances: Mapping[str, Container[str]] | None = None
) -> None:
    """Write a baseline like `write_baseline`, over what it holds now.

    Another gate may have updated it since this one has read it, and none does while this one writes.
    """
    place = Path(os.path.realpath(path))
    lock = place.with_name(f".{place.name[:40]}.lock")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with only_one(lock, doing=f"updates {path}", waiting=lambda said: _log.info("%s", said)):
            before = read_baseline(path) if path.exists() else None
            write_baseline(path, runs, before=before, instances=instances)
    except OSError as error:
        raise cannot_write(path, error, what="the baseline") from error
