"""The domains of the case studies, written as users write theirs."""
