"""Retrieval indexes of a version: vectors, lexical, adjacency, mapped rows."""
