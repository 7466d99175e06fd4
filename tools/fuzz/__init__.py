"""A fuzzer of the Python face: `./run fuzz --help`."""
