"""A BiLSTM tagger of chunks and parts of speech with the nested layer, written by hand.

python examples/neural/bilstm.py
"""

import torch
from torch import nn

import hscrf
import hscrf.torch

SENTENCES = ["the cat sleeps", "a dog sees the cat", "dogs bark", "the old dog sees a cat", "cats sleep"]
TAGS = ["D N V", "D N V D N", "N V", "D J N V D N", "N V"]
CHUNKS = ["NP NP VP", "NP NP VP NP NP", "NP VP", "NP NP NP VP NP NP", "NP VP"]


class Tagger(nn.Module):
    def __init__(self, topology: hscrf.Topology, n_words: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(n_words, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 16, bidirectional=True, batch_first=True)
        self.crf = hscrf.torch.CRF(topology, parts=("token", "start", "stop"))
        self.out = nn.Linear(32, self.crf.size)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.out(self.lstm(self.embed(words))[0])


def main() -> list[hscrf.Labels]:
    torch.manual_seed(0)
    X, Y = [line.split() for line in SENTENCES], []
    for chunks, tags in zip(CHUNKS, TAGS, strict=True):
        Y.append({"chunk": chunks.split(), "pos": tags.split()})
    numbers = {word: k for k, word in enumerate(sorted({word for x in X for word in x}), start=1)}
    words = nn.utils.rnn.pad_sequence([torch.tensor([numbers[w] for w in x]) for x in X], batch_first=True)
    tagger = Tagger(hscrf.learn_topology(Y), len(numbers) + 1)
    optimizer = torch.optim.Adam(tagger.parameters(), lr=0.02)
    for _ in range(40):
        loss = tagger.crf(tagger(words), Y, mask=words != 0)  # labels may be complete or partial
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return tagger.crf.decode(tagger(words), mask=words != 0)


if __name__ == "__main__":
    for labels in main():
        print(labels, end="\n\n")
