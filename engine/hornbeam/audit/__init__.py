"""Is an index what it says it is? Everything recomputed from the files, nothing believed.

findings    what an audit found
files       each file of a version against its manifest
tables      the invariants, in SQL over the Parquet tables
ledger      the ledger, its segments, and whether versions and ledger hold the same documents
run         one audit, in that order
repair      derived files made again from what is intact
"""
