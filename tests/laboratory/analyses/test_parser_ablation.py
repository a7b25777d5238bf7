"""What limits of attention at test time do to a parser (Kitaev2018 section 4)."""

import numpy
import pytest
import spacy
import torch
from spacy.training import Example

from spacy_psa.errors import InputError
from spacy_psa.laboratory.analyses.parser_ablation import (
    Setup,
    ablate,
    encoder,
    layer_sets,
    limited,
    markdown,
    record,
    setups,
)
from spacy_psa.modules.factored_transformer import FactoredTransformer
from spacy_psa.scoring.parseval_scorer import score_constituents
from tests.helpers.parsers import tree_examples

TREES = [
    "(S (NP (NN a)) (VP (NN b) (NP (NN c) (NN d))))",
    "(S (NP (NN a) (NN a)) (VP (NN b) (NP (NN c))))",
    "(S (NP (NN c) (PP (NN d) (NP (NN a)))) (VP (NN b)))",
    "(S (VP (NN b) (NP (NP (NN a)) (PP (NN d) (NP (NN c))))))",
]
SIZES = {
    "width": 16, "heads": 2, "head_width": 8, "layers": 2, "ffn_dim": 16,
    "max_length": 20, "boundaries": True,
    "attention_dropout": 0.0, "relu_dropout": 0.0, "residual_dropout": 0.0,
}  # fmt: skip


def make(**options):
    nlp = spacy.blank("en")
    encode = {"@architectures": "spacy-psa.FactoredTransformer.v1", **SIZES, **options}
    encode["feedforward"] = encode.pop("ffn_dim")
    embed = {"@architectures": "spacy-psa.WordEmbed.v1", "width": 8, "rows": 50}
    tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
    model = {"@architectures": "spacy-psa.ChartParser.v1", "hidden": 16, "tok2vec": tok2vec}
    nlp.add_pipe("constituency_parser", name="parser", config={"model": model})
    return nlp


def examples(nlp):
    return tree_examples(nlp, TREES)


def train(nlp, steps):
    spacy.util.fix_random_seed(0)
    optimizer = nlp.initialize(lambda: examples(nlp))
    optimizer.learn_rate = 0.01
    for _ in range(steps):
        nlp.update(examples(nlp), sgd=optimizer)
    return nlp


@pytest.fixture(scope="module")
def nlp():
    return train(make(), 15)


def span_scores(nlp):
    docs = [example.predicted for example in examples(nlp)]
    return numpy.concatenate(nlp.get_pipe("parser").model.predict(docs))


@pytest.mark.parametrize(
    "setup",
    [
        Setup(disable_content=(0, 1)),
        Setup(disable_position=(1,)),
        Setup(window=1, relaxed=False),
        Setup(window=1),
    ],
)
def test_a_limited_encoder_is_one_that_was_made_with_the_limit(nlp, setup):
    module = encoder(nlp)
    other = FactoredTransformer(8, **SIZES, **setup._asdict())
    other.load_state_dict(module.state_dict())
    x, lengths = torch.randn(9, 8), torch.tensor([6, 3])
    module.eval(), other.eval()
    with torch.inference_mode(), limited(module, setup):
        torch.testing.assert_close(module(x, lengths), other(x, lengths))


def test_limits_hold_within_the_context_and_for_the_whole_pipeline(nlp):
    before, module = span_scores(nlp), encoder(nlp)
    with pytest.raises(RuntimeError), limited(module, Setup((0,), (1,), 1, False)):
        assert numpy.abs(span_scores(nlp) - before).max() > 1e-3
        raise RuntimeError
    numpy.testing.assert_array_equal(span_scores(nlp), before)


def test_each_row_has_the_scores_of_the_parser_under_its_limit(nlp, monkeypatch):
    limits = [Setup(), Setup(disable_content=(0, 1)), Setup(window=1)]
    module, seen = encoder(nlp), []
    forward = module.forward
    monkeypatch.setattr(
        module,
        "forward",
        lambda *x: seen.append((module.disable_content, module.window)) or forward(*x),
    )
    rows = list(ablate(nlp, examples(nlp), limits))
    assert [row.setup for row in rows] == limits
    for row in rows:
        assert (set(row.setup.disable_content), row.setup.window) in seen
        with limited(module, row.setup):
            found = [Example(nlp(e.predicted.copy()), e.reference) for e in examples(nlp)]
        scores = score_constituents(found, spans_key="constituents")
        assert row.scores == {name: scores[f"constituents_{name}"] for name in row.scores}


def test_subsets_are_all_layers_then_the_first_and_the_last():
    assert [(s[0], s[-1]) for s in layer_sets(8)] == [
        (0, 7), (0, 1), (0, 3), (0, 5), (6, 7), (4, 7), (2, 7),
    ]  # fmt: skip
    assert layer_sets(2) == [(0, 1), (0,), (1,)]
    assert layer_sets(1) == [(0,)]


def test_default_limits_are_both_tables_or_the_windows_alone(nlp):
    found = setups(encoder(nlp), windows=(3, 4))
    assert found[0] == Setup()
    assert len(found) == len(set(found)) == 1 + 2 * 3 + 2 * 2
    plain = FactoredTransformer(8, **{**SIZES, "factored": False, "boundaries": False})
    assert setups(plain, windows=(3,)) == [
        Setup(), Setup(window=3, relaxed=False), Setup(window=3),
    ]  # fmt: skip


def test_tables_show_f1_and_the_difference_by_layers_and_windows():
    every = {"p": 0.0, "r": 0.0, "exact": 0.0}
    scores = {
        Setup(): 0.9,
        Setup(disable_content=(0, 1, 2)): 0.85,
        Setup(disable_position=(0, 1, 2)): 0.5,
        Setup(disable_position=(1,)): 0.9,
        Setup(window=5, relaxed=False): 0.8,
        Setup(window=5): 0.95,
    }
    rows = [type("Row", (), {"setup": s, "scores": {**every, "f": f}}) for s, f in scores.items()]
    lines = markdown(rows).splitlines()
    assert lines[0] == "Without limits: 90.00 F1."
    assert "| 1-3 | 85.00 (-5.00) | 50.00 (-40.00) |" in lines
    assert "| 2 |  | 90.00 (+0.00) |" in lines
    assert "| 5 | 80.00 (-10.00) | 95.00 (+5.00) |" in lines


def test_rows_for_json_name_every_limit(nlp):
    (row,) = ablate(nlp, examples(nlp), [Setup(window=2)])
    assert set(record([row])[0]) == {*Setup._fields, "p", "r", "f", "exact"}


def renamed(examples, key):
    """The examples with their gold trees in another span group."""
    for example in examples:
        example.reference.spans[key] = example.reference.spans.pop("constituents")
    return examples


def test_trees_in_another_span_group_are_scored_by_the_scorer_of_the_parser():
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    config = {"model": make().get_pipe_config("parser")["model"], "spans_key": "trees"}
    nlp.add_pipe("constituency_parser", config=config)
    optimizer = nlp.initialize(lambda: renamed(examples(nlp), "trees"))
    optimizer.learn_rate = 0.01
    for _ in range(15):
        nlp.update(renamed(examples(nlp), "trees"), sgd=optimizer)
    (row,) = ablate(nlp, renamed(examples(nlp), "trees"), [Setup()])
    assert row.scores["f"] == nlp.evaluate(renamed(examples(nlp), "trees"))["tree_f"] > 0.3


def test_an_encoder_that_the_parser_does_not_use_is_not_taken():
    nlp = make(layers=1)
    own = nlp.get_pipe_config("parser")["model"]["tok2vec"]
    embed = own["embed"]
    plain = {"@architectures": "spacy-psa.BiLSTM.v1", "hidden": 4}
    tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": plain}
    model = {"@architectures": "spacy-psa.ChartParser.v1", "hidden": 16, "tok2vec": tok2vec}
    other = spacy.blank("en")
    other.add_pipe("tok2vec", config={"model": own})
    other.add_pipe("constituency_parser", name="parser", config={"model": model})
    other.initialize(lambda: examples(other))
    with pytest.raises(InputError, match="parser: has no trained FactoredTransformer"):
        encoder(other)


def test_pipelines_and_limits_that_do_not_fit_are_refused(nlp):
    module = encoder(nlp)
    plain = FactoredTransformer(8, **{**SIZES, "factored": False})
    for encoder_module, setup, reason in [
        (module, Setup(disable_content=(2,)), "no layer 2"),
        (module, Setup(disable_position=(-1,)), "no layer -1"),
        (module, Setup(window=0), "window is 0"),
        (plain, Setup(disable_content=(0,)), "factored = true"),
    ]:
        with pytest.raises(InputError, match=reason), limited(encoder_module, setup):
            pass
    with pytest.raises(InputError, match="no trained FactoredTransformer"):
        encoder(make())
    blank = spacy.blank("en")
    blank.add_pipe("sentencizer")
    with pytest.raises(InputError, match="no constituency_parser among the components sentencizer"):
        encoder(blank)
    bare = [Example(nlp.make_doc("a b"), nlp.make_doc("a b"))]
    with pytest.raises(InputError, match="no gold trees"):
        list(ablate(nlp, bare, [Setup()]))
