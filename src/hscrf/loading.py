"""Load a model file of any family, or of a stacked model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hscrf.families.loading import model_of
from hscrf.files.container import read_container
from hscrf.files.model import check_kind

if TYPE_CHECKING:
    from hscrf.estimator.hscrf import HSCRF
    from hscrf.families.hhmm.model import HHMM
    from hscrf.stacking.model import StackedCRF


def load(
    path: str | os.PathLike[str],
    functions: Mapping[str, Callable[..., Any]] | None = None,
    trusted: Sequence[str] = (),
) -> HSCRF | HHMM | StackedCRF:
    """Read a model that ``save`` wrote. Nothing in the file is executed, and all of it is checked.

    A solver of your own is not in the file: a warning names it, and ``model.solver`` is the default.

    Parameters
    ----------
    path : str or path
    functions : mapping or None
        The segment functions of the model by name, if it has any.
    trusted : sequence of str
        Types that the classifiers of a stacked model may have in addition to those of scikit-learn; see
        :func:`hscrf.stacking.load`.

    Returns
    -------
    HSCRF, ChainCRF, SemiCRF, DynamicCRF, HHMM or StackedCRF

    Raises
    ------
    FileFormatError
        If the file is damaged or holds no model.
    """
    header, arrays = read_container(path)
    check_kind(path, header)
    if header.get("class") == "StackedCRF":
        from hscrf.stacking.files import opened

        return opened(path, header, arrays, functions, trusted)
    return model_of(path, header, arrays, functions or {})
