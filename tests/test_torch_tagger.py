"""The tagger: it learns, it stops, it reproduces, it is saved; and the shell opens what it has written."""

import json
from pathlib import Path

import numpy as np
import pytest

import hscrf
from hscrf.cli import main
from torching import require_torch

torch = require_torch()

from hscrf.errors import FileFormatError  # noqa: E402
from hscrf.torch import (  # noqa: E402
    BiLSTM,
    CharacterConvolution,
    ColumnEmbedding,
    FeatureScores,
    Inputs,
    Stack,
    Tagger,
    TemporalConvolution,
    files,
)
from hscrf.torch.training import Schedule, Trainer  # noqa: E402

SENTENCES = [["the", "cat", "sleeps"], ["dogs", "bark"], ["a", "dog", "sees", "the", "cat"]]
NESTED = [
    {"phrase": ["NP", "NP", "VP"], "tag": ["D", "N", "V"]},
    {"phrase": ["NP", "VP"], "tag": ["N", "V"]},
    {"phrase": ["NP", "NP", "VP", "NP", "NP"], "tag": ["D", "N", "V", "D", "N"]},
]
X, Y = SENTENCES * 8, NESTED * 8


@pytest.fixture(scope="module")
def model():
    return Tagger(hidden=8, epochs=25, learning_rate=0.02, random_state=0).fit(X, Y)


def test_it_learns(model):
    assert model.score(X, Y) == 1.0
    assert [y.column("tag") for y in model.predict(SENTENCES)] == [y["tag"] for y in NESTED]
    assert model.history_[0]["loss"] > model.history_[-1]["loss"]
    assert (model.best_iter_, model.stop_reason_) == (None, "25 epochs")


def test_it_answers_what_other_models_answer(model):
    found = model.predict_marginals(SENTENCES[:1])[0]
    np.testing.assert_allclose(found.state["tag"].sum(axis=1), 1.0)
    evidence = [{"tag": ["V", "?", "?"]}]
    assert model.predict(SENTENCES[:1], evidence)[0].column("tag")[0] == "V"
    assert model.predict(SENTENCES[:1], [None]) == model.predict(SENTENCES[:1])
    for loss in ("step", "segment"):
        assert [y.column("tag") for y in model.predict(SENTENCES, loss=loss)] == [y["tag"] for y in NESTED]
    with pytest.raises(ValueError, match="loss is 'word'"):
        model.predict(SENTENCES, loss="word")
    (sure,) = model.predict(SENTENCES[:1], confidence=True)
    assert sure == model.predict(SENTENCES[:1])[0]
    tags = found.state["tag"][range(3), sure.states[-1]]
    assert [segment.probability for segment in sure.confidence("tag")] == pytest.approx(tags)
    chance = model.posterior(SENTENCES[:1])[0].segment("phrase")
    for start, stop, state, probability, _ in sure.confidence("phrase"):
        assert probability == pytest.approx(chance[start, stop - start - 1, sure.topology.state("phrase", state)])
    probability = np.exp(model.log_likelihood(SENTENCES, NESTED))
    assert ((probability > 0.2) & (probability <= 1)).all()
    assert model.log_likelihood(SENTENCES[:1], [{"phrase": ["NP", "NP", "X"], "tag": ["D", "N", "V"]}])[0] == -np.inf
    assert len(model.sample(SENTENCES, 2, random_state=0)[2]) == 2
    assert model.entropy(SENTENCES)[0] >= 0
    assert hscrf.decode(model.potentials(SENTENCES)[1]).column("tag") == ["N", "V"]


def test_errors_number_the_sequences_of_the_data(model):
    """Not those of a batch, which are in the order of their lengths."""
    topology = model.topology_
    states, ends = hscrf.Labels.unknown(topology, 3).states.copy(), hscrf.Labels.unknown(topology, 3).ends.copy()
    ends[1], states[2] = [0, 0, 1], [topology.state("tag", "D"), -1, topology.state("tag", "V")]  # no phrase has both
    wrong = hscrf.Labels(topology, states, ends)
    for ask in (model.predict, model.predict_marginals, model.entropy, model.sample):
        for two in (X[:2], X[1::-1]):
            n = two.index(SENTENCES[0])
            evidence = [wrong if k == n else None for k in range(2)]
            with pytest.raises(hscrf.InfeasibleError, match=rf"^evidence\[{n}\]: no state of level 'phrase'"):
                ask(two, evidence=evidence)
    labels = [wrong if n == 6 else y for n, y in enumerate(Y)]
    with pytest.raises(hscrf.InfeasibleError, match=r"^Y\[6\]: no state of level 'phrase'"):
        Tagger(hidden=4, epochs=1, topology=topology, random_state=0).fit(X, labels)


def test_seeds_reproduce(model):
    state = torch.random.get_rng_state()
    again = Tagger(hidden=8, epochs=25, learning_rate=0.02, random_state=0).fit(X, Y)
    assert torch.equal(torch.random.get_rng_state(), state), "the caller's random numbers are left alone"
    assert again.history_[-1]["loss"] == model.history_[-1]["loss"]
    np.testing.assert_array_equal(again.log_likelihood(SENTENCES, NESTED), model.log_likelihood(SENTENCES, NESTED))
    other = Tagger(hidden=8, epochs=1, random_state=1).fit(X, Y)
    assert other.history_[0]["loss"] != model.history_[0]["loss"]


def test_files_hold_everything(model, tmp_path):
    path = tmp_path / "model.safetensors"
    model.save(path)
    twin = Tagger.load(path)
    np.testing.assert_array_equal(twin.log_likelihood(X[:3], Y[:3]), model.log_likelihood(X[:3], Y[:3]))
    assert twin.get_params()["hidden"] == 8
    assert twin.history_ == json.loads(json.dumps(model.history_))
    assert twin.topology_ == model.topology_
    again = tmp_path / "again.safetensors"
    twin.save(again)
    (header, tensors), (other, others) = files.read(path), files.read(again)
    assert header == other
    assert all(torch.equal(tensor, others[name]) for name, tensor in tensors.items())


def test_damaged_files_are_refused(model, tmp_path):
    path = tmp_path / "model.safetensors"
    model.save(path)
    content = path.read_bytes()
    damaged = [
        b"",
        content[:100],
        content[:-10],
        content.replace(b'\\"version\\": 2', b'\\"version\\": 9'),
        content.replace(b'\\"layers\\": null', b'\\"layers\\": 9999'),
        content.replace(b'\\"alphabet\\"', b'\\"alphabit\\"'),
        content.replace(b'\\"hidden\\": 8', b'\\"hidden\\": 9'),
        content.replace(b"hscrf.torch.Tagger", b"hscrf.torch.Other!"),
    ]
    for some in damaged:
        assert some != content
        path.write_bytes(some)
        with pytest.raises(FileFormatError, match=r"model\.safetensors"):
            Tagger.load(path)


def test_files_of_version_1_open(tmp_path):
    """A convolution of six blocks without a BiLSTM, written by commit 6a03b4c; it is the same when saved again."""
    model = Tagger.load(Path(__file__).parent / "files" / "tagger-1.safetensors")
    assert isinstance(model.network_.context, TemporalConvolution)
    model.save(tmp_path / "again.safetensors")
    numbers = [np.array([[1.0], [1.1], [0.9], [-1.0], [-0.8]])]
    for one in (model, Tagger.load(tmp_path / "again.safetensors")):
        found = one.log_likelihood(numbers, [{"part": ["high", "high", "high", "low", "low"]}])
        np.testing.assert_allclose(found, -0.34997022, rtol=1e-5)


def test_files_hold_the_sizes_of_the_encoder(tmp_path):
    """Options that change after fit do not change what is saved."""
    numbers, labels = [np.arange(4.0)[:, None]] * 4, [{"part": ["a", "a", "b", "b"]}] * 4
    model = Tagger(hidden=3, layers=2, epochs=1, random_state=0).fit(numbers, labels)
    model.set_params(hidden=5, layers=None)
    model.save(tmp_path / "model.safetensors")
    twin = Tagger.load(tmp_path / "model.safetensors")
    assert twin.design_ == model.design_
    assert (twin.design_.layers, twin.design_.recurrent) == (2, 6)
    np.testing.assert_array_equal(twin.log_likelihood(numbers, labels), model.log_likelihood(numbers, labels))
    for wrong, told in (
        ({"layers": 65}, "layers is 65; expected an integer from 1 to 64"),
        ({"recurrent": -1}, "recurrent is -1; expected an integer from 1 to"),
        ({"encoder": "auto"}, "expected an encoder and sizes"),
    ):
        twin.design_ = model.design_._replace(**wrong)
        twin.save(tmp_path / "model.safetensors")
        with pytest.raises(FileFormatError, match=f"is damaged: .*{told}"):
            Tagger.load(tmp_path / "model.safetensors")


def test_partial_labels_and_weights_and_development():
    partial = [{"phrase": y["phrase"], "tag": y["tag"] if n % 2 else ["?"] * len(y["tag"])} for n, y in enumerate(Y)]
    weights = np.where(np.arange(len(X)) < 20, 1.0, 0.0)
    model = Tagger(hidden=8, epochs=12, learning_rate=0.02, patience=2, random_state=0)
    with pytest.warns(UserWarning, match="sequences have a sample_weight of 0: nothing is added to the loss, but"):
        model.fit(X, partial, sample_weight=weights, development=(SENTENCES, NESTED))
    assert model.score(SENTENCES, NESTED) > 0.7
    assert model.n_iter_ < 12 or model.stop_reason_ == "12 epochs"


def test_patience_ends_training():
    model = Tagger(hidden=4, epochs=40, learning_rate=1e-9, patience=2, random_state=0)
    model.fit(X, Y, development=(SENTENCES, NESTED))
    assert model.n_iter_ <= 6 or model.best_iter_ > 1
    assert model.converged_
    if model.n_iter_ < 40:
        assert model.stop_reason_ == "no better score for 2 epochs"


def test_ctrl_c_keeps_what_was_learned(monkeypatch):
    from hscrf.torch import training

    def interrupt(entry):
        if entry["iteration"] == 2:
            raise KeyboardInterrupt
        return ""

    monkeypatch.setattr(training, "epoch_line", interrupt)
    model = Tagger(hidden=4, epochs=9, random_state=0, verbose=1).fit(X, Y)
    assert (model.stop_reason_, model.n_iter_, model.converged_) == ("interrupted", 2, False)
    assert len(model.predict(SENTENCES)) == 3


def test_numbers_are_read_by_a_convolution():
    rng = np.random.default_rng(0)
    labels = [np.repeat(rng.permutation(["low", "high"]), rng.integers(3, 7, 2)).tolist() for _ in range(24)]
    signals = [
        np.array([[1.0 if tag == "high" else -1.0] for tag in y]) + rng.normal(0, 0.3, (len(y), 1)) for y in labels
    ]
    signals[0][1, 0] = np.nan
    topology = hscrf.Topology({"part": ["high", "low"]}, max_duration={"part": None})
    model = Tagger(topology=topology, hidden=8, layers=2, epochs=40, learning_rate=0.02, random_state=0)
    model.fit(signals, labels)
    assert [type(part) for part in model.network_.context.parts] == [TemporalConvolution, BiLSTM]
    assert model.score(signals, labels) > 0.95
    with pytest.raises(ValueError, match=r"X\[0\] has 2 columns; expected 1"):
        model.predict([np.zeros((3, 2))])


def test_inputs_of_every_kind():
    pandas = pytest.importorskip("pandas")
    dicts = [[{"word": "The", "pos": "D", "size": 3.0}, {"word": "cat", "pos": None}], [{"word": "x1", "size": 1.0}]]
    inputs = Inputs().fit(dicts)
    assert inputs.text == "word"
    assert inputs.numbers == ["size"]
    assert inputs.missing == [0]
    batch = inputs.batch(inputs.encode(dicts))
    assert batch["names"].shape == (2, 2, 11)
    assert batch["numbers"].shape == (2, 2, 2)
    assert batch["lengths"].tolist() == [2, 1]
    twin = Inputs.from_json(json.loads(json.dumps(inputs.to_json())))
    for key, tensor in twin.batch(twin.encode(dicts)).items():
        assert torch.equal(tensor, batch[key])
    frames = [pandas.DataFrame({"word": ["a", None], "x": [1.0, 2.0]})]
    assert Inputs().fit(frames).columns["word"] == 4
    bags = [[["w=a", "cap"], []], [["w=b"]]]
    assert Inputs().fit(bags).sizes["bag"] == 5
    from scipy.sparse import csr_matrix

    assert Inputs().fit([csr_matrix(np.eye(3))]).numbers == ["x0", "x1", "x2"]


def test_padding_does_not_reach_the_result():
    torch.manual_seed(0)
    vectors, lengths = torch.randn(2, 6, 3), torch.tensor([6, 4])
    other = vectors.clone()
    other[1, 4:] = 99.0
    for module in (BiLSTM(3, 4), TemporalConvolution(3, 4, layers=3), Stack(TemporalConvolution(3, 4), BiLSTM(4, 5))):
        module.eval()
        torch.testing.assert_close(module(vectors, lengths)[1, :4], module(other, lengths)[1, :4])
        torch.testing.assert_close(module(vectors[1:, :4], lengths[1:])[0], module(vectors, lengths)[1, :4])


@pytest.mark.parametrize("layers", [1, 2])
def test_the_bilstm_is_that_of_torch(layers):
    """The same values and gradients as a bidirectional nn.LSTM over packed sequences."""
    torch.manual_seed(0)
    module = BiLSTM(3, 4, layers, dropout=0.0).double()
    vectors, lengths = torch.randn(3, 6, 3, dtype=torch.float64, requires_grad=True), torch.tensor([2, 6, 5])
    packed = torch.nn.utils.rnn.pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(module.lstm(packed)[0], batch_first=True)
    found = module(vectors, lengths)
    torch.testing.assert_close(found, expected)
    wanted = [vectors, *module.parameters()]
    weights = torch.randn_like(found)
    one, other = (torch.autograd.grad((out * weights).sum(), wanted) for out in (found, expected))
    torch.testing.assert_close(one, other)


def test_words_that_come_again_are_convolved_once():
    torch.manual_seed(0)
    module = CharacterConvolution(9, 5).double()
    characters = torch.randint(9, (4, 3))[torch.tensor([[0, 1, 1], [3, 0, 2]])]
    flat = module.convolve(module.embed(characters.reshape(6, 3)).transpose(1, 2)).amax(dim=2)
    seen = []
    module.convolve.register_forward_hook(lambda *given: seen.append(len(given[1][0])))
    torch.testing.assert_close(module(characters), flat.reshape(2, 3, 5))
    assert seen == [len(characters.reshape(6, 3).unique(dim=0))]


def test_the_learning_rate_falls_to_zero(monkeypatch):
    rates = []

    class Watched(Trainer):
        def _epoch(self, *given):
            rates.append(self.optimizer.param_groups[0]["lr"])
            super()._epoch(*given)
            rates.append(self.optimizer.param_groups[0]["lr"])

    monkeypatch.setattr("hscrf.torch.tagger.Trainer", Watched)
    model = Tagger(hidden=4, epochs=4, batch_size=24, learning_rate=0.1, random_state=0).fit(X, Y)
    assert rates == pytest.approx([0.1, 0.075, 0.075, 0.05, 0.05, 0.025, 0.025, 0.0])
    assert (model.n_iter_, model.converged_, model.best_iter_) == (4, True, None)


@pytest.mark.parametrize(("sequences", "size", "epochs"), [(24, 12, 250), (30, 1, 20)])
def test_small_data_have_more_epochs(sequences, size, epochs):
    schedule = Schedule(None, size, 0.1, 1, 0)
    weight = torch.nn.Linear(1, 1, bias=False)
    step = lambda which: weight(torch.ones(len(which), 1)).square().mean()  # noqa: E731
    assert len(Trainer(weight, step, None, schedule, 0).run([3] * sequences).history) == epochs


def test_the_best_epoch_is_kept():
    weight, scores = torch.nn.Linear(1, 1, bias=False), iter([(0.5, 1.0), (0.7, 2.0), (0.7, 1.5), (0.6, 0.1)])
    seen = []

    def evaluate():
        seen.append(weight.weight.item())
        return next(scores)

    step = lambda which: weight(torch.ones(1, 1)).sum()  # noqa: E731
    outcome = Trainer(weight, step, evaluate, Schedule(4, 1, 0.1, 9, 0), 0).run([3])
    assert outcome.best == 3  # the better score, then the lower loss
    assert weight.weight.item() == seen[2]


def test_words_have_columns_of_their_spelling():
    inputs = Inputs().fit([["Ulm", "ulm", "B52"]])
    assert inputs.text == "word"
    assert inputs.columns["word"] == 4  # padding, unknown, "ulm", "b00"
    assert inputs.names["word[:2]"] == {"ul": 2}  # "b0" occurs once
    assert inputs.names["word shape"] == {}
    assert inputs.encode([["ULTRA"]])[0]["names"][0, list(inputs.names).index("word[:2]")] == 2
    cased = Inputs().fit([[{"word": "a", "pos": "NN"}, {"word": "a", "pos": "nn"}]])
    assert cased.columns["pos"] == 4, "other columns keep their case"
    with pytest.raises(ValueError, match=r"X\[0\] has nothing that training had; expected the columns 'word', 'pos'$"):
        cased.encode([[{"tag": "x"}]])


def test_a_share_of_the_words_that_occur_once_is_hidden():
    inputs = Inputs().fit([["the", "cat"], ["the", "dog"]])
    inputs = Inputs.from_json(json.loads(json.dumps(inputs.to_json())))
    names = inputs.batch(inputs.encode([["the", "cat", "the", "dog"] * 500]))["names"]
    hidden = inputs.hide_rare(names, 0.3, torch.Generator().manual_seed(0))
    lost = (hidden != names)[0, :, 0]
    assert lost[1::2].float().mean() == pytest.approx(0.3, abs=0.05)
    assert (hidden[0, lost, 0] == 1).all()
    assert not lost[::2].any()
    assert torch.equal(hidden[..., 1:], names[..., 1:])  # the spelling stays


@pytest.mark.parametrize(
    "module", [BiLSTM(3, 400, dropout=0.5), ColumnEmbedding({"word": 9}, "word", word_size=400, dropout=0.5, blank=0.0)]
)
def test_all_steps_of_a_sequence_lose_the_same_components(module):
    torch.manual_seed(0)
    if isinstance(module, BiLSTM):
        found = module(torch.randn(2, 5, 3), torch.tensor([5, 5]))
    else:
        found = module({"names": torch.randint(2, 9, (2, 5, 1))})
    lost = found == 0
    assert (lost == lost[:, :1]).all()
    assert not torch.equal(lost[0], lost[1])
    assert lost.float().mean() == pytest.approx(0.5, abs=0.05)


def test_training_leaves_out_names_of_single_steps():
    torch.manual_seed(0)
    embed = ColumnEmbedding({"word": 9, "pos": 9}, "word", bag=9, dropout=0.0, blank=0.3)
    names, bag = torch.full((20, 50, 2), 3), torch.full((20, 50, 1), 3)
    word, pos, bags = embed({"names": names, "bag": bag}).split([50, 20, 40], dim=2)
    lost = torch.stack([(found == 0).all(dim=2) for found in (word, pos, bags)])
    assert lost.float().mean(dim=(1, 2)).tolist() == pytest.approx([0.3] * 3, abs=0.05)
    assert not torch.equal(lost[0], lost[1])
    assert not (embed.eval()({"names": names, "bag": bag}) == 0).any()


def test_training_scales_each_number_of_a_sequence():
    torch.manual_seed(0)
    embed, numbers = ColumnEmbedding({}, numbers=2, dropout=0.0, gain=0.3), torch.randn(500, 4, 2)
    factors = torch.log(embed({"numbers": numbers}) / numbers)
    torch.testing.assert_close(factors, factors[:, :1].expand_as(factors), rtol=0, atol=1e-4)
    assert factors[:, 0].std(dim=0).tolist() == pytest.approx([0.3, 0.3], abs=0.05)
    assert factors.mean().item() == pytest.approx(0.0, abs=0.05)
    assert torch.equal(embed.eval()({"numbers": numbers}), numbers)


def test_features_have_weights_of_their_own():
    scores = FeatureScores(5, 2, blank=0.5)
    features = torch.tensor([[[2, 4, 0], [3, 0, 0]]]).expand(4000, 2, 3)
    assert (scores(features) == 0).all(), "zero at first"
    torch.nn.init.normal_(scores.weights.weight)
    weights = scores.weights.weight
    expected = torch.stack([weights[2] + weights[4], weights[3]])
    torch.testing.assert_close(scores(features).mean(dim=0), expected, rtol=0, atol=0.1)  # what is left counts for more
    torch.testing.assert_close(scores.eval()(features)[0], expected)


def test_taggers_score_the_features_of_linear_models(model):
    inputs = model.inputs_
    assert {"word[0]=cat", "word[-1]|word[0]=the|cat", "word.suffix2=at"} <= set(inputs.features)
    assert model.network_.linear.weights.num_embeddings == inputs.n_features == len(inputs.features) + 2
    (item,) = inputs.encode([["the", "unseen"]])
    known = inputs.features
    found = {name for name, number in known.items() if number in item["features"][1]}
    assert "word[-1]=the" in found
    assert "word[0]=the" not in found
    bags = Inputs().fit([[["w=a", "cap"], ["w=a"]]])
    assert bags.features == {"w=a": 2}, "features of bags that occur twice"
    assert Inputs().fit([np.eye(3)]).n_features == 0
    two = Inputs().fit([[{"word": "a", "pos": "N"}, {"word": "a", "pos": "N"}]])
    assert "pos[-1]|pos[0]=N|N" not in two.features
    assert {"word[0]=a", "pos[0]=N"} <= set(two.features)


def test_the_most_frequent_features_are_kept():
    inputs = Inputs()
    inputs.most_features = 2
    assert inputs.fit([[["a", "b", "c"], ["a", "b", "c"], ["c", "b"]]]).features == {"b": 2, "c": 3}


TEXT = "\n\n".join(
    "\n".join(f"{w} {t} {p}" for w, t, p in zip(x, y["tag"], y["phrase"], strict=True))
    for x, y in zip(X, Y, strict=True)
)


def test_the_shell_trains_predicts_scores_and_shows(tmp_path, capsys):
    data, model, out = tmp_path / "train.txt", tmp_path / "m.safetensors", tmp_path / "out.txt"
    data.write_text(TEXT + "\n")
    fit = ["fit", str(data), "-m", str(model), "--levels", "phrase=3,tag=2", "--encoder", "bilstm"]
    assert main([*fit, "--max-iter", "12", "--dev", str(data), "--seed", "1"]) == 0
    shown = capsys.readouterr().err
    assert "epoch" in shown
    assert "weights" in shown
    assert main(["predict", str(data), "-m", str(model), "-t", "-o", str(out), "--marginals", "--k-best", "2"]) == 0
    assert main(["score", str(out), "-m", str(model)]) == 0
    assert "phrase" in capsys.readouterr().out
    assert main(["show", str(model), "--top", "3"]) == 0
    shown = capsys.readouterr().out
    assert "Tagger" in shown
    assert "encoder bilstm, hidden 100, layers 1" in shown
    assert "strongest trans weights of level phrase" in shown
    assert main([*fit, "--c2", "1"]) == 2
    assert "--c2 is not for --encoder" in capsys.readouterr().err
    assert main([*fit, "--durations", "phrase=gamma"]) == 2
    assert "--durations phrase=gamma is not for --encoder: its layer has a score for each" in capsys.readouterr().err
    assert main(["predict", str(data), "-m", str(model), "--shards", str(tmp_path / "cache"), "-o", str(tmp_path)]) == 2
    assert "holds a neural model, which reads files without --shards only" in capsys.readouterr().err


def test_the_shell_reads_tables_of_numbers(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = ["sequence,x,part"]
    for n in range(12):
        for tag in ["low"] * 4 + ["high"] * 3:
            rows.append(f"{n},{(tag == 'high') + rng.normal(0, 0.2):.3f},{tag}")
    data, model = tmp_path / "days.csv", tmp_path / "m.safetensors"
    data.write_text("\n".join(rows) + "\n")
    fit = ["fit", str(data), "-m", str(model), "--levels", "part", "--encoder", "tcn", "--max-iter", "10"]
    assert main([*fit, "--durations", "part=each"]) == 0
    assert main(["predict", str(data), "-m", str(model), "-t", "-o", str(tmp_path / "out.csv")]) == 0
    assert main(["show", str(model)]) == 0
    assert "numeric columns: x" in capsys.readouterr().out


def test_fillers_remember_unless_the_option_decides(tmp_path):
    X, Y = [["x", ",", "z"], ["y", ",", "z"]] * 8, [{"part": ["X", "O", "X"]}, {"part": ["Y", "O", "Y"]}] * 8
    assert Tagger(epochs=1, hidden=2).fit(X, Y).topology_.filler_names == {"part": ["O"]}
    assert not Tagger(epochs=1, hidden=2, fillers=None).fit(X, Y).topology_.remembers
    data, model = tmp_path / "train.txt", tmp_path / "m.safetensors"
    data.write_text("X B-X\n, O\nz B-X\n\nY B-Y\n, O\nz B-Y\n\n" * 8)
    fit = ["fit", str(data), "-m", str(model), "--levels", "part=2", "--encoder", "bilstm", "--max-iter", "1"]
    assert main(fit) == 0
    assert Tagger.load(model).topology_.remembers
    assert main([*fit, "--fillers", "none"]) == 0
    assert not Tagger.load(model).topology_.remembers
