"""Streams: labels of a sequence that does not end, step by step, a fixed number of steps late."""

from hscrf.streaming.stream import Step, Stream

__all__ = ["Step", "Stream"]
