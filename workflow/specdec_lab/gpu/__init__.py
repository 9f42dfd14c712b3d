"""GPUs through the driver's own library (NVML): who uses them, what they are, how they fare while a cell runs."""
