"""Graphs in other systems' formats: read into documents with facts, written from a version's tables.

imported    what every reader gives
triples     head TAB relation TAB tail
openie      recorded open information extraction: texts with their triples
"""
