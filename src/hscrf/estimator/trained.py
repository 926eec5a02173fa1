"""A model from a file that only predicts: a plain predictor, without the classes that learn.

Those inherit from scikit-learn, whose import takes longer than the prediction of a small file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from hscrf.estimator.predictor import Predictor
from hscrf.files.content import Field, naming
from hscrf.files.model import OBSERVATIONS, check_found_scheme, check_model, read_scheme

LEARNERS = ("HSCRF", "ChainCRF", "SemiCRF")  # classes that predict as a plain predictor does


def predictor_of(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> Predictor | None:
    """The predictor that a model file holds, or None if only the class of the model can predict.

    The arguments of the constructor are not checked, except the scheme: the others belong to learning.
    """
    if header.get("class") not in LEARNERS:
        return None
    with naming(path, "model"):
        content = Field(header, "", arrays, {})
        model = Predictor()
        model.topology, model.n_jobs = None, 1
        model.scheme = read_scheme(content["parameters"])
        check_model(content, OBSERVATIONS)
        check_found_scheme(content, model.scheme)
        model.restore(header, arrays, {})
    return model
