"""A suite made ready to be published: card, checksums, metadata, results, and one archive of it all."""
