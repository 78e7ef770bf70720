"""How the kernels grow with the graph: inputs, measurements, plots. See ``bench/kernels.py``."""
