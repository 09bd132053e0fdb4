"""Importing this makes what is imported later use one core; processes beside this one use the others."""

from dokimos.core.parallel import use_one_core

use_one_core()
