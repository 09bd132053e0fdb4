"""Settings of the whole test run.

Hypothesis looks for new examples wherever a person runs the tests. Where a machine decides by them, the
examples are the same every time, so that a change is judged by what it changes.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, print_blob=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
