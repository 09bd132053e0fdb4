"""Reference networks, trained here: normally, against attacks, or with bounds."""
