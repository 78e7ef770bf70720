"""The stages of a build, one module each; `hornbeam.build` runs them in order.

recipe         what results and versions depend on, as keys
scope          where an update looks
reading        documents into the ledger
forgetting     sources out of it: gone, or named by the user
extraction     the ledger's chunks through the model
graph_inputs   the ledger's documents with their results, for the tables
publishing     tables, communities, indexes, gates: a version
report         what the run did
"""
