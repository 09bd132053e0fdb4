"""The command line, as the tests of commands have it."""

from tests.cli.conftest import dokimos as run_dokimos

__all__ = ["run_dokimos"]
