"""Jackknifing: predicted parts of speech on the data that the tagger learns from.

A parser that reads predicted tags at work has to learn from predicted tags, but a tagger makes
fewer errors on sentences that it has learned from. So the sentences are dealt into folds, and the
tags of each fold are predicted by a tagger that was trained on the other folds.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import dot_to_object
from spacy.vocab import Vocab
from thinc.api import Config

from spacy_psa.corpora.docbin import check_docbin_path, read_docbin, write_docbin
from spacy_psa.errors import InputError
from spacy_psa.loading import use_device
from spacy_psa.sentences import document_batches, unannotated
from spacy_psa.training.config import initialize
from spacy_psa.training.loop import train
from spacy_psa.training.model_folders import ModelFolders


class Tagged(NamedTuple):
    """Docs with predicted tags, and how many of these are as they were."""

    docs: list[Doc]
    same: int
    tokens: int

    @property
    def share(self) -> float:
        """The share of tags that are as they were."""
        return self.same / max(self.tokens, 1)


def jackknife_files(
    path: Path,
    config: Config,
    files: Sequence[tuple[Path, Path]],
    folder: Path,
    folds: int,
    seed: int,
    tell: Callable[[str], None],
    gpu_id: int = -1,
) -> None:
    """Write files with predicted tags, by the config of a tagger; its path is for errors.

    `files` have gold tags, each with the file to write. The first is jackknifed; the others are
    tagged by a tagger that is trained on all of it. The taggers are in `folder`.
    """
    sources, targets = zip(*[(source.resolve(), target.resolve()) for source, target in files])
    for _, target in files:
        check_docbin_path(target)
        if targets.count(target.resolve()) > 1:
            raise InputError(f"{target}: would be written twice; use another file for each --to")
        if target.resolve() in sources:
            raise InputError(
                f"{target}: is also read, and its gold tags would be lost; write to another file"
            )
    use_device(gpu_id)
    docs, *others = [read_tagged(source) for source, _ in files]

    def tagger(name: str, part: Sequence[Doc], config: Config = config) -> Language:
        tell(f"{name}: {len(part):,} sentences to learn from")
        return train_tagger(path, config, part, folder / name, gpu_id)

    whole = tagger("all", docs) if others else None
    # A fold may lack a label of the development data.
    of_fold = partial(tagger, config=without_label_check(config))
    tagged = [jackknife(docs, folds, seed, of_fold, tell)]
    for part in others:
        assert whole is not None
        tagged.append(retag(whole, part))
    for (source, target), each in zip(files, tagged, strict=True):
        write_docbin(each.docs, target)
        tell(f"{source} -> {target}: {each.share:.2%} of the tags are right")


def deal(documents: Sequence[object], folds: int, seed: int) -> list[int]:
    """Deal sentences into folds, at least 2, at random; those of a document go to one fold.

    `documents` has the document of each sentence. If there are fewer documents than folds, the
    sentences are dealt one by one. The result is the fold of each sentence, from 0; none is empty.
    """
    if len(documents) < folds:
        raise InputError(
            f"{len(documents)} sentence(s) are too few for {folds} folds; use fewer --folds"
        )
    keys: Sequence[object] = documents
    if len(set(keys)) < folds:
        keys = range(len(documents))
    sizes = Counter(keys)
    order = list(sizes)
    random.Random(seed).shuffle(order)
    order.sort(key=lambda key: -sizes[key])  # the long ones first, so that folds are of one size
    filled, dealt = [0] * folds, {}
    for key in order:
        fold = filled.index(min(filled))
        dealt[key] = fold
        filled[fold] += sizes[key]
    return [dealt[key] for key in keys]


def jackknife(
    docs: Sequence[Doc],
    folds: int,
    seed: int,
    tagger: Callable[[str, Sequence[Doc]], Language],
    tell: Callable[[str], None] = lambda line: None,
) -> Tagged:
    """Replace the tags of docs, by folds, by those of taggers that have not learned from them.

    `tagger` is called with the name of a fold and the docs of the others, and returns a trained
    pipeline. `tell` is called with a line about each fold that is done.
    """
    documents = [doc.user_data.get("document", i) for i, doc in enumerate(docs)]
    dealt = deal(documents, folds, seed)
    same = 0
    predicted: list[list[str]] = [[] for _ in docs]
    for fold in range(folds):
        rest = [doc for doc, other in zip(docs, dealt) if other != fold]
        nlp = tagger(f"fold-{fold + 1}", rest)
        held_out = [i for i, other in enumerate(dealt) if other == fold]
        right = sum(len(docs[i]) for i in held_out)
        for i, tags in zip(held_out, predict_tags(nlp, [docs[i] for i in held_out])):
            predicted[i] = tags
            right -= sum(token.tag_ != tag for token, tag in zip(docs[i], tags))
        tell(f"Fold {fold + 1} of {folds}: {len(held_out):,} sentences, {right:,} tags right")
        same += right
    # Only now: the taggers of later folds learn from the gold tags.
    for doc, tags in zip(docs, predicted):
        _set_tags(doc, tags)
    return Tagged(list(docs), same, sum(map(len, docs)))


def retag(nlp: Language, docs: Sequence[Doc]) -> Tagged:
    """Replace the tags of docs by those that a pipeline predicts."""
    same = tokens = 0
    for doc, tags in zip(docs, list(predict_tags(nlp, docs))):
        same += sum(token.tag_ == tag for token, tag in zip(doc, tags))
        tokens += len(doc)
        _set_tags(doc, tags)
    return Tagged(list(docs), same, tokens)


def predict_tags(nlp: Language, docs: Sequence[Doc]) -> Iterator[list[str]]:
    """Yield the tags that a pipeline predicts for the words and sentences of each doc.

    The docs of a document go through the pipeline together.
    """
    bare = (unannotated(doc, nlp.vocab, document=True) for doc in docs)
    for batch in document_batches(bare, nlp.batch_size):
        for doc in nlp.pipe(batch, batch_size=len(batch)):
            if len(doc) and not doc.has_annotation("TAG"):
                raise InputError(
                    f"the components {', '.join(nlp.pipe_names)} predict no parts of speech; use "
                    "the config of a tagger, such as configs/tagger/bilstm_crf.cfg"
                )
            yield [token.tag_ for token in doc]


def train_tagger(
    path: Path, config: Config, docs: Sequence[Doc], folder: Path, gpu_id: int = -1
) -> Language:
    """Train a config on docs, or load the pipeline of that training if it is finished.

    A training that was killed continues from its last checkpoint. `path` is the file of the config,
    for errors; its development data is that of all folds.
    """
    corpus = folder / "train.spacy"
    write_docbin(docs, corpus)
    config = config.copy()
    dot_to_object(config, config["training"]["train_corpus"])["path"] = str(corpus)
    nlp = initialize(path, config, gpu_id)
    list(predict_tags(nlp, docs[:1]))  # an error here comes before hours of training
    train(nlp, folder, resume=True, use_gpu=gpu_id)
    models = ModelFolders(folder)
    return spacy.load(models.best if models.best.exists() else models.last)


def without_label_check(config: Config) -> Config:
    """Copy the config without the check that training data has all labels of development data."""
    config = config.copy()
    after = config["initialize"].get("after_init") or {}
    if after.get("@callbacks") == "spacy-psa.check_dev_labels.v1":
        config["initialize"]["after_init"] = None
    return config


def read_tagged(path: Path) -> list[Doc]:
    """Read the docs of a `.spacy` file whose parts of speech will be replaced."""
    docs = read_docbin(path, Vocab())
    for number, doc in enumerate(docs, 1):
        if len(doc) and not doc.has_annotation("TAG"):
            raise InputError(
                f"{path}, document {number}: no parts of speech to learn from; convert the data "
                "from a format that has them"
            )
    return docs


def _set_tags(doc: Doc, tags: Sequence[str]) -> None:
    for token, tag in zip(doc, tags):
        token.tag_ = tag
