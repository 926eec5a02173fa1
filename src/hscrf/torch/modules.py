"""Encoders to build taggers from: characters, words and other columns, a BiLSTM, a temporal convolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn


class CharacterConvolution(nn.Module):
    """Words from their characters: embeddings, one convolution, the maximum over the word.

    Parameters
    ----------
    characters : int
        Size of the alphabet; number 0 is padding.
    size : int, default 30
        Width of the embeddings, and of the result.
    width : int, default 3
        Characters that the convolution sees at a time.

    Examples
    --------
    >>> CharacterConvolution(50)(torch.zeros(2, 7, 12, dtype=torch.long)).shape
    torch.Size([2, 7, 30])
    """

    def __init__(self, characters: int, size: int = 30, width: int = 3) -> None:
        super().__init__()
        self.embed = nn.Embedding(characters, size, padding_idx=0)
        self.convolve = nn.Conv1d(size, size, width, padding=width // 2)

    def forward(self, characters: Any) -> torch.Tensor:
        """Return one vector for each word.

        Parameters
        ----------
        characters : tensor (B, T, C)
            Numbers of characters, 0 for padding.

        Returns
        -------
        tensor (B, T, size)
        """
        rows, width, length = characters.shape
        words, number = characters.reshape(rows * width, length).unique(dim=0, return_inverse=True)
        found = self.convolve(self.embed(words).transpose(1, 2)).amax(dim=2)  # each different word once
        return found[number].reshape(rows, width, -1)


class ColumnEmbedding(nn.Module):
    """The vector of a step from all its columns, side by side: text with characters, names, bags, numbers.

    Parameters
    ----------
    columns : dict from column to int
        Size of the vocabulary of each column of names; number 0 is padding.
    text : str, optional
        The column with words: it has wide embeddings and, if there are characters, a convolution over them.
    characters : int, default 0
        Size of the alphabet.
    bag : int, default 0
        Number of features of which each step has any number.
    numbers : int, default 0
        Number of numeric columns.
    word_size, column_size, character_size : int
        Widths of the embeddings of words, of other columns and bags, and of characters.
    dropout : float, default 0.4
        Share of the components of the vectors that are zero in a step of training, the same in all steps of a sequence.
    blank : float, default 0.3
        Share of the names and features that training leaves out, each by itself.
    gain : float, default 0.2
        Training multiplies each numeric column of a sequence by a random factor whose logarithm has this deviation.

    Attributes
    ----------
    size : int
        Width of the result.

    Notes
    -----
    Inputs are a dict of tensors, as :class:`hscrf.torch.inputs.Inputs` makes it: ``names`` (B, T, K), ``characters``
    (B, T, C), ``bag`` (B, T, M), ``numbers`` (B, T, F).

    Examples
    --------
    >>> embed = ColumnEmbedding({"word": 9}, text="word", numbers=2)
    >>> embed({"names": torch.ones(1, 4, 1, dtype=torch.long), "numbers": torch.zeros(1, 4, 2)}).shape
    torch.Size([1, 4, 52])
    """

    def __init__(
        self,
        columns: Mapping[str, int],
        text: str | None = None,
        characters: int = 0,
        bag: int = 0,
        numbers: int = 0,
        *,
        word_size: int = 50,
        column_size: int = 20,
        character_size: int = 30,
        dropout: float = 0.4,
        blank: float = 0.3,
        gain: float = 0.2,
    ) -> None:
        super().__init__()
        self.blank, self.gain = blank, gain
        widths = [word_size if column == text else column_size for column in columns]
        self.names = nn.ModuleList(
            nn.Embedding(count, width, padding_idx=0) for count, width in zip(columns.values(), widths, strict=True)
        )
        self.characters = CharacterConvolution(characters, character_size) if characters else None
        self.bag = nn.EmbeddingBag(bag, 2 * column_size, mode="sum", padding_idx=0) if bag else None
        self.dropout = nn.Dropout(dropout)
        self.size = sum(widths) + numbers
        self.size += (character_size if characters else 0) + (2 * column_size if bag else 0)

    def forward(self, inputs: Mapping[str, Any]) -> torch.Tensor:
        """Return one vector for each step.

        Parameters
        ----------
        inputs : dict of tensors
            As in the notes of the class.

        Returns
        -------
        tensor (B, T, size)
        """
        blank = self.blank if self.training else 0.0
        found = []
        if len(self.names):
            names = _blanked(inputs["names"], blank)
            found += [embed(names[..., k]) for k, embed in enumerate(self.names)]
        if self.characters is not None:
            found.append(self.characters(inputs["characters"]))
        if self.bag is not None:
            found.append(_summed(self.bag, _blanked(inputs["bag"], blank)))
        if "numbers" in inputs:
            numbers = inputs["numbers"]
            if self.training:  # people, devices and days differ in such factors
                numbers = numbers * torch.exp(self.gain * torch.randn_like(numbers[:, :1]))
            found.append(numbers)
        return _dropped(self.dropout, torch.cat(found, dim=2))


class FeatureScores(nn.Module):
    """Scores from features with a weight each, zero at first: what a linear model computes.

    Parameters
    ----------
    features : int
        Number of features; number 0 is padding.
    size : int
        Width of the scores.
    blank : float, default 0.8
        Share of the features that a step of training leaves out; the others count for more.

    Examples
    --------
    >>> FeatureScores(9, 5)(torch.ones(2, 7, 3, dtype=torch.long)).shape
    torch.Size([2, 7, 5])
    """

    def __init__(self, features: int, size: int, blank: float = 0.8) -> None:
        super().__init__()
        self.weights = nn.EmbeddingBag(features, size, mode="sum", padding_idx=0)
        self.blank = blank
        nn.init.zeros_(self.weights.weight)

    def forward(self, features: Any) -> torch.Tensor:
        """Return the scores of each step.

        Parameters
        ----------
        features : tensor (B, T, M)
            Numbers of the features of each step, 0 for padding.

        Returns
        -------
        tensor (B, T, size)
        """
        blank = self.blank if self.training else 0.0
        return _summed(self.weights, _blanked(features, blank)) / (1 - blank)


def _blanked(numbers: Any, share: float) -> torch.Tensor:
    """Numbers of names, some of them 0."""
    if share == 0:
        return numbers
    return numbers * (torch.rand(numbers.shape, device=numbers.device) >= share)


def _summed(bag: nn.EmbeddingBag, numbers: Any) -> torch.Tensor:
    """One vector for each step from the numbers (B, T, M) of its features."""
    rows, width, most = numbers.shape
    return bag(numbers.reshape(rows * width, most)).reshape(rows, width, -1)


class BiLSTM(nn.Module):
    """A bidirectional LSTM over padded sequences, with dropout after it.

    Parameters
    ----------
    size : int
        Width of the input.
    hidden : int, default 100
        Units of each direction.
    layers : int, default 1
    dropout : float, default 0.4

    Attributes
    ----------
    size : int
        Width of the result: 2 * hidden.

    Examples
    --------
    >>> BiLSTM(8, 5)(torch.zeros(2, 3, 8), torch.tensor([3, 2])).shape
    torch.Size([2, 3, 10])
    """

    def __init__(self, size: int, hidden: int = 100, layers: int = 1, dropout: float = 0.4) -> None:
        super().__init__()
        self.lstm = nn.LSTM(size, hidden, layers, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(dropout)
        self.size = 2 * hidden

    def forward(self, vectors: Any, lengths: Any) -> torch.Tensor:
        """Return one vector for each step. The padding has no influence.

        Parameters
        ----------
        vectors : tensor (B, T, F)
            Vectors of steps.
        lengths : tensor (B,)
            Number of steps of each sequence.

        Returns
        -------
        tensor (B, T, size)
        """
        steps = torch.arange(vectors.shape[1], device=vectors.device)
        last = lengths.to(vectors.device)[:, None] - 1
        back = torch.where(steps <= last, last - steps, steps)[..., None]  # (B, T, 1), reverses each sequence
        found = vectors
        for layer in range(self.lstm.num_layers):
            if layer > 0:
                found = _dropped(self.dropout, found)
            forward = self._run(found, f"l{layer}")
            backward = _gather(self._run(_gather(found, back), f"l{layer}_reverse"), back)
            found = torch.cat([forward, backward], dim=2)
        return _dropped(self.dropout, found * (steps <= last)[..., None])

    def _run(self, vectors: Any, which: str) -> torch.Tensor:
        """One direction of one layer: unlike packed sequences, a padded batch has a fused kernel on the CPU."""
        parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        start = vectors.new_zeros(1, len(vectors), self.lstm.hidden_size)
        weights = [getattr(self.lstm, f"{part}_{which}") for part in parts]
        return torch.lstm(vectors, (start, start), weights, True, 1, 0.0, self.training, False, True)[0]


def _dropped(dropout: nn.Dropout, vectors: Any) -> torch.Tensor:
    """Vectors (B, T, F) without some of their components, the same in all steps of a sequence."""
    return vectors * dropout(vectors.new_ones(len(vectors), 1, vectors.shape[2]))


def _gather(vectors: Any, steps: Any) -> torch.Tensor:
    """The vectors (B, T, F) of other steps (B, T, 1) of the same sequence."""
    return vectors.gather(1, steps.expand(-1, -1, vectors.shape[2]))


class TemporalConvolution(nn.Module):
    """Residual blocks of dilated convolutions over time, for sensors and other numbers.

    Block k sees 2 ** k steps apart, so that the result of a step depends on about 2 ** (layers + 1) steps around it.

    Parameters
    ----------
    size : int
        Width of the input.
    hidden : int, default 64
        Channels of each block.
    layers : int, default 6
    width : int, default 3
        Steps that each convolution sees, an odd number.
    dropout : float, default 0.2

    Attributes
    ----------
    size : int
        Width of the result: hidden.

    Examples
    --------
    >>> TemporalConvolution(3, 8, layers=2)(torch.zeros(2, 9, 3), torch.tensor([9, 4])).shape
    torch.Size([2, 9, 8])
    """

    def __init__(self, size: int, hidden: int = 64, layers: int = 6, width: int = 3, dropout: float = 0.2) -> None:
        super().__init__()
        if width % 2 == 0:
            raise ValueError(f"width is {width}; expected an odd number of steps")
        self.enter = nn.Conv1d(size, hidden, 1)
        dilations = [2**k for k in range(layers)]
        self.spread = nn.ModuleList(
            nn.Conv1d(hidden, hidden, width, padding=width // 2 * dilation, dilation=dilation) for dilation in dilations
        )
        self.mix = nn.ModuleList(nn.Conv1d(hidden, hidden, 1) for _ in dilations)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in dilations)
        self.dropout = nn.Dropout(dropout)
        self.size = hidden

    def forward(self, vectors: Any, lengths: Any) -> torch.Tensor:
        """Return one vector for each step. The padding has no influence.

        Parameters
        ----------
        vectors : tensor (B, T, F)
            Vectors of steps.
        lengths : tensor (B,)
            Number of steps of each sequence.

        Returns
        -------
        tensor (B, T, size)
        """
        steps = torch.arange(vectors.shape[1], device=vectors.device)
        kept = (steps < lengths.to(vectors.device)[:, None])[:, None].to(vectors.dtype)  # (B, 1, T)
        found = self.enter(vectors.transpose(1, 2)) * kept
        for spread, mix, norm in zip(self.spread, self.mix, self.norms, strict=True):
            inner = torch.relu(spread(norm(found.transpose(1, 2)).transpose(1, 2) * kept))
            dropped = self.dropout(inner.new_ones(*inner.shape[:2], 1))  # the same channels in all steps
            found = (found + mix(inner * dropped)) * kept
        return found.transpose(1, 2)


class Stack(nn.Module):
    """Modules that read sequences in context, each the vectors of the one before it.

    Parameters
    ----------
    *modules : Module
        Vectors and lengths to vectors, each with an attribute ``size``.

    Attributes
    ----------
    size : int
        Width of the result: that of the last module.

    Examples
    --------
    >>> stack = Stack(TemporalConvolution(3, 8, layers=2), BiLSTM(8, 5))
    >>> stack(torch.zeros(2, 9, 3), torch.tensor([9, 4])).shape
    torch.Size([2, 9, 10])
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        self.parts = nn.ModuleList(modules)
        self.size = modules[-1].size

    def forward(self, vectors: Any, lengths: Any) -> torch.Tensor:
        """Return one vector for each step.

        Parameters
        ----------
        vectors : tensor (B, T, F)
            Vectors of steps.
        lengths : tensor (B,)
            Number of steps of each sequence.

        Returns
        -------
        tensor (B, T, size)
        """
        for part in self.parts:
            vectors = part(vectors, lengths)
        return vectors


class Encoder(nn.Module):
    """Columns to scores: embeddings, modules that read them in context, a linear map.

    Parameters
    ----------
    embed : Module
        Inputs to vectors, with an attribute ``size``; a :class:`ColumnEmbedding`.
    context : Module
        Vectors and lengths to vectors, with an attribute ``size``; a :class:`BiLSTM`, a
        :class:`TemporalConvolution`, or a :class:`Stack` of both.
    size : int
        Width of the scores.
    features : int, default 0
        Number of features that have weights of their own, see :class:`FeatureScores`; their scores are added.

    Examples
    --------
    >>> embed = ColumnEmbedding({}, numbers=2)
    >>> encoder = Encoder(embed, TemporalConvolution(embed.size, 8), 5)
    >>> encoder({"numbers": torch.zeros(1, 4, 2)}, torch.tensor([4])).shape
    torch.Size([1, 4, 5])
    """

    def __init__(self, embed: nn.Module, context: nn.Module, size: int, features: int = 0) -> None:
        super().__init__()
        self.embed, self.context = embed, context
        self.out = nn.Linear(context.size, size)
        self.linear = FeatureScores(features, size) if features else None

    def forward(self, inputs: Mapping[str, Any], lengths: Any) -> torch.Tensor:
        """Return the scores of each step.

        Parameters
        ----------
        inputs : dict of tensors
            Input of ``embed``, and ``features`` (B, T, M) if there are any.
        lengths : tensor (B,)
            Number of steps of each sequence.

        Returns
        -------
        tensor (B, T, size)
        """
        scores = self.out(self.context(self.embed(inputs), lengths))
        return scores if self.linear is None else scores + self.linear(inputs["features"])


def pad(rows: Sequence[Any], value: int = 0) -> torch.Tensor:
    """One tensor (B, T, ...) of tensors (T, ...) with padding behind the shorter ones."""
    return nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=value)
