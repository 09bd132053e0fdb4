"""What finds proofs and points, untrusted: the checker checks every proof, and every point is replayed."""
