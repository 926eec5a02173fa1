"""Write, read and check the files of models, checkpoints and shards."""
