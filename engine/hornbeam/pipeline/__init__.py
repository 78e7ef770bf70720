"""The stages of a build, one module each; `hornbeam.build` runs them in order.

recipe         what results and versions depend on, as keys
reading        documents into the ledger
extraction     the ledger's chunks through the model
graph_inputs   the ledger's documents with their results, for the tables
publishing     tables, communities, indexes, gates: a version
report         what the run did
"""
