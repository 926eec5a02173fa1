"""The model families: chain, semi-Markov and dynamic CRF and the hierarchical HMM, on one engine.

Each model defines the topology of its labels and the blocks of weights. Inference, learning, files and tables are
those of :class:`HSCRF`. The *nested SemiCRF* needs no class: it is an HSCRF whose bottom level persists. Constructors
list all their arguments, because scikit-learn reads them from the signature.
"""

from hscrf.families.chain import ChainCRF
from hscrf.families.dynamic import DynamicCRF
from hscrf.families.factors import Pair
from hscrf.families.hhmm import HHMM
from hscrf.families.loading import load
from hscrf.families.semi import SemiCRF, semi_crf_as_hscrf

__all__ = ["HHMM", "ChainCRF", "DynamicCRF", "Pair", "SemiCRF", "load", "semi_crf_as_hscrf"]
