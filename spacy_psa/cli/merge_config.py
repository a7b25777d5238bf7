"""`spacy-psa merge-config`: one training config from a model's and a corpus' settings."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spacy_psa.errors import InputError


def merge_config(
    base: Annotated[Path, typer.Argument(help="A whole training config.")],
    settings: Annotated[Path, typer.Argument(help="Settings that take its settings' place.")],
    target: Annotated[Path, typer.Argument(metavar="OUT.cfg", help="The config to write.")],
) -> None:
    """Lay the settings of one config over another and write the result for `spacy train`.

    Variables (${paths.train}) stay variables. Sections that the base lacks are an
    error, since they would be typing errors.
    """
    from thinc.api import Config

    from spacy_psa.corpora.atomic import atomic_path

    whole, part = _read(base), _read(settings)
    _check(part, whole, settings, base)
    with atomic_path(target) as temporary:
        Config(whole).merge(part).to_disk(temporary, interpolate=False)
    typer.echo(f"{base} + {settings} -> {target}")


def _read(path: Path) -> dict[str, Any]:
    from configparser import Error

    from thinc.api import Config, ConfigValidationError

    try:
        return Config().from_disk(path, interpolate=False)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such config") from error
    except (ConfigValidationError, Error, ValueError) as error:
        raise InputError(f"{path}: not a config ({error})") from error


def _check(
    part: dict[str, Any], whole: dict[str, Any], settings: Path, base: Path, at: str = ""
) -> None:
    for key, value in part.items():
        if isinstance(value, dict):
            if not isinstance(whole.get(key), dict):
                raise InputError(f"{settings}: [{at}{key}]: {base} has no such section")
            _check(value, whole[key], settings, base, f"{at}{key}.")
