"""Pretrained encoders as Hugging Face publishes them: a config, a tokenizer and weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from spacy_psa.errors import InputError

NOT_READ = ("_name_or_path", "architectures", "auto_map", "dtype", "id2label", "label2id",
            "torch_dtype", "transformers_version")  # fmt: skip


class PretrainedFiles(NamedTuple):
    """The parts of a pretrained encoder."""

    config: dict[str, Any]
    """The content of config.json, without what an encoder does not need."""
    tokenizer: str
    """The content of tokenizer.json."""
    weights: dict[str, Tensor]
    """The weights of the encoder, float32."""


def read_pretrained(name: str) -> PretrainedFiles:
    """Read an encoder from a folder, or from the Hugging Face hub.

    Only files of the format safetensors are read, and no code that comes with an encoder is run.

    Args:
        name: a folder, or the name on the hub.

    Raises:
        InputError: if there is no such encoder, or a part of it is missing or not usable.
    """
    transformers = library("transformers", "pretrained")
    local = Path(name).is_dir()
    advice = (
        "use a folder with config.json, model.safetensors and tokenizer.json"
        if local
        else "there is no such folder, so check the name and the network, or name another folder"
    )

    def fail(what: str, error: Exception | None = None) -> InputError:
        text = "" if isinstance(error, TypeError) else str(error or "")  # else of an argument
        lines = text.strip().splitlines()
        reason = f" ({lines[0][:200]})" if lines else ""
        return InputError(f"encoder {name!r}: {what}{reason}; {advice}")

    with _quiet():
        try:
            raw, _ = transformers.PretrainedConfig.get_config_dict(name)
        except Exception as error:
            raise fail("its config cannot be read", error) from error
        if transformers.utils.find_adapter_config_file(name) is not None:
            # Transformers would read other weights with it, also pickled ones.
            raise InputError(
                f"encoder {name!r}: it has an adapter (adapter_config.json): merge it with its "
                "encoder and save the whole, as merge_and_unload of peft does, or remove it"
            )
        kept = {key: value for key, value in raw.items() if key not in NOT_READ}
        kind = kept.get("model_type")
        if kind is None:
            raise fail("it has no config.json with a model_type")
        if kind not in transformers.CONFIG_MAPPING:
            raise InputError(
                f"encoder {name!r}: transformers {transformers.__version__} has no code for its "
                f"model_type, {kind!r}, and code that comes with an encoder is never run: install "
                "a newer version, or use another encoder"
            )
        try:
            config = transformers.AutoConfig.for_model(**kept)
        except Exception as error:
            raise fail("its config cannot be read", error) from error
        if config.is_encoder_decoder or not hasattr(config, "num_hidden_layers"):
            raise fail(f"{kind} is not an encoder of text")
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                name, use_fast=True, trust_remote_code=False
            )
        except Exception as error:
            raise fail("its tokenizer cannot be read", error) from error
        if not tokenizer.is_fast:
            raise fail("it only has a slow tokenizer, without tokenizer.json")
        if len(tokenizer) <= len(tokenizer.all_special_ids):
            # Without its files, transformers 5 makes one that knows no words.
            raise fail("its tokenizer cannot be read")
        try:
            net, loaded = transformers.AutoModel.from_pretrained(
                name,
                config=config,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        except OSError as error:
            raise fail("it has no weights in model.safetensors", error) from error
        except Exception as error:
            raise fail("its weights are damaged, or do not fit its config") from error
    net = net.float()
    if not _reads_wordpieces(net, tokenizer.backend_tokenizer.encode("a").ids):
        raise InputError(
            f"encoder {name!r}: {kind} does not turn wordpieces and a mask into a vector for each "
            "wordpiece: use another encoder"
        )
    pieces = tokenizer.backend_tokenizer.get_vocab_size(with_added_tokens=False)
    rows = len(net.get_input_embeddings().weight)
    if pieces > rows:
        raise fail(f"its tokenizer is that of another: it has {pieces} wordpieces, not {rows}")
    missing = sorted(key for key in loaded["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise fail(f"its weights lack {len(missing)} parts, such as {missing[0]}")
    weights = net.state_dict()
    kept_weights = {key: weights[key] for key in weights if not key.startswith("pooler.")}
    return PretrainedFiles(kept, tokenizer.backend_tokenizer.to_str(), kept_weights)


def _reads_wordpieces(net: Any, ids: list[int]) -> bool:
    """Whether a net computes a vector for each wordpiece, in each layer, from ids and a mask."""
    pieces = torch.tensor([ids])
    mask = torch.ones_like(pieces)
    try:
        with torch.no_grad():
            output = net(input_ids=pieces, attention_mask=mask, output_hidden_states=True)
        states = [*output.hidden_states, output.last_hidden_state]
    except Exception:  # each architecture that needs something else has its own
        return False
    shapes = {state.shape[:2] for state in states}
    return len(states) == net.config.num_hidden_layers + 2 and shapes == {pieces.shape}


def library(name: str, extra: str) -> Any:
    """Import a library; the InputError names the extra that it comes with."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(
            f"this model needs {name}: pip install 'spacy-psa[{extra}]' ({error})"
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from reporting its progress, retries and weights that are not used."""
    logging, hub = (
        import_module(f"{name}.utils.logging") for name in ("transformers", "huggingface_hub")
    )
    before = [(each, each.get_verbosity()) for each in (logging, hub)]
    bars = logging.is_progress_bar_enabled()
    for each, _ in before:
        each.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        for each, verbosity in before:
            each.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
