"""The loss of a model on a data set."""
