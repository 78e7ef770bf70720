"""Parts of `hornbeam bench query`."""
