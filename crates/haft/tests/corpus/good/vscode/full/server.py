"""Stands for a server; the tests only load the file that names it."""
