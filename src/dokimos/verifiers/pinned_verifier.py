"""Verifiers that we install ourselves: one pinned environment each, tried before it counts as installed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from dokimos.verifiers.base import Finding, Verifier
from dokimos.verifiers.environments import PinnedEnvironment


class PinnedVerifier(Verifier):
    """A verifier from PyPI. An adapter names its environment, its size and a command that tries it."""

    environment: ClassVar[PinnedEnvironment]
    #: What is installed, and how much disk space it takes.
    takes: ClassVar[str]
    is_tried_out = False  # its smoke test is part of its diagnosis

    @abstractmethod
    def smoke(self) -> tuple[str, ...]:
        """The interpreter's arguments for a tiny query; exit code 0 means success."""

    def version(self) -> str | None:
        """The pinned version, once its environment is complete."""
        return self.environment.version if self.environment.is_complete else None

    def how_to_get(self) -> str:
        """The command that installs it."""
        return f"dokimos verifiers install {self.name} ({self.takes})"

    def install(self, say: Callable[[str], None]) -> None:
        """Install it into an environment of its own and answer tiny queries."""
        self.environment.build(self.smoke(), say)

    def diagnose(self) -> tuple[Finding, ...]:
        """Whether the environment is complete and as pinned, and whether the tool answers."""
        return self.environment.diagnose(self.smoke())
