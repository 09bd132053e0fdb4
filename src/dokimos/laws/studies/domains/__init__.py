"""The domains that come with Dokimos."""
