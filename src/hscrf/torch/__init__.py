"""Neural encoders: the exact nested layer for PyTorch, and a ready tagger.

PyTorch is optional: ``pip install 'hscrf[torch]'``. ``import hscrf`` does not import it.
"""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError("hscrf.torch needs PyTorch: pip install 'hscrf[torch]'") from error

from hscrf.torch.crf import CRF, TensorMarginals
from hscrf.torch.inputs import Inputs
from hscrf.torch.modules import (
    BiLSTM,
    CharacterConvolution,
    ColumnEmbedding,
    Encoder,
    FeatureScores,
    Stack,
    TemporalConvolution,
)
from hscrf.torch.tagger import Tagger

__all__ = [
    "CRF",
    "BiLSTM",
    "CharacterConvolution",
    "ColumnEmbedding",
    "Encoder",
    "FeatureScores",
    "Inputs",
    "Stack",
    "Tagger",
    "TemporalConvolution",
    "TensorMarginals",
]
