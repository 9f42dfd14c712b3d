"""specdec-lab: what speculative decoding gains on your hardware, model and traffic.

Data moves one way: config -> session (measure) -> compare -> decide -> report -> bundle. Each stage reads the files of
the stage before it and nothing else. Measuring never judges; judging never measures.
"""

__version__ = "0.1.0"
