"""The studio: fix one label and the whole nested labelling follows, in a browser, without loss of work.

    session = hscrf.studio.serve(X, model=model, db="labels.sqlite")
    session.url         # open it in a browser
    session.labels()    # what people said so far
    session.stop()

From the shell: ``hscrf studio data.jsonl -m model.hscrf --db labels.sqlite``. Needs ``pip install 'hscrf[studio]'``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hscrf.studio.session import Session, serve

__all__ = ["Session", "serve"]


def __getattr__(name: str) -> Any:
    """The public names, imported when first used: the database can be opened without all the rest."""
    if name not in __all__:
        raise AttributeError(f"module 'hscrf.studio' has no attribute {name!r}")
    from hscrf.studio import session

    return getattr(session, name)
