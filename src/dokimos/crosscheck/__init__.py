"""Compares the network as Dokimos reads it with what runtimes compute; not part of the checker."""
