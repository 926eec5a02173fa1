"""The data of a studio: sequences, events, and the labels that follow from events."""
