"""Studies: a model, a task and outputs, described by a file so that they can be repeated."""
