"""The real corpora: as many sentences, tokens, spans and types as their papers count."""

import shutil
import tarfile
from collections import Counter

import pytest
from spacy.vocab import Vocab

from spacy_psa.corpora import any_columns, bmes, cleanconll, conll, conll2000, ontonotes
from spacy_psa.corpora.treebanks import parse_sections, section_of

VOCAB = Vocab()


def read_bmes(path, _, repairs):
    return bmes.read_docs(path, VOCAB, bmes.resolve_format(path), repairs)


def read_conll2003(path, _, repairs):
    assert conll.resolve_scheme(path, "auto") == "iob1"
    return conll.read_docs(path, VOCAB, "iob1", repairs)


def read_corrected(path, _, repairs):
    """CoNLL++ and the news of 2020, both with their entities in the fourth column."""
    places = any_columns.Columns(word=0, ner=3)
    schemes = any_columns.resolve_schemes(path, places)
    return any_columns.read_docs(path, VOCAB, places, schemes, repairs)


def read_cleanconll(path, _, repairs):
    return cleanconll.read_docs(path, VOCAB, repairs)


def read_conll2000(path, member, repairs):
    return conll2000.read_docs(path, VOCAB, repairs, member)


@pytest.mark.parametrize(
    ("read", "name", "part", "counts", "types"),
    [
        (read_conll2003, "conll2003/eng.train", None, (14041, 203621, 23499, 946), 4),
        (read_conll2003, "conll2003/eng.testa", None, (3250, 51362, 5942, 216), 4),
        (read_conll2003, "conll2003/eng.testb", None, (3453, 46435, 5648, 231), 4),
        # CleanCoNLL joins sentences and splits words of CoNLL-2003.
        (read_cleanconll, "cleanconll/cleanconll.dev", None, (3233, 51383, 5966, 216), 4),
        (read_cleanconll, "cleanconll/cleanconll.test", None, (3427, 46504, 5725, 231), 4),
        (read_corrected, "conllpp/conllpp_test.txt", None, (3453, 46435, 5702, 231), 4),
        (read_corrected, "conllpp/conll2020.txt", None, (1840, 46456, 4007, 131), 4),
        (read_conll2000, "conll2000/conll2000.zip", "train.txt", (8936, 211727, 106978, 0), 11),
        # The test set lacks UCP.
        (read_conll2000, "conll2000/conll2000.zip", "test.txt", (2012, 47377, 23852, 0), 10),
        (read_bmes, "resume-ner/train.char.bmes", None, (3821, 124099, 13440, 0), 8),
        (read_bmes, "resume-ner/dev.char.bmes", None, (463, 13890, 1497, 0), 8),
        (read_bmes, "resume-ner/test.char.bmes", None, (477, 15100, 1630, 0), 8),
        (read_bmes, "weibo-ner/weiboNER_2nd_conll.train", None, (1350, 73778, 1895, 0), 8),
        (read_bmes, "weibo-ner/weiboNER_2nd_conll.dev", None, (270, 14509, 389, 0), 8),
        (read_bmes, "weibo-ner/weiboNER_2nd_conll.test", None, (270, 14842, 418, 0), 8),
    ],
)
def test_counts_equal_the_published_ones(corpora, read, name, part, counts, types):
    """Sentences, tokens, entities or chunks, and documents that -DOCSTART- numbers."""
    repairs: Counter[str] = Counter()
    sentences = tokens = spans = documents = 0
    labels = set()
    for doc in read(corpora / name, part, repairs):
        group = doc.spans["chunks"] if read is read_conll2000 else doc.ents
        sentences, tokens, spans = sentences + 1, tokens + len(doc), spans + len(group)
        labels.update(span.label_ for span in group)
        if read in (read_conll2003, read_cleanconll, read_corrected):
            documents = doc.user_data["document"]
        elif read is read_bmes:
            assert all(len(token) == 1 for token in doc)
    assert (sentences, tokens, spans, documents) == counts
    assert len(labels) == types


def test_sentences_names_and_trees_of_ontonotes_equal_the_published_ones(corpora, tmp_path):
    """The archive is unpacked, which takes seconds, and each of its parts is read once."""
    with tarfile.open(corpora / "ontonotes5/conll-2012-en.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    trees, tags, labels = Counter(), set(), set()
    for part, counts in [
        # The papers have 63 and 3 sentences more for training and development.
        ("v4/data/train", (59861, 1087332, 81654)),
        ("v4/data/development", (8525, 147669, 11062)),
        ("v4/data/test", (8262, 152728, 11257)),
        ("wsj-extra", None),  # trees alone
    ]:
        repairs: Counter[str] = Counter()
        sums: Counter[str] = Counter()
        labels.clear()
        for doc in ontonotes.read_docs(tmp_path, VOCAB, repairs, part):
            sums.update(sentences=1, tokens=len(doc), names=len(doc.ents))
            labels.update(name.label_ for name in doc.ents)
            section = section_of(doc.user_data["document"])
            if section is not None:
                trees[section] += bool(doc.spans["constituents"])
                tags.update(token.tag_ for token in doc)
        assert counts is None or (*sums.values(), len(labels)) == (*counts, 18)
        assert not repairs
    groups = ["00-01", "02-21", "22", "23", "24"]
    counted = [sum(trees[i] for i in parse_sections(group)) for group in groups]
    assert counted == [2896, 30060, 1336, 1640, 1083]
    assert len(tags) == 48
    sections = parse_sections("22-23")
    few = ontonotes.read_docs(tmp_path, VOCAB, sections=sections)
    assert sum(bool(doc.spans["constituents"]) for doc in few) == 1336 + 1640
    shutil.rmtree(tmp_path)
