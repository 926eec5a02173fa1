"""Files of models, checkpoints and shards: how they are written, how they are read, and what is checked in them."""
