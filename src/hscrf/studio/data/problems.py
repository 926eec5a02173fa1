"""What a request may be refused for."""

from __future__ import annotations


class Invalid(ValueError):
    """An invalid event; ``field`` is its wrong part, ``kind`` the kind of message for the page."""

    def __init__(self, words: str, field: str = "", kind: str = "invalid") -> None:
        super().__init__(words)
        self.field, self.kind = field, kind
