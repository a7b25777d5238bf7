"""Encoders of Hugging Face's transformers over whole documents, and a mix of their layers."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from spacy_psa.errors import SettingError, check_choice, check_sizes
from spacy_psa.modules.dropout import Dropout
from spacy_psa.modules.initialization import glorot
from spacy_psa.modules.pretrained_files import library
from spacy_psa.modules.products import Precision, products, used_precision
from spacy_psa.ragged import to_device

Pooling = Literal["mean", "first"]
LONGEST_WORD = 1000
"""The characters of a word that are read: an address or encoded data can be far longer."""
Ints = NDArray[numpy.int64]
PADDING = 0.05
"""The most padding of a group of windows, as a share of it."""
FREE = 32
"""Places of padding that a group may have in any case: an encoder is slower for many groups."""


class PretrainedEncoder(nn.Module):
    """An encoder of transformers, such as BERT, with its tokenizer: words to vectors.

    The vector of a word is the mean of the vectors of its wordpieces, or that of the first. A word
    without wordpieces, such as a line break for many tokenizers, has zeros. Long documents are read
    in overlapping `windows`. The further settings are those of `Pretrained.v1`, where `group` is
    called `batch_pieces`.

    Args:
        config: the encoder's config, as in its config.json.
        tokenizer: the content of its tokenizer.json.
        layers: the layers whose vectors are returned, side by side: 0 for the embeddings, 1 for the
            first layer, -1 for the last one.

    Raises:
        SettingError: for a setting out of its range.
        InputError: if a library is not installed.

    Attributes:
        net: the encoder.
        output_width: the width of the encoder, times the number of `layers`.
        longest: the most wordpieces of a window that the encoder has positions for.
    """

    def __init__(
        self,
        config: dict[str, Any],
        tokenizer: str,
        layers: Sequence[int] = (-1,),
        window: int = 384,
        context: int = 64,
        pooling: Pooling = "mean",
        frozen: bool = False,
        precision: Precision = "auto",
        group: int = 4096,
        gradient_checkpointing: bool = False,
        lora_rank: int = 0,
    ):
        transformers = library("transformers", "pretrained")
        super().__init__()
        check_choice("pooling", pooling, Pooling)
        check_choice("precision", precision, Precision)
        check_sizes(group=group)
        check_sizes(least=0, lora_rank=lora_rank)
        check_windows(window, context)
        self.tokenizer = library("tokenizers", "pretrained").Tokenizer.from_str(
            _with_spaces(tokenizer)
        )
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        own = {key: value for key, value in config.items() if key != "model_type"}
        settings = transformers.AutoConfig.for_model(config["model_type"], **own)
        net = transformers.AutoModel.from_config(settings)
        if hasattr(net, "pooler"):
            net.pooler = nn.Identity()  # and not None, since some call it
        _use_own_dropout(net)
        self.net: Any = net.requires_grad_(not frozen)
        if lora_rank and not frozen:
            _add_lora(net, lora_rank)
        if gradient_checkpointing and not frozen:
            net.gradient_checkpointing_enable({"use_reentrant": False})
        depth = int(net.config.num_hidden_layers)
        for layer in layers:
            if not -depth - 1 <= layer <= depth:
                raise SettingError("layers", layer, f"the encoder has the layers 0 to {depth}")
        self.layers = [layer % (depth + 1) for layer in layers]
        self.window, self.context, self.pooling = window, context, pooling
        self.frozen, self.precision, self.group = frozen, precision, group
        self.output_width = net.config.hidden_size * len(self.layers)
        probe = self.tokenizer.encode("a")
        inside = [i for i, special in enumerate(probe.special_tokens_mask) if not special]
        start, end = (inside[0], inside[-1] + 1) if inside else (len(probe.ids), len(probe.ids))
        self.before, self.after = probe.ids[:start], probe.ids[end:]
        self.longest = _positions(net) - len(self.before) - len(self.after)
        if window > self.longest:
            raise SettingError("window", window, f"the encoder reads {self.longest} wordpieces")

    @property
    def device(self) -> torch.device:
        return next(self.net.parameters()).device

    @property
    def used_precision(self) -> Precision:
        """The precision in use, which "auto" leaves to the processor."""
        return used_precision(self.precision, self.device)

    def load_pretrained(self, weights: Mapping[str, Tensor]) -> None:
        """Set the weights of the encoder to those of `read_pretrained`."""
        own = {key.replace(".base_layer.", "."): key for key in self.net.state_dict()}
        state = {own[key]: tensor for key, tensor in weights.items()}
        loaded = self.net.load_state_dict(state, strict=False)
        assert all("lora_" in key for key in loaded.missing_keys), loaded

    def train(self, mode: bool = True) -> "PretrainedEncoder":
        """Set the mode; a frozen encoder has no dropout in training either."""
        super().train(mode)
        if self.frozen:
            self.net.eval()
        return self

    def inputs(self, documents: Iterable[Sequence[str]]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Make the arguments of `forward` from the words of documents.

        Returns:
            (T,) int64, the wordpieces of all windows; (W,) int64, the length of each window; (T,)
            int64, the word whose vector counts a wordpiece, numbered through all documents, or -1;
            the number of words, N.
        """
        documents = [list(words) for words in documents]
        distinct = {word for words in documents for word in words}
        # Not encode_batch, whose threads do not survive the fork of nlp.pipe(n_process=...).
        encode = partial(self.tokenizer.encode, is_pretokenized=True, add_special_tokens=False)
        table = {word: encode([word[:LONGEST_WORD]]).ids for word in distinct}
        before, after = [-1] * len(self.before), [-1] * len(self.after)
        ids: list[int] = []
        lengths: list[int] = []
        owned: list[int] = []
        count = 0
        for words in documents:
            pieces = [table[word] for word in words]
            sizes = numpy.array([len(each) for each in pieces], dtype=int)
            flat = [piece for each in pieces for piece in each]
            cover = windows(sizes, self.window, self.context)
            word = numpy.repeat(numpy.arange(len(sizes)), sizes)
            for number, start in enumerate(cover.starts.tolist() if flat else ()):
                part = word[start : start + cover.size]
                own = cover.owners[part] == number
                if self.pooling == "first":
                    own[1:] &= part[1:] != part[:-1]
                ids += [*self.before, *flat[start : start + cover.size], *self.after]
                owned += [*before, *numpy.where(own, part + count, -1).tolist(), *after]
                lengths.append(len(before) + cover.size + len(after))
            count += len(words)
        return tuple(map(torch.tensor, (ids, lengths, owned, count)))  # type: ignore[return-value]

    def forward(self, ids: Tensor, lengths: Tensor, owned: Tensor, count: Tensor) -> Tensor:
        """Compute the vectors of words: (N, output_width), float32.

        The arguments are those that `inputs` makes.
        """
        sizes = lengths.tolist()
        out = torch.zeros(int(count), self.output_width, device=self.device)
        parts = list(zip(ids.split(sizes), owned.split(sizes)))
        for group in groups(sizes, self.group):
            pieces, words = zip(*(parts[i] for i in group))
            flat = pad_sequence(list(words), batch_first=True, padding_value=-1).flatten()
            [places] = torch.nonzero(flat >= 0, as_tuple=True)
            rows, bags = torch.unique_consecutive(flat[places], return_counts=True)
            if len(rows):
                starts = torch.cumsum(bags, 0) - bags
                vectors = self._encode(pieces).flatten(0, 1)
                at = [to_device(each, out.device) for each in (places, starts)]
                means = F.embedding_bag(at[0], vectors, at[1], mode="mean")
                out.index_copy_(0, to_device(rows, out.device), means)
        return out

    def _encode(self, pieces: Sequence[Tensor]) -> Tensor:
        """Run the encoder on windows of about the same length: (W, n, output_width)."""
        config = self.net.config
        ids = pad_sequence(list(pieces), batch_first=True, padding_value=config.pad_token_id or 0)
        mask = pad_sequence([torch.ones_like(each) for each in pieces], batch_first=True)
        last = self.layers == [config.num_hidden_layers]
        gradient = torch.is_grad_enabled() and not self.frozen
        weight = next(self.net.parameters())
        with torch.set_grad_enabled(gradient), products(self.precision, weight):
            output = self.net(
                input_ids=to_device(ids, weight.device),
                attention_mask=to_device(mask, weight.device),
                output_hidden_states=not last,
            )
        final = output.last_hidden_state  # the last of hidden_states may lack a normalisation
        states = [final] if last else [*output.hidden_states[:-1], final]
        return torch.cat([states[-1 if last else i].float() for i in self.layers], dim=-1)


class LayerMix(nn.Module):
    """Weighted means of the layers of an encoder, with learned weights (Peters2018 Eq. 1).

    The weights of a mean are a softmax, and equal at first. A linear layer may make the result
    narrower.

    Args:
        groups: the number of layers of each mean. The result is the means side by side.
        project: width of the output of the linear layer; None for no such layer.

    Examples:
        >>> mix = LayerMix(6, [2, 1])
        >>> mix(torch.tensor([[1.0, 1.0, 3.0, 5.0, 7.0, 7.0]]), torch.tensor([1]))
        tensor([[2., 3., 7., 7.]], grad_fn=<CatBackward0>)
    """

    def __init__(self, input_width: int, groups: Sequence[int], project: int | None = None):
        super().__init__()
        check_sizes(project=project)
        self.groups = list(groups)
        self.width = input_width // sum(groups)
        means = self.width * len(groups)
        self.output_width = project or means
        self.project = glorot(nn.Linear(means, project)) if project else nn.Identity()
        self.weights = nn.ParameterList(nn.Parameter(torch.zeros(size)) for size in groups)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Mix the layers: (N, input_width) -> (N, output_width)."""
        layers = x.unflatten(1, (-1, self.width)).split(self.groups, dim=1)
        means = [weights.softmax(0) @ group for weights, group in zip(self.weights, layers)]
        projected: Tensor = self.project(torch.cat(means, dim=1))
        return projected


def _use_own_dropout(net: nn.Module) -> None:
    """Replace the dropout of an encoder by that of this package, which is faster on a CPU."""
    for module in list(net.modules()):
        for name, part in module.named_children():
            if type(part) is nn.Dropout:
                setattr(module, name, Dropout(part.p))


def _add_lora(net: nn.Module, rank: int) -> None:
    """Add low-rank updates to the linear layers of an encoder, and train only those."""
    peft = library("peft", "lora")
    net.requires_grad_(False)
    config = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear")
    peft.inject_adapter_in_model(config, net)


def _positions(net: Any) -> int:
    """Find the longest input of an encoder; a table of positions may have unused first rows."""
    for name, module in net.named_modules():
        if isinstance(module, nn.Embedding) and name.endswith("position_embeddings"):
            skipped = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - skipped
    most = int(getattr(net.config, "max_position_embeddings", None) or 0)
    return most if most > 0 else sys.maxsize  # XLNet's config has -1


def _with_spaces(tokenizer: str) -> str:
    """Let a tokenizer read each word as if a space stood before it.

    Tokenizers of bytes and of SentencePiece otherwise read a word as the middle of one.
    """
    settings = json.loads(tokenizer)
    pending = [settings.get("pre_tokenizer")]
    for part in pending:
        if part is None:
            continue
        pending += part.get("pretokenizers", ())
        if part["type"] == "ByteLevel":
            part["add_prefix_space"] = True
        elif part["type"] == "Metaspace":
            part["prepend_scheme"] = "always"
    return json.dumps(settings)


class Windows(NamedTuple):
    """Windows over a document of M words with P wordpieces."""

    starts: Ints
    """(W,) the first wordpiece of each window."""
    size: int
    """The wordpieces of each window."""
    owners: Ints
    """(M,) the window that each word is taken from."""


def windows(pieces: Ints, window: int, context: int) -> Windows:
    """Cover a document with windows, and find the one in which each word is most central.

    All windows have the same size and the distance from one to the next is the same, up to
    rounding. Except at the ends of the document, each word has at least about `context` wordpieces
    of its window on both sides.

    Args:
        pieces: (M,) the number of wordpieces of each word, which may be 0.
        window: the most wordpieces of a window.
        context: the least that two windows which follow each other overlap is twice this number.

    Examples:
        >>> windows(numpy.ones(10, dtype=int), window=6, context=1)
        Windows(starts=array([0, 4]), size=6, owners=array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1]))
    """
    ends = numpy.cumsum(pieces)
    total = int(ends[-1]) if len(ends) else 0
    if total <= window:
        return Windows(numpy.zeros(1, int), total, numpy.zeros(len(pieces), int))
    count = -(-(total - window) // (window - 2 * context)) + 1
    starts = numpy.arange(count) * (total - window) // (count - 1)
    # Between two centres, and of a word between its wordpieces; all doubled, to stay whole.
    middles = starts[:-1] + starts[1:] + window
    return Windows(starts, window, numpy.searchsorted(middles, 2 * ends - pieces, side="right"))


def check_windows(window: int, context: int) -> None:
    """Raise SettingError for a setting of `windows` out of its range."""
    check_sizes(window=window)
    check_sizes(least=0, context=context)
    if 2 * context >= window:
        raise SettingError("context", context, f"it must be less than half of window, {window}")


def groups(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group windows of similar length, the longest first.

    Args:
        lengths: the length of each window.
        budget: the most places of a group, padding included. A single window may exceed it.

    Yields:
        The indices of the windows in a group. At most a share of `PADDING` of its places is
        padding, or `FREE` places.

    Examples:
        >>> list(groups([100, 3, 99, 2], budget=1000))
        [[0, 2], [1, 3]]
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    group: list[int] = []
    filled = 0
    for index in order:
        if group:
            places = lengths[group[0]] * (len(group) + 1)
            padding = places - filled - lengths[index]
            if places > budget or padding > max(FREE, PADDING * places):
                yield group
                group, filled = [], 0
        group.append(index)
        filled += lengths[index]
    if group:
        yield group
