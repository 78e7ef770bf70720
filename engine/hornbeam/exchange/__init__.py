"""Graphs in other systems' formats: read into documents with facts, written from a version's tables.

imported    what every reader gives
triples     head TAB relation TAB tail
openie      recorded open information extraction: texts with their triples
graphrag    the tables of a finished Microsoft GraphRAG index
writing     the formats that a version can be written in, one module each
"""
