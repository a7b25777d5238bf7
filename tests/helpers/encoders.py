"""Pretrained encoders of random weights, as folders of Hugging Face."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers.pipelines import TEXTS


def write_encoder(
    folder: Path,
    texts: Iterable[str] = TEXTS,
    *,
    lower: bool = True,
    layers: int = 2,
    seed: int = 0,
) -> Path:
    """Write a BERT of width 16, whose tokenizer knows the letters and some words of texts."""
    transformers = pytest.importorskip("transformers", reason="needs the extra `pretrained`")
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = {word.lower() if lower else word for text in texts for word in text.split()}
    letters = {letter for word in words for letter in word}
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted(letters)]
    pieces += [f"##{letter}" for letter in sorted(letters)]
    pieces += sorted(word for word in words - letters if len(word) < 6)
    vocab = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    special: dict[str, Any] = {
        "pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
    }  # fmt: skip
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
    fast.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocab),
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=512,
    )
    torch.manual_seed(seed)
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


def pretrained(folder: Path, **settings: Any) -> dict[str, Any]:
    """The config of `Pretrained.v1` over an encoder of `write_encoder`."""
    return {
        "@architectures": "spacy-psa.Pretrained.v1",
        "name": str(folder),
        "precision": "float32",
        **settings,
    }
