"""Settings of the whole test run.

Hypothesis looks for new examples wherever a person runs the tests. Where a machine decides by them, the
examples are the same every time, so that a change is judged by what it changes.

A shell starts what it runs in the background with interrupts ignored, and all processes below inherit that:
tests of being interrupted would wait for nothing.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("ci", derandomize=True, print_blob=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
