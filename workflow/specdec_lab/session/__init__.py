"""One server session: launch, ready, cells, stop; and the store that keeps what was measured."""
