"""The parts of ``device_check``: what is run, how it is compared, timed and told."""
