"""`RunSettings`: what the runs of a campaign may use, wherever they are asked for and wherever they run."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real

from dokimos.core.errors import InputError
from dokimos.verifiers.execution.limits import Limits

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What verifiers may use, the same for `dokimos.toml`, `run`, `gate`, the manifest and a worker.

    `timeout_seconds` is the time of each run (None: the limit that the suite gives the instance);
    `memory_bytes` and `cpu_seconds` are summed over all its processes, and `threads` is how many threads
    numerical libraries are asked to use. `jobs` runs go at a time on this machine, or, with the address
    of a scheduler in `dask`, as many as its workers have threads. Each verifier runs `repeat` times on each
    instance. Verifiers get only the environment variables on an allow-list and those that `pass_env`
    names (on a cluster, with the worker's own values). Where the system allows it, verifiers are isolated:
    without a network, and with nothing to write but their folder; `trust` runs them as they are.

    As in competitions, preparing a tool may have a limit of its own, `prepare_seconds` (None: it counts
    towards the time of the run), and a tool is ended only `grace_seconds` after the limit it was told.

    >>> dokimos.RunSettings(timeout_seconds=60, jobs=2).memory_bytes
    4000000000
    """

    timeout_seconds: float | None = None
    memory_bytes: int = 4_000_000_000
    cpu_seconds: float | None = None
    threads: int = 1
    jobs: int = 1
    repeat: int = 1
    dask: str | None = None
    pass_env: tuple[str, ...] = ()
    trust: bool = False
    prepare_seconds: float | None = None
    grace_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in (
            *("timeout_seconds", "memory_bytes", "cpu_seconds", "threads", "jobs", "repeat"),
            *("prepare_seconds", "grace_seconds"),
        ):
            value, kind = getattr(self, name), Real if name.endswith("_seconds") else Integral
            if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
                number = "number" if kind is Real else "whole number"
                raise InputError(f"dokimos.RunSettings: {name} must be a {number}, not {value!r:.60}.")
        self.limits(1.0)
        prepare = 1.0 if self.prepare_seconds is None else self.prepare_seconds
        if not (0 <= self.grace_seconds < inf and 0 < prepare < inf):
            raise InputError("The time to prepare and the grace must be positive numbers of seconds.")
        for what, count in (("jobs", self.jobs), ("repetitions", self.repeat)):
            if count < 1:
                raise InputError(f"The number of {what} must be at least 1, not {count}.")
        named: object = self.pass_env
        object.__setattr__(
            self, "pass_env", (named,) if isinstance(named, str) else tuple(dict.fromkeys(self.pass_env))
        )
        for name in self.pass_env:
            if not _NAME.fullmatch(name):
                shown = name.partition("=")[0][:40]  # what follows may be a secret
                raise InputError(
                    f"`pass_env` takes the name of a variable without a value; {shown!r} is not one."
                )

    @property
    def own_timeouts(self) -> bool:
        """Whether each instance has the time limit that its suite gives it."""
        return self.timeout_seconds is None

    def limits(self, own_seconds: float) -> Limits:
        """The limits of a run on an instance to which its suite gives `own_seconds`."""
        return Limits(
            wall_seconds=own_seconds if self.timeout_seconds is None else self.timeout_seconds,
            memory_bytes=self.memory_bytes,
            cpu_seconds=self.cpu_seconds,
            threads=self.threads,
        )

    def require_variables(self, *, where: str = "") -> None:
        """Check that the variables to pass on are set. Raises InputError if one is not."""
        for name in self.pass_env:
            if name not in os.environ:
                at = f" on {where}" if where else ""
                raise InputError(f"`pass_env` {name}: there is no such variable{at}; set it first.")
