"""Commands that write training configs: `init config`, `configure` and `merge-config`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from spacy_psa.cli.options import Lang, Task, Vectors

TaskOption = Annotated[Task, typer.Option(help="The annotation to learn.")]
Output = Annotated[Path, typer.Argument(metavar="OUT.cfg", help="Config to write.")]
Log = Annotated[
    Path | None, typer.Option(help="File to which the training logs its scores, as JSON lines.")
]


def init_config(
    output: Output,
    train: Annotated[Path, typer.Option(help="Training data, a .spacy file.")],
    dev: Annotated[Path, typer.Option(help="Development data, a .spacy file.")],
    task: TaskOption = "ner",
    vectors: Vectors = None,
    optimize: Annotated[
        Literal["accuracy", "efficiency", "memory"],
        typer.Option(help="The most important property."),
    ] = "accuracy",
    base: Annotated[
        str | None,
        typer.Option(help="Pretrained encoder: a name on the Hugging Face Hub, or a folder."),
    ] = None,
    frozen: Annotated[
        bool, typer.Option("--frozen", help="Only train the layers above the encoder of --base.")
    ] = False,
    lang: Lang = "en",
    sentencizer: Annotated[
        bool,
        typer.Option(
            "--sentencizer", help="Add a component that splits texts into sentences first."
        ),
    ] = False,
) -> None:
    """Write a training config for your corpus.

    Chooses a config and adapts its epochs, patience, evaluations and schedules to the size of the
    training data. OUT.cfg is ready for training, and the command to train it is printed. If the
    training data for entities has fewer than 75,000 words, a config for small data is used for each
    --optimize. If fewer than a tenth of the words are in entities, missed entities cost more in
    training. With --base, the encoder is fine-tuned, or stays as it is with --frozen. If its
    tokenizer ignores capitals, the model also reads the shape and the characters of words.

    \b
    Example:
      spacy-psa init config config.cfg --train corpus/train.spacy --dev corpus/dev.spacy
      spacy-psa train config.cfg --output training
    """
    from spacy_psa.training.recipes import make_config, write_config

    config, line = make_config(task, train, dev, vectors, optimize, base, lang, sentencizer, frozen)
    write_config(config, output, line)
    typer.echo(f"{output}: {line}")
    typer.echo(f"Next: spacy-psa train {output} --output training")


def configure(
    corpus: Annotated[
        str, typer.Argument(metavar="CORPUS", help="Name of a corpus, or folder with own files.")
    ],
    source: Annotated[
        Path, typer.Argument(metavar="PREPARED", help="Folder that `prepare` has written.")
    ],
    target: Output,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Settings that replace those of the config."),
    ] = None,
    task: TaskOption = "ner",
    config: Annotated[
        str, typer.Option(help="Config of a known corpus; by default psa, or best for spans.")
    ] = "",
    log: Log = None,
) -> None:
    """Write the training config of a project.

    For a known corpus, this is `merge-config` with configs/TASK/CONFIG.cfg and the settings in
    configs/corpora/. For a folder with own files, it is `init config`.

    \b
    Example:
      spacy-psa configure conll2003 corpus/conll2003 training/config.cfg --config bilstm_crf
    """
    from spacy_psa.training.layers import assignments
    from spacy_psa.training.recipes import project_config, write_config

    settings = assignments(values or [])
    made, line, message = project_config(corpus, source, task, config, target, settings)
    write_config(made, target, line, log)
    typer.echo(message)


def merge_config(
    base: Annotated[Path, typer.Argument(metavar="BASE.cfg", help="Complete training config.")],
    settings: Annotated[
        Path,
        typer.Argument(metavar="SETTINGS.cfg", help="Settings that replace those of BASE.cfg."),
    ],
    target: Output,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Settings that replace those of both files."),
    ] = None,
    log: Log = None,
) -> None:
    """Combine a training config with settings of a corpus.

    Writes OUT.cfg for `spacy train`: BASE.cfg with the settings of SETTINGS.cfg, and then those on
    the command line. Variables such as ${paths.train} stay variables. A section that is not in
    BASE.cfg raises an error, because it is probably misspelt; only [initialize.components.NAME] may
    be new.

    SETTINGS.cfg may have a section [corpus] with the number of training `sentences`, and of their
    `words` for a BASE.cfg whose batches are counted in words. OUT.cfg then evaluates, stops and
    lowers the learning rate after the same numbers of epochs as BASE.cfg, counted for this corpus.
    If you set training.max_epochs, training and schedule end after that many epochs. BASE.cfg must
    evaluate once per epoch.

    A VALUE is JSON, as for `spacy train`, or else a string. The value of a section is a JSON
    object, whose settings replace those of the section; if it names another function, it replaces
    the section.

    \b
    Example:
      spacy-psa merge-config configs/ner/psa.cfg configs/corpora/conll2003.cfg \\
          config.cfg training.max_epochs=3
    """
    from spacy_psa.training.layers import assignments, layered
    from spacy_psa.training.recipes import write_config

    merged = layered(base, [settings], assignments(values or []))
    write_config(merged, target, log=log)
    typer.echo(f"{base} + {settings} -> {target}")
