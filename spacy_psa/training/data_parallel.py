"""One training in several processes: each learns from a part of each batch."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import Any

import numpy
import torch
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.tokens import DocBin
from spacy.training import Example
from thinc.api import Model
from torch import nn

from spacy_psa.errors import InputError
from spacy_psa.pipeline.component import StructuredPipe
from spacy_psa.training.announced_words import AnnouncedWords
from spacy_psa.training.finite_losses import FiniteLosses
from spacy_psa.training.gradient_exchange import GradientExchange
from spacy_psa.training.processes import Processes
from spacy_psa.training.random_states import get_random_states, set_random_states

PLAIN = str, int, float, bool, list, tuple, dict, numpy.ndarray, type(None)


class DataParallel:
    """Stands for a pipeline in spaCy's training loop, in each of several processes.

    All processes have the same weights. Each computes the gradients of its part of a batch. Before
    the components clip gradients and take their step, the gradients are averaged over the
    processes, so that all take the same step as one process would with the whole batch. An
    evaluation is split likewise.

    Args:
        guard: stands for the pipeline of this process.
        processes: the processes.
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
        modules: dict[nn.Module, float] = {}
        nodes: dict[Model, float] = {}
        for name, pipe in self.nlp.components:
            model = getattr(pipe, "model", None)
            if isinstance(model, Model) and name not in self.frozen:
                for node in model.walk():
                    nodes[node] = self._weights[name]
                    for shim in node.shims:
                        if isinstance(module := getattr(shim, "_model", None), nn.Module):
                            modules[module] = self._weights[name]
        self.exchange.begin(modules, nodes, rows)
        self._losses, self._before, self._in_step = {}, {}, True
        return mine

    def _shares(self, mine: list[Example], everything: list[Example]) -> dict[str, float]:
        """Say how much the gradients of each component count in this process."""
        own = {
            name: pipe.loss_share(mine, everything)
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
        """The components that take the present step, with the gradients of all processes."""
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
        told = [float(self.guard.bad), float(any(new)), *grown]
        bad, any_new, *summed = self.exchange.finish(told)
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

        Raises:
            InputError: if the weights of the processes differ.
        """
        if len(set(self.processes.gather(_checksum(self.nlp)))) > 1:
            raise InputError(
                "the weights of the processes differ: give all the same config, data and versions "
                "of libraries, and no component that learns from anything else"
            )
        examples = list(examples)
        mine = examples[self.processes.rank :: self.processes.count]
        scores = self.nlp.evaluate(mine, scorer=_ScorerOfAll(self.nlp, self.processes, examples))
        scores["speed"] = sum(self.processes.gather(scores["speed"]))
        return scores

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds beside the state of the training in the first process."""
        return {
            "random": self.processes.gather(get_random_states()),
            "rows_random": self.words.random_state,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Set what `state` gave."""
        set_random_states(state["random"][self.processes.rank])
        self.words.random_state = state["rows_random"]


def shared_out(examples: Sequence[Example], count: int) -> list[list[Example]]:
    """Share examples out to processes, each with about the same number of tokens.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> docs = [nlp.make_doc(text) for text in ("a b c d", "a", "a b c", "a b", "a b c d e")]
        >>> parts = shared_out([Example(doc, doc) for doc in docs], 2)
        >>> [[len(example) for example in part] for part in parts]
        [[5, 2, 1], [4, 3]]
    """
    parts: list[list[Example]] = [[] for _ in range(count)]
    tokens = [0] * count
    for example in sorted(examples, key=lambda eg: -len(eg.predicted)):
        fewest = tokens.index(min(tokens))
        parts[fewest].append(example)
        tokens[fewest] += len(example.predicted)
    return parts


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
                found = DocBin().from_bytes(part).get_docs(vocab)
                for number, doc in zip(range(rank, len(everything), count), found):
                    everything[number] = Example(doc, self.examples[number].reference)
            scores = super().score(everything, per_component=per_component)
        return self.processes.share(scores)


def _checksum(nlp: Language) -> bytes:
    """A checksum of all weights and of the rows that embedders have given."""
    found = blake2b(digest_size=16)
    for _, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        for node in model.walk() if isinstance(model, Model) else ():
            found.update(repr(node.attrs.get("rows")).encode("utf8", "surrogatepass"))
            for name in node.param_names:
                if node.has_param(name):
                    found.update(node.ops.to_numpy(node.get_param(name)).tobytes())
            for shim in node.shims:
                if isinstance(module := getattr(shim, "_model", None), nn.Module):
                    for parameter in module.parameters():
                        found.update(parameter.detach().cpu().numpy().tobytes())
    return found.digest()
