"""Pure array mathematics of the knowledge tree: arrays in, arrays out.

This package knows no document, model or file and never imports ``hornbeam``. Import from its modules:

==================  ==================================================================
``backend``         which array library the kernels run on, and block sizes from a memory budget
``indexing``        index and label arrays: checks, renumbering, grouping
``representation``  entity vectors and triples → one unit row per entity
``clustering``      K-means, and clusters split until none is too large
``dual_perception`` structural + semantic score φ, centres, keywords
``merging``         mutual-best merging of communities
``partition``       hierarchical Leiden, modularity, connected components
``tree``            levels of communities above the leaves
``adjacency``       triples → CSR adjacency in both directions
``ranking``         personalised PageRank, one query or a batch
``paths``           bounded best-first path search
``search``          nearest neighbours by inner product
==================  ==================================================================

Everywhere: n entities, T triples, R relation types, d the embedding's dimension, m communities.
``import hornbeam_kernels`` loads nothing but the standard library; SciPy, scikit-learn, faiss and
graspologic-native are imported by the functions that call them.
"""
