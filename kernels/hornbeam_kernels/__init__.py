"""Pure array mathematics of the knowledge tree: arrays in, arrays out.

This package knows no document, model or file and never imports ``hornbeam``. Import from its modules:

==================  ==================================================================
``backend``         which array library the kernels run on, and block sizes from a memory budget
``indexing``        index and label arrays: checks, renumbering, grouping
``signals``         how much vectors, edges and relation types say about communities
``propagation``     vectors that take in their neighbours'
``representation``  entity vectors and triples → one unit row per entity
``clustering``      K-means, and clusters split until none is too large
``density``         clusters where rows lie densely (DBSCAN by cosine)
``dual_perception`` structural + semantic score φ, centres, keywords
``closeness``       how close two communities are
``merging``         mutual-best merging of communities
``refining``        entities move to the community they fit best
``tree``            levels of communities above the leaves
``communities``     all of these in their order: a graph → its tree of communities
``partition``       hierarchical Leiden, modularity, connected components
``adjacency``       triples → CSR adjacency in both directions
``ranking``         personalised PageRank, one query or a batch
``local_ranking``   personalised PageRank near a few seeds
``paths``           bounded best-first path search
``search``          nearest neighbours by inner product
``cuda_libraries``  the library calls that only a CUDA device makes
==================  ==================================================================

Everywhere: n entities, T triples, R relation types, d the embedding's dimension, m communities.
``import hornbeam_kernels`` loads nothing but the standard library; SciPy, scikit-learn, faiss and
graspologic-native are imported by the functions that call them.
"""
