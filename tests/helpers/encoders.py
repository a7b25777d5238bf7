"""Small pretrained encoders of random weights, in folders as Hugging Face publishes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers.pipelines import TEXTS

SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 512,
}
WITHOUT_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


# These get the library tokenizers, since not all tests need the extra `pretrained`.


def _wordpieces(library: Any, lower: bool) -> tuple[Any, Any]:
    tokenizer = library.Tokenizer(library.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = library.normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    return tokenizer, library.trainers.WordPieceTrainer


def _bytes(library: Any, lower: bool) -> tuple[Any, Any]:
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer, library.trainers.BpeTrainer


def _sentencepieces(library: Any, lower: bool) -> tuple[Any, Any]:
    tokenizer = library.Tokenizer(library.models.Unigram())
    tokenizer.pre_tokenizer = library.pre_tokenizers.Metaspace()
    return tokenizer, library.trainers.UnigramTrainer


BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>")
GROUPED = ("q", "k", "v", "post_attention", "intermediate", "output")
KINDS: dict[str, tuple[Callable[..., tuple[Any, Any]], tuple[str, ...], dict[str, Any]]] = {
    "bert": (_wordpieces, BERT, {}),
    "mpnet": (_wordpieces, ("<s>", "<pad>", "</s>", "[UNK]"), {}),
    "roberta": (_bytes, ROBERTA, {}),
    "modernbert": (_bytes, BERT, {"pad_token_id": 0, "global_attn_every_n_layers": 2}),
    "deberta-v2": (
        _sentencepieces,
        BERT,
        {"relative_attention": True, "position_biased_input": False, "pos_att_type": "p2c|c2p"},
    ),
    "xlm-roberta": (_sentencepieces, ROBERTA, {}),
    "squeezebert": (
        _wordpieces,
        BERT,
        {"embedding_size": 16, **dict.fromkeys((f"{each}_groups" for each in GROUPED), 1)},
    ),
}
"""For each type of model: its tokenizer, special tokens and settings."""


def write_encoder(
    folder: Path, kind: str = "bert", *, lower: bool = True, seed: int = 0, **settings: Any
) -> Path:
    """Write an encoder to a folder, and return the folder.

    Args:
        kind: one of `KINDS`.
        lower: whether a tokenizer of wordpieces ignores capitals.
        seed: of the weights.
        settings: settings of the encoder's config that replace `SIZES` and those of its kind.
    """
    transformers = pytest.importorskip("transformers", reason="needs the extra `pretrained`")
    library = pytest.importorskip("tokenizers", reason="needs the extra `pretrained`")
    make, specials, own = KINDS[kind]
    tokenizer, trainer = make(library, lower)
    alphabet = library.pre_tokenizers.ByteLevel.alphabet() if make is _bytes else []
    options = {"unk_token": "<unk>"} if make is _sentencepieces else {}
    extra = [*specials, *(["<unk>"] if options and "<unk>" not in specials else [])]
    tokenizer.train_from_iterator(
        TEXTS * 3,
        trainer(
            vocab_size=300,
            special_tokens=extra,
            initial_alphabet=alphabet,
            show_progress=False,
            **options,
        ),
    )
    start, end = (specials[0], specials[2]) if "<s>" in specials else (specials[2], specials[3])
    tokenizer.post_processor = library.processors.TemplateProcessing(
        single=f"{start} $A {end}",
        special_tokens=[(each, tokenizer.token_to_id(each)) for each in (start, end)],
    )
    pad = "<pad>" if "<pad>" in specials else "[PAD]"
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=pad, cls_token=start, sep_token=end
    ).save_pretrained(folder)
    config = transformers.AutoConfig.for_model(
        kind,
        **{
            **SIZES,
            "vocab_size": tokenizer.get_vocab_size(),
            "pad_token_id": tokenizer.token_to_id(pad),
            **own,
            **settings,
        },
    )
    torch.manual_seed(seed)
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    return folder


def pretrained(folder: Path, **settings: Any) -> dict[str, Any]:
    """The config of `Pretrained.v1` over an encoder of `write_encoder`."""
    return {
        "@architectures": "spacy-psa.Pretrained.v1",
        "name": str(folder),
        "precision": "float32",
        **settings,
    }
