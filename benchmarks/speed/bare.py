"""A bare PyTorch loop over the modules of a trained `crf_ner`, without Doc, thinc and bridge.

The difference in time to the pipeline is the overhead of spaCy and the bridge. Each distinct word
of a batch is computed once, and batches have sentences of similar length.
"""

from typing import Any

import numpy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from torch import Tensor, nn

from spacy_psa.architectures.distinct_words import DIGITS
from spacy_psa.bridge.shim import shim_of
from spacy_psa.laboratory.performance.timing import Timing, stopwatch
from spacy_psa.modules.characters import CharBiLSTM
from spacy_psa.modules.lookup import WordTable
from spacy_psa.ragged import batches_by_size, pad
from spacy_psa.structs.chain import LinearChain
from spacy_psa.structs.pair_chain import PairChain, TagPairs


class Bare:
    """The weights of a pipeline whose `ner` is a CRF over words and characters."""

    def __init__(self, nlp: Language):
        pipe: Any = nlp.get_pipe("ner")
        nodes = [node for node in pipe.model.walk() if node.shims]
        modules = [shim_of(node).module for node in nodes]
        words, characters = (
            next(i for i, module in enumerate(modules) if isinstance(module, kind))
            for kind in (WordTable, CharBiLSTM)
        )
        head = nodes.index(pipe.model.get_ref("head"))
        (encoder,) = set(range(len(nodes))) - {words, characters, head}
        self.words, self.characters = nodes[words], nodes[characters]
        self.modules = nn.ModuleList(modules[i] for i in (words, characters, encoder, head))
        self.vectors = nlp.vocab.vectors
        legal = pipe.scheme.legal()
        self.legal = {name: torch.from_numpy(mask) for name, mask in legal._asdict().items()}
        self.pairs = TagPairs(legal.transitions)
        self.tags = len(pipe.tags)
        self.batch_tokens = pipe.batch_tokens
        self.max_grad_norm = pipe.max_grad_norm
        self.optimizer: torch.optim.Optimizer | None = None

    def potentials(self, sentences: list[list[str]]) -> tuple[LinearChain, Tensor]:
        """The distribution of a batch over legal tag sequences, and the lengths, (B,)."""
        table, letters, encoder, head = self.modules
        lengths = torch.tensor([len(words) for words in sentences])
        number: dict[str, int] = {}
        index = [number.setdefault(word, len(number)) for words in sentences for word in words]
        place = torch.tensor(index)
        forms = list(number)
        rows, pretrained = self._words(forms)
        vectors = torch.cat([table(rows) + pretrained, letters(*self._characters(forms))], 1)
        scores = head(encoder(vectors.index_select(0, place), lengths), lengths)
        if scores.shape[1] == self.tags**2:
            chain = LinearChain(pad(scores.view(-1, self.tags, self.tags), lengths), lengths)
        else:
            chain = PairChain(scores, lengths, self.pairs)
        return chain.constrain(**self.legal), lengths

    def annotate(self, sentences: list[list[str]]) -> list[list[int]]:
        self.modules.eval()
        annotated: list[list[int]] = [[]] * len(sentences)
        sizes = [len(words) for words in sentences]
        with torch.inference_mode():
            for batch in batches_by_size(sizes, self.batch_tokens):
                chain, _ = self.potentials([sentences[i] for i in batch])
                for i, tags in zip(batch, chain.argmax):
                    annotated[i] = tags.tolist()
        return annotated

    def step(self, sentences: list[list[str]], tags: list[Any]) -> float:
        self.modules.train()
        if self.optimizer is None:
            self.optimizer = torch.optim.SGD(
                self.modules.parameters(), lr=1e-3, momentum=0.9, fused=True
            )
        chain, lengths = self.potentials(sentences)
        gold = pad(torch.from_numpy(numpy.concatenate(tags)), lengths)
        loss = -chain.log_prob(gold).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(self.modules.parameters(), self.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    def _words(self, words: list[str]) -> tuple[Tensor, Tensor]:
        settings = self.words.attrs
        lowered = [word.lower() for word in words]
        forms = [form.translate(DIGITS) for form in lowered]
        rows = torch.tensor([settings["rows"].get(form, 0) for form in forms])
        places = self.vectors.find(keys=words)
        places = numpy.where(places < 0, self.vectors.find(keys=lowered), places)
        data = torch.from_numpy(self.vectors.data[places])
        return rows, data.masked_fill(torch.from_numpy(places < 0)[:, None], 0.0)

    def _characters(self, words: list[str]) -> tuple[Tensor, Tensor]:
        settings = self.characters.attrs
        cut = [word[: settings["max_characters"]] for word in words]
        rows = [settings["rows"].get(character, 0) for word in cut for character in word]
        return torch.tensor(rows), torch.tensor([len(word) for word in cut])


class BareAnnotation:
    """A row to compare with `Annotation`."""

    def __init__(self, name: str, nlp: Language, sentences: list[list[str]], batch_size: int):
        self.name = name
        self.bare = Bare(nlp)
        self.batches = [sentences[i : i + batch_size] for i in range(0, len(sentences), batch_size)]

    def run(self) -> Timing:
        with stopwatch(sum(len(words) for batch in self.batches for words in batch)) as timings:
            for batch in self.batches:
                self.bare.annotate(batch)
        return timings[0]


class BareTraining:
    """A row to compare with `Training`, on the same docs."""

    def __init__(self, name: str, nlp: Language, references: list[Doc], batch: int):
        self.name = name
        self.bare = Bare(nlp)
        scheme = nlp.get_pipe("ner").scheme  # type: ignore[attr-defined]
        ents = [[(ent.start, ent.end, ent.label_) for ent in doc.ents] for doc in references]
        tags = [scheme.encode(len(doc), spans) for doc, spans in zip(references, ents)]
        pairs = [([token.text for token in doc], each) for doc, each in zip(references, tags)]
        self.batches = [pairs[i : i + batch] for i in range(0, len(pairs), batch)]

    def run(self) -> Timing:
        with stopwatch(len(self.batches)) as timings:
            for batch in self.batches:
                self.bare.step([words for words, _ in batch], [tags for _, tags in batch])
        return timings[0]
