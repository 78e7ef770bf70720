"""What tests of several parts share. Importable as `support` (see tests/conftest.py)."""
