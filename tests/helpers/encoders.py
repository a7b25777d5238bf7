"""Small pretrained encoders of random weights, in folders as Hugging Face publishes them."""

from collections.abc import Callable, Sequence
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


# Half of the words of `TEXTS` are whole wordpieces, the others are spelled. The library's trainers
# of wordpieces and of SentencePiece would make another tokenizer in each process.
WORDS = sorted({word for text in TEXTS for word in text.split()})[::2]
CHARACTERS = sorted(set("".join(TEXTS)) - {" "})


# These get the library tokenizers, since not all tests need the extra `pretrained`.


def _wordpieces(library: Any, specials: Sequence[str], lower: bool) -> Any:
    pieces = [*CHARACTERS, *(f"##{each}" for each in CHARACTERS), *WORDS]
    pieces = [each.lower() if lower else each for each in pieces]
    vocab = {piece: i for i, piece in enumerate(dict.fromkeys([*specials, *pieces]))}
    tokenizer = library.Tokenizer(library.models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = library.normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _bytes(library: Any, specials: Sequence[str], lower: bool) -> Any:
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = library.trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=[*specials],
        initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    return tokenizer


def _sentencepieces(library: Any, specials: Sequence[str], lower: bool) -> Any:
    specials = [*dict.fromkeys([*specials, "<unk>"])]
    words = ["▁", *(f"▁{word}" for word in WORDS)]
    vocab = [(each, 0.0) for each in specials] + [(each, -10.0) for each in words + CHARACTERS]
    tokenizer = library.Tokenizer(library.models.Unigram(vocab, specials.index("<unk>"), False))
    tokenizer.pre_tokenizer = library.pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens(specials)
    return tokenizer


BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>")
GROUPED = ("q", "k", "v", "post_attention", "intermediate", "output")
KINDS: dict[str, tuple[Callable[..., Any], tuple[str, ...], dict[str, Any]]] = {
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
    tokenizer = make(library, specials, lower)
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
