"""Importing this makes what is imported later use one core; processes beside this one use the others."""

from dokimos.core.threads import use_one_core

use_one_core()
