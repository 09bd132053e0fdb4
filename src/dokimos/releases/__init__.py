"""A suite ready to publish: card, checksums, metadata, results, and one archive of everything."""
