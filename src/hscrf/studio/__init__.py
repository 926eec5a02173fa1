"""The studio: fix one label and the whole nested labelling follows, in a browser, with nothing ever lost.

    session = hscrf.studio.serve(X, model=model, db="labels.sqlite")
    session.url         # open it in a browser
    session.labels()    # what people said so far
    session.stop()

From the shell: ``hscrf studio data.jsonl -m model.hscrf --db labels.sqlite``. Needs ``pip install 'hscrf[studio]'``.
"""

from hscrf.studio.session import Session, serve

__all__ = ["Session", "serve"]
