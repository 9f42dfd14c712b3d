"""What a machine and a config need before anything expensive starts: checks that only look and never change a thing."""
