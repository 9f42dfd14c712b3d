"""Judging: what the measured cells show, how surely, and what follows. Reads files, never talks to a server."""
