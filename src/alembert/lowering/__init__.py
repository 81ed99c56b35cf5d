"""From programs to functions: tracing, loops over bodies, matrices over the tree, plans of several functions."""
