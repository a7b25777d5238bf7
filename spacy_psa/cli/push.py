"""`spacy-psa push`: puts a pipeline on the Hugging Face Hub."""

import json
from pathlib import Path
from typing import Annotated

import typer

from spacy_psa.errors import InputError


def push(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a pipeline.")],
    repository: Annotated[
        str, typer.Argument(metavar="NAME/REPOSITORY", help="Where it goes, such as ada/en_names.")
    ],
    package: Annotated[
        Path | None,
        typer.Option(help="Archive or wheel that `spacy package` has made, to put beside it."),
    ] = None,
    private: Annotated[bool, typer.Option(help="Whether a new repository is private.")] = False,
    message: Annotated[str, typer.Option(help="Message of the commit.")] = "Update the pipeline",
    token: Annotated[
        str | None,
        typer.Option(help="Token with the right to write.", envvar="HF_TOKEN", show_default=False),
    ] = None,
) -> None:
    """
    Put a pipeline on the Hugging Face Hub, in one commit.

    All files of MODEL go there, so that `spacy.load` opens what
    `huggingface_hub.snapshot_download` has fetched. MODEL/README.md becomes the page of the
    repository: write it by `spacy-psa describe --card`. A repository that is not there is made.
    The variable HF_ENDPOINT is the address of another hub.

    \b
    Example:
      spacy-psa describe training/model-best meta.json --card training/model-best/README.md
      spacy-psa push training/model-best ada/en_names
    """
    try:
        from huggingface_hub import CommitOperationAdd, HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ModuleNotFoundError as error:
        raise InputError(
            "huggingface_hub is not installed: pip install 'spacy-psa[hub]'"
        ) from error
    try:
        meta = json.loads((model / "meta.json").read_text(encoding="utf8"))
        title = f"{meta['lang']}_{meta['name']} {meta['version']}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{model}: is no folder of a pipeline ({error}); give one that `spacy-psa train` wrote"
        ) from error
    if not (model / "README.md").exists():
        typer.echo(
            f"warning: {model}: has no README.md for the page; see `spacy-psa describe --card`",
            err=True,
        )
    if package is not None and not package.is_file():
        raise InputError(
            f"--package {package}: no such file; `spacy package` writes one below dist"
        )
    files = {path.relative_to(model).as_posix(): path for path in sorted(model.rglob("*"))}
    files |= {package.name: package} if package else {}
    added = [CommitOperationAdd(name, path) for name, path in files.items() if path.is_file()]
    hub = HfApi(token=token, library_name="spacy-psa")
    try:
        hub.create_repo(repository, private=private or None, exist_ok=True)
        done = hub.create_commit(repository, added, commit_message=message)
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        said = str(error).strip().partition("\n")[0]
        raise InputError(f"{repository}: the hub did not take {title} ({said})") from error
    typer.echo(f"{title}: {len(added)} files, {done.commit_url}")
