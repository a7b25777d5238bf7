"""`spacy-psa convert`: published corpora and vectors to the files that spaCy trains from."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from spacy_psa.cli.console import tell, watched
from spacy_psa.cli.options import Label, Lang

convert_app = typer.Typer(
    name="convert", help="Convert corpora and word vectors for spaCy.", no_args_is_help=True
)

Source = Annotated[Path, typer.Argument(metavar="IN", help="File to read, plain or .gz.")]
Collection = Annotated[
    Path, typer.Argument(metavar="IN", help="Folder, archive (.zip, .tar.xz) or file to read.")
]
Target = Annotated[Path, typer.Argument(metavar="OUT.spacy", help="File to write.")]
Scheme = Annotated[
    Literal["auto", "iob1", "iob2", "bioes"],
    typer.Option(help="Tag scheme of the entity column; auto detects it."),
]
Documents = Annotated[
    bool, typer.Option("--documents", help="Write one Doc for each document, with its sentences.")
]
Sections = Annotated[
    str,
    typer.Option(
        help="Sections of the Wall Street Journal to keep (02-21 or 22,24); default: all."
    ),
]
Quotes = Annotated[
    Literal["treebank", "straight", "curly", "mixed"],
    typer.Option(help="Quotation marks: as in the treebank, as in text, or all in turn (mixed)."),
]
Spaces = Annotated[
    bool, typer.Option("--spaces", help="Find out the spaces between words by rules.")
]
Labels = Annotated[
    Literal["bare", "functions", "whole"],
    typer.Option(
        help="Parts of labels to keep: categories (NP), functions too (NP-SBJ), or all (NP-SBJ-1)."
    ),
]
XOverX = Annotated[
    bool,
    typer.Option(
        "--x-over-x/--merge-x-over-x",
        help="Keep a constituent below one with the same label and words, as the files of parsing "
        "papers do, or merge the two.",
    ),
]

Separators = Annotated[
    str,
    typer.Option(
        metavar="CHARS", help="Further characters that end a category: * for NP*SB, . for sn.SUJ."
    ),
]


def _convert(form: str, source: Path, target: Path, lang: str, **options: Any) -> None:
    from spacy_psa.corpora.conversion import convert

    done = convert(form, source, target, lang, watched, **options)
    tell(done.messages, done.warnings)


@convert_app.command()
def conll2003(
    source: Source,
    target: Target,
    scheme: Scheme = "auto",
    documents: Documents = False,
    lang: Lang = "en",
) -> None:
    """Convert CoNLL-2003 columns to a .spacy file.

    IN has the columns word, part of speech, chunk and entity. OUT.spacy gets one Doc for each
    sentence, with tags, entities and chunks, and the number of its document in
    doc.user_data["document"].

    \b
    Example:
      spacy-psa convert conll2003 eng.train train.spacy
    """
    _convert("conll2003", source, target, lang, scheme=scheme, documents=documents)


@convert_app.command()
def cleanconll(
    source: Source,
    target: Target,
    words: Annotated[
        Path | None, typer.Option(help="File of CoNLL-2003 with the words, if IN has none.")
    ] = None,
    patch: Annotated[
        Path | None, typer.Option(help="With --words: the published patch of the words.")
    ] = None,
    documents: Documents = False,
    lang: Lang = "en",
) -> None:
    """Convert CleanCoNLL, CoNLL-2003 with corrected entities, to a .spacy file.

    IN has the columns word, part of speech, entity link and two of entities, of which the last is
    read. The published annotation has no words; --words and --patch add them. OUT.spacy gets one
    Doc for each sentence, with tags, entities and the number of its document.

    \b
    Example:
      spacy-psa convert cleanconll cleanconll_annotations.test test_clean.spacy \\
          --words eng.testb --patch test_tokens.patch
    """
    _convert("cleanconll", source, target, lang, words=words, patch=patch, documents=documents)


@convert_app.command()
def columns(
    source: Source,
    target: Target,
    word: Annotated[int, typer.Option(metavar="I", help="Column of the words.")] = 0,
    ner: Annotated[int | None, typer.Option(metavar="I", help="Column of the entities.")] = None,
    tag: Annotated[
        int | None, typer.Option(metavar="I", help="Column of the parts of speech.")
    ] = None,
    chunk: Annotated[int | None, typer.Option(metavar="I", help="Column of the chunks.")] = None,
    scheme: Scheme = "auto",
    label: Label = "",
    draw: Annotated[
        float,
        typer.Option(
            min=0.0, max=0.4, help="Share to draw by document for development, and for test."
        ),
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    part: Annotated[
        Literal["train", "dev", "test"],
        typer.Option(help="With --draw: a drawn part (dev, test) or the rest (train)."),
    ] = "train",
    documents: Documents = False,
    lang: Lang = "en",
) -> None:
    """Convert columns in any order to a .spacy file.

    IN has a token on each line, and lines without text between sentences. Columns are counted from
    0, or from the last, which is -1. OUT.spacy gets one Doc for each sentence, with the annotation
    of the columns that are named. If IN has -DOCSTART- lines, the number of the sentence's document
    is in doc.user_data["document"].

    Of a corpus in one file, --draw makes three parts: convert it with --part train, dev and test.

    \b
    Example:
      spacy-psa convert columns train.iob train.spacy --word 0 --ner -1
    """
    places = {"word": word, "ner": ner, "tag": tag, "chunk": chunk}
    drawn = {"draw": draw, "seed": seed, "part": part}
    tags = {"scheme": scheme, "label": label}
    _convert("columns", source, target, lang, documents=documents, **places, **tags, **drawn)


@convert_app.command()
def conll2000(
    source: Annotated[Path, typer.Argument(metavar="IN", help="File to read, or conll2000.zip.")],
    target: Target,
    member: Annotated[
        str | None, typer.Option(help="File inside the archive: train.txt or test.txt.")
    ] = None,
    dev: Annotated[
        int, typer.Option(min=0, help="Sentences to draw at random for a development set.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    part: Annotated[
        Literal["train", "dev"],
        typer.Option(help="With --dev: the drawn sentences (dev) or the others (train)."),
    ] = "train",
    lang: Lang = "en",
) -> None:
    """Convert CoNLL-2000 columns to a .spacy file.

    IN has the columns word, part of speech and chunk; it is a file or the published archive.
    OUT.spacy gets one document for each sentence, with tags and chunks.

    \b
    Example:
      spacy-psa convert conll2000 conll2000.zip train.spacy \\
          --member train.txt --dev 1000 --part train
    """
    _convert("conll2000", source, target, lang, member=member, dev=dev, seed=seed, part=part)


@convert_app.command()
def ontonotes(
    source: Collection,
    target: Target,
    folder: Annotated[
        str, typer.Option(help="Folder inside IN to read (v4/data/train); default: all.")
    ] = "",
    sections: Sections = "",
    new_testament: Annotated[
        bool, typer.Option("--new-testament", help="Keep the New Testament, which has no names.")
    ] = False,
    documents: Documents = False,
    quotes: Quotes = "treebank",
    spaces: Spaces = False,
    lang: Lang = "en",
) -> None:
    """Convert OntoNotes 5 (CoNLL-2012) to a .spacy file.

    IN has *_conll files. OUT.spacy gets one Doc for each sentence, with parts of speech, names and
    constituents. Its document and the part of it are in doc.user_data["document"] and ["part"].

    \b
    Example:
      spacy-psa convert ontonotes conll-2012-en.tar.xz dev.spacy \\
          --folder v4/data/development
    """
    files = {"folder": folder, "sections": sections, "new_testament": new_testament}
    text = {"documents": documents, "quotes": quotes, "spaces": spaces}
    _convert("ontonotes", source, target, lang, **files, **text)


@convert_app.command()
def bmes(
    source: Source,
    target: Target,
    scheme: Scheme = "auto",
    join_types: Annotated[
        bool,
        typer.Option("--join-types", help="Join PER.NAM and PER.NOM to the type PER, and so on."),
    ] = False,
    lang: Lang = "zh",
) -> None:
    """Convert Chinese names by character to a .spacy file.

    IN has one character and its tag on each line, as Resume and Weibo do; BMES is the scheme bioes.
    OUT.spacy gets one document for each sentence, with entities; each character is a token.

    \b
    Example:
      spacy-psa convert bmes train.char.bmes train.spacy
    """
    _convert("bmes", source, target, lang, scheme=scheme, join_types=join_types)


@convert_app.command()
def conllu(source: Source, target: Target, documents: Documents = False, lang: Lang = "en") -> None:
    """Convert CoNLL-U, with nested entities, to a .spacy file.

    IN is a file of Universal Dependencies. OUT.spacy gets one Doc for each sentence, with its parts
    of speech. Entities in the last column (Entity=, as in CorefUD) are in doc.spans["sc"], and the
    outer ones in doc.ents. Discontinuous ones and those that go over a sentence bound are left out,
    and their words are in doc.spans["missing_spans"].

    \b
    Example:
      spacy-psa convert conllu en_gum-ud-train.conllu train.spacy
    """
    _convert("conllu", source, target, lang, documents=documents)


@convert_app.command()
def gum(
    source: Collection,
    target: Target,
    part: Annotated[
        Literal["train", "dev", "test", "test2"],
        typer.Option(help="Part of the corpus; test2 is GENTLE."),
    ] = "train",
    documents: Documents = False,
    lang: Lang = "en",
) -> None:
    """Convert GUM to a .spacy file.

    IN has the folders dep and const and the file splits.md. OUT.spacy gets one Doc for each
    sentence, with parts of speech, nested entities in doc.spans["sc"], outer entities in doc.ents,
    constituents and chunks. Its document and genre are in doc.user_data["document"] and ["genre"].

    \b
    Example:
      spacy-psa convert gum gum.tar.xz dev.spacy --part dev
    """
    _convert("gum", source, target, lang, part=part, documents=documents)


@convert_app.command()
def sample(source: Source, target: Target, lang: Lang = "en") -> None:
    """Convert the sample corpus to a .spacy file.

    IN has JSON lines with words, tags, chunks, entities and a tree. OUT.spacy gets one document for
    each line.

    \b
    Example:
      spacy-psa convert sample assets/sample/train.jsonl train.spacy
    """
    _convert("sample", source, target, lang)


@convert_app.command()
def glove(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="The official .zip, or a .txt or .gz file to read.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT.txt", help="File to write.")],
    dim: Annotated[int, typer.Option(min=1, help="Number of components of each vector.")] = 100,
    member: Annotated[
        str | None, typer.Option(help="File inside the .zip; default: the one that fits --dim.")
    ] = None,
) -> None:
    """Convert GloVe vectors for `spacy init vectors`.

    IN is checked line by line. OUT.txt gets the same vectors in word2vec's text format.

    \b
    Example:
      spacy-psa convert glove glove.6B.zip vectors.txt --dim 100
      python -m spacy init vectors en vectors.txt vectors
    """
    from spacy_psa.corpora.conversion import convert_glove

    typer.echo(convert_glove(source, target, dim, member, watch=watched))


@convert_app.command()
def ptb(
    source: Collection,
    target: Target,
    sections: Sections = "",
    labels: Labels = "bare",
    x_over_x: XOverX = False,
    quotes: Quotes = "treebank",
    spaces: Spaces = False,
    lang: Lang = "en",
) -> None:
    """Convert Penn Treebank .mrg files to a .spacy file.

    OUT.spacy gets one document for each tree, with parts of speech and constituents. Empty elements
    and function tags are removed, and the speakers and marks of disfluency of Switchboard. A single
    file may have any name.

    \b
    Example:
      spacy-psa convert ptb treebank/combined train.spacy --sections 02-21
    """
    text = {"quotes": quotes, "spaces": spaces}
    trees = {"numbers": sections, "labels": labels, "x_over_x": x_over_x}
    _convert("ptb", source, target, lang, **trees, **text)


@convert_app.command()
def brackets(
    source: Collection,
    target: Target,
    labels: Labels = "whole",
    x_over_x: XOverX = True,
    indented: Annotated[
        bool, typer.Option("--indented", help="Also read trees with several lines.")
    ] = False,
    quotes: Quotes = "treebank",
    spaces: Spaces = False,
    separators: Separators = "",
    lang: Lang = "en",
) -> None:
    """Convert bracketed trees to a .spacy file.

    IN has one tree on each line; it is a file, or a folder or archive of files with endings such as
    .mrg, .ptb, .parse or .txt. OUT.spacy gets one document for each tree, with parts of speech and
    constituents; the labels are kept as they are.

    \b
    Example:
      spacy-psa convert brackets trees.txt trees.spacy
    """
    text = {"quotes": quotes, "spaces": spaces}
    trees = {"labels": labels, "x_over_x": x_over_x, "separators": separators}
    _convert("brackets", source, target, lang, indented=indented, **trees, **text)


@convert_app.command()
def spmrl(
    source: Collection,
    target: Target,
    labels: Labels = "bare",
    x_over_x: XOverX = True,
    separators: Separators = "",
    lang: Lang = "de",
) -> None:
    """Convert treebanks of the SPMRL shared tasks to a .spacy file.

    IN has .ptb or .mrg files. OUT.spacy gets one document for each tree, with parts of speech and
    constituents. Features (NN##case=nom##) and the root VROOT are left out. The shared tasks score
    punctuation too: evaluate-trees --keep-punctuation.

    \b
    Example:
      spacy-psa convert spmrl train.German.gold.ptb train.spacy --lang de
    """
    trees = {"labels": labels, "x_over_x": x_over_x, "separators": separators}
    _convert("spmrl", source, target, lang, **trees)


@convert_app.command()
def psd(
    source: Collection,
    target: Target,
    labels: Labels = "bare",
    x_over_x: XOverX = True,
    separators: Separators = "",
    lemmas: Annotated[
        bool, typer.Option("--lemmas", help="Words have their lemma after a dash (IcePaHC).")
    ] = False,
    lang: Lang = "en",
) -> None:
    """Convert the parsed corpora of historical English and their kin to a .spacy file.

    IN has .psd files, as of PPCME2, YCOE, IcePaHC and Keyaki. OUT.spacy gets one document for each
    tree, with parts of speech, constituents and lemmas. Ids, codes, empty elements, function tags
    and what follows a semicolon in a label are left out.

    \b
    Example:
      spacy-psa convert psd icepahc/psd train.spacy --lemmas --lang is
    """
    trees = {"labels": labels, "x_over_x": x_over_x, "separators": separators, "lemmas": lemmas}
    _convert("psd", source, target, lang, **trees)


@convert_app.command()
def ctb(
    source: Collection,
    target: Target,
    files: Annotated[
        str, typer.Option(help="Numbers of the files to keep (1-270,440-1151); default: all.")
    ] = "",
    labels: Labels = "bare",
    x_over_x: XOverX = False,
    lang: Lang = "zh",
) -> None:
    """Convert the Penn Chinese Treebank to a .spacy file.

    IN has bracketed files, such as chtb_0001.fid or chtb_0001.nw, with or without mark-up.
    OUT.spacy gets one document for each tree, with parts of speech and constituents. Empty elements
    and function tags are removed.

    \b
    Example:
      spacy-psa convert ctb ctb9.0/data/bracketed train.spacy --files 1-270,440-1151
    """
    _convert("ctb", source, target, lang, numbers=files, labels=labels, x_over_x=x_over_x)


@convert_app.command()
def export(
    source: Collection,
    target: Target,
    sentences: Annotated[
        str, typer.Option(help="Numbers of the sentences to keep (1-40000); default: all.")
    ] = "",
    labels: Labels = "bare",
    discontinuous: Annotated[
        Literal["skip", "raise"],
        typer.Option(help="Leave discontinuous trees out, or raise the parts next to the gap."),
    ] = "skip",
    lang: Lang = "de",
) -> None:
    """Convert TIGER or NEGRA in export format to a .spacy file.

    IN has .export or .negra files. OUT.spacy gets one document for each tree, with parts of speech
    and constituents. Punctuation that hangs at the root is put into the lowest constituent around
    it. Trees that are still discontinuous are left out, or made continuous with --discontinuous
    raise; a warning counts them.

    \b
    Example:
      spacy-psa convert export tiger_release_aug07.export train.spacy --sentences 1-40474
    """
    options = {"labels": labels, "discontinuous": discontinuous}
    _convert("export", source, target, lang, sentences=sentences, **options)
