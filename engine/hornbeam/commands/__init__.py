"""The commands beyond the main loop, one module a group. Heavy modules are imported inside the functions."""
