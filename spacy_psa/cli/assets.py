"""`spacy-psa assets`: brings the files of a corpus, and checks that they are undamaged.

`spacy project assets` downloads the files, too. But it only warns of a wrong checksum, does not go
on after a cut connection, and cannot copy from a folder instead.
"""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Annotated, Any

import typer

from spacy_psa.errors import InputError

LARGE = 2**28
"""Files of this size and more are known by their size alone."""


def assets(
    corpus: Annotated[
        str, typer.Argument(metavar="CORPUS", help="Name of the corpus, as in --vars.corpus.")
    ],
    mirror: Annotated[
        str, typer.Option(help="Folder, or folder of folders, from which files are copied.")
    ] = "",
    task: Annotated[str, typer.Option(help="Task to train for, as in --vars.task.")] = "",
    fetch: Annotated[
        bool, typer.Option("--download", help="Download what is missing or damaged.")
    ] = False,
    project: Annotated[
        Path, typer.Option(help="Project file, which lists assets and checksums.")
    ] = Path("project.yml"),
    record: Annotated[
        Path | None, typer.Option(help="JSON file for the checksums of the files.")
    ] = None,
) -> None:
    """Check, copy or download the files that a corpus needs.

    The files are in `assets/` next to the project file. Missing and damaged files are copied from
    --mirror, if it is given and has them, or else downloaded with --download. A download that was
    cut goes on where it was. A file is replaced when size and checksum are right.

    \b
    Examples:
      spacy-psa assets conll2003 --download
      spacy-psa assets conll2003 --mirror /path/to/files
    """
    from spacy_psa.cli.download import download
    from spacy_psa.corpora.layouts import is_own, layout

    if is_own(corpus):
        paths = sorted(path for path in Path(corpus).rglob("*") if path.is_file())
        _record(record, paths)
        typer.echo(f"{corpus}: {len(paths)} files of your own")
        return
    root = project.parent
    files = layout(corpus)
    if task and task not in files.tasks:
        raise InputError(
            f"{corpus}: has no annotation for the task {task!r}; give --vars.task "
            f"{' or '.join(files.tasks)}"
        )
    paths = [Path("assets") / file for file in files.files()]
    listed = _listed(project)
    if mirror and not Path(mirror).is_dir():
        raise InputError(f"--mirror {mirror}: there is no such folder; check the path")
    missing = []
    for path in paths:
        asset = listed.get(path.as_posix(), {})
        checksum = asset.get("checksum")
        if mirror and not _is_whole(root / path, checksum):
            found = _find(Path(mirror), path.name, checksum)
            if found:
                _copy(found, root / path)
                typer.echo(f"{path}: copied from {found}")
        if fetch and asset.get("url") and not _is_whole(root / path, checksum):
            typer.echo(f"{path}: downloading from {asset['url']}")
            download(asset["url"], root / path, size=asset.get("size"), checksum=checksum)
        if not (root / path).is_file():
            missing.append(str(path) if asset.get("url") else f"{path} (not for download)")
        elif not _is_whole(root / path, checksum):
            raise InputError(
                f"{root / path}: is damaged or is another version ({_wrong(checksum)}); "
                "get another by --download or --mirror"
            )
    if missing:
        where = f" and not in {mirror}" if mirror else ""
        raise InputError(
            f"missing{where}: {', '.join(missing)}; give --download, or a folder "
            "that holds them with --mirror (in a project: --vars.mirror FOLDER)"
        )
    _record(record, [root / path for path in paths])
    typer.echo(f"{corpus}: {len(paths)} files, all there and undamaged")


def _record(target: Path | None, paths: list[Path]) -> None:
    """Write the sizes and checksums of the files, so that a project sees when one has changed."""
    from spacy_psa.corpora.atomic import atomic_path
    from spacy_psa.scoring.provenance import md5

    if target is None:
        return
    found = {}
    for path in paths:
        size = path.stat().st_size
        found[str(path)] = {"size": size, **({"md5": md5(path)} if size < LARGE else {})}
    with atomic_path(target) as temporary:
        temporary.write_text(json.dumps(found, indent=2) + "\n", encoding="utf8")


def _listed(project: Path) -> dict[str, dict[str, Any]]:
    """Read the assets of the project file, by destination."""
    import srsly

    try:
        return {asset["dest"]: asset for asset in srsly.read_yaml(project)["assets"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{project}: no project file with a list of assets; "
            "run this in the project's folder or give --project"
        ) from error


def _is_whole(path: Path, checksum: str | None) -> bool:
    """Check a file by its MD5; without one, a .zip by its directory, which is at its end."""
    from spacy_psa.scoring.provenance import md5

    if not path.is_file():
        return False
    if checksum:
        return md5(path) == checksum
    if path.suffix == ".zip":
        return zipfile.is_zipfile(path)
    return path.stat().st_size > 0


def _wrong(checksum: str | None) -> str:
    return f"its MD5 is not {checksum}" if checksum else "empty or cut off"


def _find(mirror: Path, name: str, checksum: str | None) -> Path | None:
    candidates = [mirror / name, *sorted(mirror.glob(f"*/{name}"))]
    return next((path for path in candidates if _is_whole(path, checksum)), None)


def _copy(source: Path, target: Path) -> None:
    from spacy_psa.corpora.atomic import atomic_path

    with atomic_path(target) as temporary:
        shutil.copyfile(source, temporary)
