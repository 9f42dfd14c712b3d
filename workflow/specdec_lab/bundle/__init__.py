"""Results that last (M36, M37): one archive with everything behind a table, its check, and two of them side by side."""
