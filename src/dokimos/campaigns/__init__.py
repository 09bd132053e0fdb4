"""Campaigns: planned, recorded in a journal, and resumed."""

from pathlib import Path

from dokimos.core.errors import UnreadableFile

MANIFEST = "manifest.json"


def no_campaign(path: Path) -> UnreadableFile:
    """What is said where the manifest at `path` would be and is not."""
    return UnreadableFile(path, "there is no campaign here; start one with `dokimos run`.")
