"""The engine: packed potentials in, log Z and expected counts out."""
