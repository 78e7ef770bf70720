"""The stages of a build, one module each; `hornbeam.build` runs them in order.

recipe         what results and versions depend on, as keys
scope          where an update looks
reading        documents into the ledger
forgetting     sources out of it: gone, or named by the user
extraction     the ledger's chunks through the model
graph_inputs   the ledger's documents with their results, for the tables
finished       is the version there already?
publishing     tables, communities, indexes, gates: a version
purging        what deleted documents have left, off the disk
report         what the run did
"""
