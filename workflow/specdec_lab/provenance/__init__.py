"""Where numbers come from: host, packages, code, and what must never be written down (M10, E9)."""
