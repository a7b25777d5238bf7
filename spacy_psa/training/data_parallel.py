"""One training in several processes: each learns from a part of each batch."""

from collections import UserDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import blake2b
from typing import Any

import numpy
import torch
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from thinc.api import Model
from torch import Tensor, nn

from spacy_psa.architectures.distinct_words import add_rows, meet
from spacy_psa.architectures.sentencewise import listens
from spacy_psa.bridge.optimizer import torch_modules
from spacy_psa.bridge.shim import shim_of
from spacy_psa.errors import InputError
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.sentences import sentence_count, split_sentences
from spacy_psa.training.checkpoint import (
    get_random_states,
    models,
    nodes_by_place,
    set_random_states,
)
from spacy_psa.training.finite_losses import FiniteLosses
from spacy_psa.training.gradient_exchange import GradientExchange
from spacy_psa.training.processes import Processes

PLAIN = str, int, float, bool, list, tuple, dict, numpy.ndarray, type(None)


class DataParallel:
    """Stands for a pipeline in spaCy's training loop, in each of several processes.

    All processes have the same weights. Each computes the gradients of its part of a batch. Before
    the components clip gradients and make their step, the gradients are averaged over the
    processes, so that all make the same step as one process would with the whole batch. An
    evaluation is split likewise.

    Args:
        guard: stands for the pipeline of this process.
        frozen: names of the components that do not learn.
    """

    def __init__(self, guard: FiniteLosses, processes: Processes, frozen: Sequence[str]):
        self.guard = guard
        self.nlp: Language = guard.nlp
        self.processes = processes
        self.frozen = frozen
        self.exchange = GradientExchange(processes)
        self.words = AnnouncedWords(self.nlp, torch.get_rng_state())
        self._weights: dict[str, float] = {}
        self._losses: dict[str, float] = {}
        self._before: dict[str, float] = {}
        self._in_step = False
        # The processes draw different dropout masks, but shuffle alike.
        seed = (torch.initial_seed() + 1 + processes.rank) % 2**32
        torch.manual_seed(seed)
        numpy.random.seed(seed)

    def begin(self, parts: Sequence[list[Example]]) -> list[Example]:
        """Begin a step.

        Args:
            parts: the batches of the step, at most one for each process.

        Returns:
            The examples of this process. Each has about as many tokens, so that none waits long.
        """
        everything = [example for part in parts for example in part]
        mine = shared_out(everything, self.processes.count)[self.processes.rank]
        rows = self.words.announce([example.predicted for example in everything])
        self._weights = self._shares(mine, everything)
        weights = {
            node: self._weights[name]
            for name, model in models(self.nlp).items()
            if name not in self.frozen
            for node in model.walk()
        }
        modules = {module: w for node, w in weights.items() for module in torch_modules(node)}
        self.exchange.begin(modules, weights, rows)
        self._losses, self._before, self._in_step = {}, {}, True
        return mine

    def _shares(self, mine: list[Example], everything: list[Example]) -> dict[str, float]:
        """How much the gradients of each component count in this process.

        A loss is a sum over sentences, or a mean, of which a part has its share of the sentences.
        """
        count = sentence_count(everything)
        share = sentence_count(mine) / count if count else 0.0
        own = {
            name: 1.0 if pipe._reduction == "sum" else share
            for name, pipe in self.nlp.components
            if isinstance(pipe, StructuredPipe)
        }
        others = next(iter(own.values()), len(mine) / len(everything))
        return {name: own.get(name, others) for name in self.nlp.component_names}

    def update(self, examples: list[Example], *, losses: dict[str, float], **settings: Any) -> None:
        """Add up the gradients of a part of the batch; see `FiniteLosses.update`."""
        if not self._losses:
            self._losses, self._before = losses, dict(losses)
        self.guard.update(examples, losses=losses, **settings)

    @property
    def pipeline(self) -> list[tuple[str, Any]]:
        """The components that make the present step, with the gradients of all processes."""
        if self._in_step:
            self._finish()
        return self.guard.pipeline

    def _finish(self) -> None:
        self._in_step = False
        names = self.nlp.component_names
        before, now = self._before, self._losses
        grown = [
            (now.get(name, 0.0) - before.get(name, 0.0)) * self._weights[name] for name in names
        ]
        new = self.words.new
        figures = [float(self.guard.bad), float(any(new)), *grown]
        bad, any_new, *summed = self.exchange.finish(figures)
        self.words.reopen(self.processes.gather(new) if any_new else [])
        now.update(
            {n: before.get(n, 0.0) + s for n, s in zip(names, summed) if n in now and not bad}
        )
        if bad:
            self.guard.leave_out()

    def use_params(self, params: dict[Any, Any]) -> AbstractContextManager[None]:
        """Replace the weights for a while."""
        return self.nlp.use_params(params)

    def evaluate(self, examples: Sequence[Example]) -> dict[str, Any]:
        """Annotate a part of the examples in each process, and score all in the first.

        InputError if the weights of the processes differ.
        """
        if len(set(self.processes.gather(_checksum(self.nlp)))) > 1:
            raise InputError(
                "the weights of the processes differ: use the same config, data and versions of "
                "libraries in all, and no component that learns from anything else"
            )
        examples = list(examples)
        mine = examples[self.processes.rank :: self.processes.count]
        scores = self.nlp.evaluate(mine, scorer=_ScorerOfAll(self.nlp, self.processes, examples))
        scores["speed"] = sum(self.processes.gather(scores["speed"]))
        return scores

    def state(self) -> dict[str, Any]:
        """The state of all processes for a checkpoint, without that of `training_state`."""
        return {
            "random": self.processes.gather(get_random_states()),
            "rows_random": self.words.random_state,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a `state`."""
        set_random_states(state["random"][self.processes.rank])
        self.words.random_state = state["rows_random"]


def shared_out(examples: Sequence[Example], count: int) -> list[list[Example]]:
    """Share examples out to processes, each with about the same number of tokens."""
    parts: list[list[Example]] = [[] for _ in range(count)]
    tokens = [0] * count
    for example in sorted(examples, key=lambda eg: -len(eg.predicted)):
        fewest = tokens.index(min(tokens))
        parts[fewest].append(example)
        tokens[fewest] += len(example.predicted)
    return parts


class AnnouncedWords:
    """Keeps the rows of all embedders of a pipeline equal in all processes.

    Embedders add a row for each word that they meet in training. A process learns from a part of
    each batch, but knows all of it. So before each step, all processes let the embedders meet the
    words of the whole batch. During the step, no row is added. Symbols that first occur then, such
    as tags that an earlier component predicts, count as unknown in this step, and get rows after
    it.

    Args:
        random_state: the state of a random generator for new rows, the same in all processes.
    """

    def __init__(self, nlp: Language, random_state: Tensor):
        self.nlp = nlp
        self.random_state = random_state
        self._closed: list[tuple[Model, _Closed]] = []

    def announce(self, docs: Sequence[Doc]) -> dict[nn.Parameter, Tensor]:
        """Let all embedders meet the words of a whole batch, and close their rows.

        Returns:
            The rows of each table that the step reads, for the tables that are large.
        """
        read: dict[nn.Parameter, Tensor] = {}
        sentences = split_sentences(docs)
        with self._common_random_numbers():
            for name, model in models(self.nlp).items():
                pipe = self.nlp.get_pipe(name)
                whole = not isinstance(pipe, StructuredPipe) or listens(model)
                for node in model.walk():
                    rows = meet(node, list(docs) if whole else sentences)
                    if rows is not None:
                        table = shim_of(node).module.get_parameter("table.weight")
                        read[table] = rows.to(table.device)
        for node in nodes_by_place(self.nlp).values():
            if isinstance(node.attrs.get("rows"), dict):
                closed = node.attrs["rows"] = _Closed(node.attrs["rows"])
                self._closed.append((node, closed))
        return read

    @property
    def new(self) -> list[list[str]]:
        """The symbols of each embedder that first occurred during the step in this process."""
        return [closed.new for _, closed in self._closed]

    def reopen(self, new: Sequence[list[list[str]]]) -> None:
        """Open the rows after a step, and add rows for new symbols.

        Args:
            new: `new` of each process; empty if there are no new symbols.
        """
        for node, closed in self._closed:
            node.attrs["rows"] = closed.data
        for (node, _), lists in zip(self._closed, zip(*new, strict=True)):
            add_rows(node, sorted({symbol for symbols in lists for symbol in symbols}))
        self._closed = []

    @contextmanager
    def _common_random_numbers(self) -> Iterator[None]:
        own = torch.get_rng_state()
        torch.set_rng_state(self.random_state)
        try:
            yield
        finally:
            self.random_state = torch.get_rng_state()
            torch.set_rng_state(own)


class _Closed(UserDict[str, int]):
    """The rows of an embedder while none may be added; it notes each symbol that lacks one."""

    def __init__(self, rows: dict[str, int]):
        self.data = rows
        self.new: list[str] = []

    def __setitem__(self, symbol: str, row: int) -> None:
        self.new.append(symbol)


class _ScorerOfAll(Scorer):
    """Scores the docs of all processes, where spaCy's scorer would score those of one."""

    def __init__(self, nlp: Language, processes: Processes, examples: Sequence[Example]):
        super().__init__(nlp)
        self.processes = processes
        self.examples = examples

    def score(self, examples: Iterable[Example], *, per_component: bool = False) -> dict[str, Any]:
        """Score all examples; `examples` are those of this process."""
        scores: dict[str, Any] = {}
        docs = DocBin(store_user_data=True)
        for example in examples:
            doc = example.predicted
            kept = {key: v for key, v in doc.user_data.items() if isinstance(v, PLAIN)}
            doc.user_data.clear()
            doc.user_data.update(kept)
            docs.add(doc)
        parts = self.processes.gather(docs.to_bytes())
        if self.processes.first:
            vocab, count = self.nlp.vocab, self.processes.count
            everything: list[Any] = [None] * len(self.examples)
            for rank, part in enumerate(parts):
                annotated = DocBin().from_bytes(part).get_docs(vocab)
                for number, doc in zip(range(rank, len(everything), count), annotated):
                    everything[number] = Example(doc, self.examples[number].reference)
            scores = super().score(everything, per_component=per_component)
        return self.processes.share(scores)


def _checksum(nlp: Language) -> bytes:
    """A checksum of all weights and of the rows of embedders."""
    checksum = blake2b(digest_size=16)
    for node in nodes_by_place(nlp).values():
        checksum.update(repr(node.attrs.get("rows")).encode("utf8", "surrogatepass"))
        for name in node.param_names:
            if node.has_param(name):
                checksum.update(node.ops.to_numpy(node.get_param(name)).tobytes())
        for module in torch_modules(node):
            for parameter in module.parameters():
                checksum.update(parameter.detach().cpu().numpy().tobytes())
    return checksum.digest()
