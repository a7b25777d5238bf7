"""`Pretrained.v1`: token vectors of a pretrained encoder, such as BERT, over whole documents."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy
from spacy.tokens import Doc
from thinc.api import Model, chain
from thinc.types import Floats2d
from thinc.util import to_numpy

from spacy_psa.architectures.feature_cache import FeatureCache
from spacy_psa.bridge.layers import join_rows, split_rows, torch_layer
from spacy_psa.bridge.shim import TorchShim, shim_of
from spacy_psa.errors import InputError, SettingError, check_choice, check_sizes, naming
from spacy_psa.modules.pretrained import LayerMix, Pooling, PretrainedEncoder, check_windows
from spacy_psa.modules.pretrained_files import read_pretrained
from spacy_psa.modules.products import Precision
from spacy_psa.sentences import document_numbers, words_and_spaces

NAME = "Pretrained.v1"
FLOAT16 = 65504.0
Layers = int | list[int] | list[list[int]]


def pretrained(
    name: str,
    layers: Layers = 1,
    project: int | None = None,
    pooling: Pooling = "mean",
    window: int = 384,
    context: int = 64,
    frozen: bool = False,
    precision: Precision = "auto",
    batch_pieces: int = 4096,
    gradient_checkpointing: bool = False,
    lora_rank: int = 0,
    cache: str | None = None,
    cache_gb: float = 20.0,
) -> Model:
    """Build `Pretrained.v1`, the token vectors of an encoder of Hugging Face's transformers.

    It is for the slot `embed`, also in `ConcatEmbed.v1`, or for a head's slot `tok2vec`. The
    encoder reads whole documents, also where the layers above read sentences. A document is a Doc,
    and Docs that follow each other with the same `doc.user_data["document"]` are one document. A
    longer document is read in overlapping windows, and each word is taken from the window in which
    it is most central. Each word is split into wordpieces as if a space stood before it.

    Encoder and tokenizer are read on initialization and saved with the model, so loading it needs
    neither the hub nor the original folder.

    Args:
        name: a name on the Hugging Face hub, or a folder with config.json, model.safetensors and
            tokenizer.json.
        layers: 1 for the last layer; N for a weighted mean of the last N layers, with learned
            weights; a list of layers for such a mean of them (0 for the embeddings, 1 for the first
            layer, -1 for the last one); a list of such lists for several means, side by side.
        project: width of a learned linear layer over all that; null for none. With it, layers above
            that are slow on wide vectors stay fast.
        pooling: "mean" of the wordpieces of a word, or its "first" wordpiece.
        window: the most wordpieces that are read together.
        context: the least wordpieces between a word and the end of its window, except at the ends
            of a document.
        frozen: whether the encoder stays as it is, in place of being fine-tuned.
        precision: "float32", "bfloat16", or "auto" for bfloat16 if the processor has instructions
            for it.
        batch_pieces: the most wordpieces that go through the encoder at a time.
        gradient_checkpointing: whether training computes each layer twice, for less memory.
        lora_rank: the rank of low-rank updates (LoRA), which are trained in place of the weights,
            with the extra `lora`; 0 to train all weights. In the `rates` of an optimizer, their
            pattern is "*lora_*", which only counts before "pretrained".
        cache: a folder for the features of a frozen encoder, so that they are computed only once,
            for all passes and trainings; null for none. See `FeatureCache`.
        cache_gb: the most gigabytes of `cache`.

    Returns:
        Model[List[Doc], List[Floats2d]] with an array (tokens, width) for each doc, float32. A word
        without wordpieces has zeros.

    Raises:
        InputError: for a setting out of its range, for a cache of an encoder that is not frozen,
            and for a `lora_rank` of one that is. On initialization, if the encoder or its tokenizer
            cannot be read. In training, if the cache cannot be written.
    """
    with naming(NAME):
        groups = _groups(layers)
        check_choice("pooling", pooling, Pooling)
        check_choice("precision", precision, Precision)
        check_windows(window, context)
        check_sizes(least=0, lora_rank=lora_rank)
        check_sizes(batch_pieces=batch_pieces, project=project)
        features = FeatureCache(cache, cache_gb)
    if lora_rank and frozen:
        raise InputError(f"{NAME}: lora_rank needs frozen = false, since it trains the encoder")
    if cache is not None and not frozen:
        raise InputError(f"{NAME}: a cache needs frozen = true, since training changes the encoder")
    settings = {
        "layers": [layer for group in groups for layer in group],
        "pooling": pooling,
        "window": window,
        "context": context,
        "frozen": frozen,
        "precision": precision,
        "group": batch_pieces,
        "gradient_checkpointing": gradient_checkpointing,
        "lora_rank": lora_rank,
    }
    # `whole_docs` tells the layers above that this one must get whole docs.
    encoder: Model = Model(
        "pretrained",
        _forward,
        init=_init,
        dims={"nO": None},
        attrs={"whole_docs": "embed", "name": name, "features": features},
        shims=[TorchShim(PretrainedEncoder, settings)],
    )
    sizes = [len(group) for group in groups]
    if sizes == [1] and project is None:
        return encoder
    mix = torch_layer("layer_mix", LayerMix, {"groups": sizes, "project": project})
    model: Model = chain(encoder, mix)
    model.init = _init_mixed
    return model


def _groups(layers: Layers) -> list[list[int]]:
    """Return the layers of each mean."""
    if isinstance(layers, int):
        check_sizes(layers=layers)
        return [list(range(-layers, 0))]
    groups = [layers] if all(isinstance(layer, int) for layer in layers) else layers
    if not (groups and all(groups)):
        raise SettingError("layers", layers, "it must name a layer")
    return groups  # type: ignore[return-value]


def _init_mixed(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    encoder, mix = model.layers
    encoder.initialize(X=X)
    mix.set_dim("nI", encoder.get_dim("nO"))
    mix.initialize()
    model.set_dim("nO", mix.get_dim("nO"))


def _init(model: Model, X: list[Doc] | None = None, Y: Any = None) -> None:
    shim = shim_of(model)
    if shim._model is None:
        with naming(NAME):
            files = read_pretrained(model.attrs["name"])
            shim.build(config=files.config, tokenizer=files.tokenizer)
        module: Any = shim.module
        module.load_pretrained(files.weights)
    model.set_dim("nO", int(shim.module.output_width))  # type: ignore[arg-type]
    model.attrs["features"].in_use = True


def _forward(
    model: Model, docs: Sequence[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], Any]]:
    sizes = [len(doc) for doc in docs]
    if not any(sizes):
        width = model.get_dim("nO") if model.has_dim("nO") else 0
        return [model.ops.alloc2f(0, width) for _ in docs], _untrained
    shim = shim_of(model)
    module: Any = shim.module
    words = _documents([doc for doc in docs if len(doc)])
    if module.frozen:
        return split_rows(_frozen(model, words, is_train), sizes), _untrained
    output, torch_backprop = shim.run(module.inputs(words), is_train)

    def backprop(d_vectors: list[Floats2d]) -> list[Doc]:
        torch_backprop(join_rows(model.ops.xp, d_vectors))
        return []

    return split_rows(output, sizes), backprop


def _documents(docs: Sequence[Doc]) -> list[list[str]]:
    """List the words of each document."""
    documents: list[list[str]] = []
    before = -1
    for doc, number in zip(docs, document_numbers(docs)):
        if number != before:
            documents.append([])
        documents[-1] += words_and_spaces(doc)[0]
        before = number
    return documents


def _frozen(model: Model, documents: list[list[str]], is_train: bool) -> Any:
    """Compute or read the vectors of the words of documents, (N, nO)."""
    shim, features = shim_of(model), model.attrs["features"]
    module: Any = shim.module
    if features.folder is None:
        return shim.run(module.inputs(documents), False)[0]
    features.in_use |= is_train
    width = model.get_dim("nO")
    key = features.key(shim) if features.in_use else ""
    rows: list[Any] = [features.load(key, words, width) if key else None for words in documents]
    missing = [i for i, each in enumerate(rows) if each is None]
    if missing:
        new = [documents[i] for i in missing]
        output = to_numpy(shim.run(module.inputs(new), False)[0])
        # Rounded also where nothing is kept, so that a model computes the same from its file.
        output = output.clip(-FLOAT16, FLOAT16).astype("float16")
        for i, words, array in zip(missing, new, split_rows(output, map(len, new))):
            rows[i] = array
            if key:
                features.save(key, words, array)
    joined: Any = numpy.concatenate(rows)
    return model.ops.asarray2f(joined, dtype="float32")


def _untrained(d_vectors: list[Floats2d]) -> list[Doc]:
    """The callback of vectors that are not trained."""
    return []
