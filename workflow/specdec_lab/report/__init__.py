"""The report: one self-contained page, charts for slides, numbers for dashboards. Reads files, judges nothing."""
