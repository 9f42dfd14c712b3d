"""The typed records that cross a border: a file, a process, a stage. Everything else in the package builds on these."""
