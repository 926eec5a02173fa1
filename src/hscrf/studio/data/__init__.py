"""What a studio stores: sequences, events, and what the events say."""
