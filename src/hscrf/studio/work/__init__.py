"""Work on sequences: the workspace, the queue, acceptance in bulk, training, messages to the pages."""
