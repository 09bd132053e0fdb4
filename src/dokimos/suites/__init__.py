"""Instances, labels, certificates and the folder they live in."""

from pathlib import Path

from dokimos.core.errors import UnreadableFile


def no_suite(folder: Path) -> UnreadableFile:
    """What is said where the folder of a suite would be and is not."""
    return UnreadableFile(folder, "there is no such suite folder; make one with `dokimos generate`")
