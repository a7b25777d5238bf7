"""Small pretrained encoders of random weights, in folders as Hugging Face publishes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from tests.helpers.pipelines import TEXTS

SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 66,
}


def _wordpieces() -> tuple[Tokenizer, Any]:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer, trainers.WordPieceTrainer


def _bytes() -> tuple[Tokenizer, Any]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer, trainers.BpeTrainer


def _sentencepieces() -> tuple[Tokenizer, Any]:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer, trainers.UnigramTrainer


BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>")
KINDS: dict[str, tuple[Callable[[], tuple[Tokenizer, Any]], tuple[str, ...], dict[str, Any]]] = {
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
}
"""For each type of model: its tokenizer, special tokens and settings."""


def make_encoder(folder: Path, kind: str = "bert", **settings: Any) -> str:
    """Write an encoder to a folder, and return the folder."""
    make, specials, own = KINDS[kind]
    tokenizer, trainer = make()
    alphabet = pre_tokenizers.ByteLevel.alphabet() if make is _bytes else []
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
    tokenizer.post_processor = processors.TemplateProcessing(
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
    torch.manual_seed(0)
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    return str(folder)
