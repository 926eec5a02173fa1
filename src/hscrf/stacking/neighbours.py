"""Windows: each time step together with its neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from hscrf.arrays import Floats, Ints, whole_number
from hscrf.observations.packed import Observations, Sparse, of_names
from hscrf.observations.readers import kind_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def windows(X: Sequence[Any], window: int = 5) -> list[Any]:
    """Describe each step by its own features and by those of its neighbours.

    Parameters
    ----------
    X : list of sequences
        Arrays (T, F) or DataFrames, scipy sparse matrices (T, F), or lists of feature dicts or of lists of feature
        strings.
    window : int
        The number of neighbours on each side, at least 0.

    Returns
    -------
    list of sequences
        Of the same kind and the same lengths. Rows of numbers have ``(2 * window + 1) * F`` columns, from the
        earliest neighbour to the latest. Beyond the first and the last step, numeric arrays repeat that step, sparse
        matrices are zero. Named features get their distance as a prefix, such as ``"-1:word=the"``, and have none
        beyond the ends.

    Raises
    ------
    ValueError
        If the window is not a whole number of at least 0, or X is no list of sequences.

    Examples
    --------
    >>> windows([np.array([[1.0], [2.0], [3.0]])], window=1)[0].tolist()
    [[1.0, 1.0, 2.0], [1.0, 2.0, 3.0], [2.0, 3.0, 3.0]]
    >>> windows([[["the"], ["cat"]]], window=1)
    [[['0:the', '1:cat'], ['-1:the', '0:cat']]]
    """
    whole_number(window, "window", least=0)
    kind = kind_of(X)
    if kind == "dense":
        return [_dense(x, window) for x in X]
    if kind == "matrix":
        return [sparse_windows(x.tocsr(), np.array([0, x.shape[0]]), window) for x in X]
    return [[_named(x, t, window) for t in range(len(x))] for x in X]


class Windows(BaseEstimator):
    """A scikit-learn transformer that describes each step together with its neighbours; see :func:`windows`.

    Parameters
    ----------
    window : int
        The number of neighbours on each side.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from hscrf import ChainCRF
    >>> model = make_pipeline(Windows(1), ChainCRF())
    >>> X, Y = [[["a"], ["b"], ["c"]]], [["x", "y", "y"]]
    >>> model.fit(X, Y).predict(X)[0].column()
    ['x', 'y', 'y']
    """

    def __init__(self, window: int = 5) -> None:
        self.window = window

    def fit(self, X: Any, Y: Any = None) -> Windows:
        """Check the window: there is nothing to learn.

        Parameters
        ----------
        X : list of sequences
        Y : ignored

        Returns
        -------
        self
        """
        whole_number(self.window, "window", least=0)
        return self

    def transform(self, X: Sequence[Any]) -> list[Any]:
        """Return the sequences, each step with its neighbours.

        Parameters
        ----------
        X : list of sequences

        Returns
        -------
        list of sequences
        """
        return windows(X, self.window)

    def fit_transform(self, X: Sequence[Any], Y: Any = None) -> list[Any]:
        """Return the sequences, each step with its neighbours.

        Parameters
        ----------
        X : list of sequences
        Y : ignored

        Returns
        -------
        list of sequences
        """
        return self.fit(X).transform(X)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _dense(x: Any, window: int) -> Any:
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"a sequence has {rows.ndim} axes, expected 2: (steps, features)")
    found = dense_windows(rows, np.array([0, len(rows)]), window)
    if not hasattr(x, "columns"):
        return found
    names = [f"{k}:{name}" for k in range(-window, window + 1) for name in x.columns]
    return type(x)(found, columns=names, index=x.index)


def _named(x: Sequence[Any], t: int, window: int) -> Any:
    """The features of step t and of its neighbours, named by their distance."""
    near = [(s - t, x[s]) for s in range(max(0, t - window), min(len(x), t + window + 1))]
    if isinstance(x[t], Mapping):
        return {f"{k}:{name}": value for k, step in near for name, value in step.items()}
    return [f"{k}:{name}" for k, step in near for name in step]


def dense_windows(rows: Floats, offsets: Ints, window: int) -> Floats:
    """Rows (N, F) of sequences one after the other as windows (N, (2 * window + 1) * F)."""
    sequence = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    first, last = offsets[:-1][sequence], offsets[1:][sequence] - 1
    at = np.arange(len(rows))
    near = [np.clip(at + k, first, last) for k in range(-window, window + 1)]
    return np.concatenate([rows[index] for index in near], axis=1)


def sparse_windows(matrix: csr_matrix, offsets: Ints, window: int) -> csr_matrix:
    """Rows of a CSR matrix (N, F) of sequences one after the other as windows (N, (2 * window + 1) * F)."""
    from scipy.sparse import csr_matrix, hstack

    lengths = np.diff(offsets)
    shifted = []
    for k in range(-window, window + 1):
        place = np.arange(matrix.shape[0]) - np.repeat(offsets[:-1], lengths) + k
        inside = (place >= 0) & (place < np.repeat(lengths, lengths))
        at = np.flatnonzero(inside)
        pick = csr_matrix((np.ones(at.size), (at, at + k)), shape=(matrix.shape[0],) * 2)
        shifted.append(pick @ matrix)
    return hstack(shifted, format="csr")


def window_matrix(packed: Observations, window: int) -> Floats | csr_matrix:
    """The windows of packed observations: an array of numeric columns, or a CSR matrix of named features."""
    if packed.dense is not None:
        return dense_windows(packed.dense, packed.offsets, window)
    return sparse_windows(csr_of(of_names(packed)), packed.offsets, window)


def csr_of(sparse: Sparse) -> csr_matrix:
    """Packed named features as scipy's matrix."""
    from scipy.sparse import csr_matrix

    data = sparse.data if sparse.data.size else np.ones(sparse.indices.size)
    matrix = csr_matrix((data, sparse.indices, sparse.indptr), shape=(sparse.indptr.size - 1, sparse.size))
    matrix.sum_duplicates()
    return matrix
