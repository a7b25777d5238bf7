"""The page of the classes and functions that programs use."""

from docs.generate.markdown import NOTE, embedded

# Heading, text, and for each object its dotted name and the members to show.
SECTIONS: list[tuple[str, str, list[tuple[str, list[str]]]]] = [
    (
        "Every component",
        "All four components have these methods, in addition to those of spaCy's `TrainablePipe`. "
        "All answers are exact.",
        [
            (
                "spacy_psa.pipeline.component.StructuredPipe",
                [
                    "analyses",
                    "kbest",
                    "marginals",
                    "entropy",
                    "posterior",
                    "labels",
                    "label_data",
                    "add_label",
                    "initialize",
                    "pipe",
                    "update",
                ],
            ),
            (
                "spacy_psa.pipeline.analyses.DocAnalyses",
                ["given", "best", "kbest", "posterior", "marginals", "entropy", "sample"],
            ),
        ],
    ),
    (
        "Components of a chain",
        "`crf_ner`, `crf_chunker` and `crf_tagger` also have these.",
        [
            (
                "spacy_psa.pipeline.chain.labeler.ChainLabeler",
                ["tags", "scheme", "distribution", "temperature", "coverage", "rehearse"],
            ),
            ("spacy_psa.pipeline.chain.spans.SpanLabeler", ["prediction_sets"]),
            ("spacy_psa.pipeline.chain.tagger.CRFTagger", ["prediction_sets"]),
        ],
    ),
    (
        "The parser",
        "`constituency_parser` also has these.",
        [
            (
                "spacy_psa.pipeline.parser.parser.ConstituencyParser",
                ["parse", "distribution", "tags"],
            ),
            ("spacy_psa.pipeline.parser.trees.TreeSentence", ["scored"]),
        ],
    ),
    (
        "Distributions",
        "A distribution over structures, in torch, without spaCy.",
        [
            (
                "spacy_psa.structs.distribution.StructuredDistribution",
                ["log_partition", "score", "log_prob", "argmax", "max", "kbest", "sample"],
            ),
            (
                "spacy_psa.structs.chain.LinearChain",
                [
                    "from_emissions",
                    "marginals",
                    "pairwise_marginals",
                    "entropy",
                    "argmax",
                    "max",
                    "constrain",
                ],
            ),
            (
                "spacy_psa.structs.tree.SpanTree",
                [
                    "from_spans",
                    "marginals",
                    "span_marginals",
                    "entropy",
                    "argmax",
                    "max",
                    "augment",
                    "hinge",
                    "constrain",
                ],
            ),
        ],
    ),
    (
        "Attributes of docs",
        "These functions add the [custom attributes](components.md#custom-attributes).",
        [
            ("spacy_psa.pipeline.chain.extensions.register", []),
            ("spacy_psa.pipeline.parser.extensions.register_extensions", []),
            ("spacy_psa.pipeline.parser.extensions.remove_extensions", []),
            ("spacy_psa.pipeline.parser.extensions.NonConstituentException", []),
            ("spacy_psa.pipeline.parser.heads.head_token", []),
            ("spacy_psa.pipeline.parser.heads.dependencies", []),
        ],
    ),
    (
        "Analyses of a trained model",
        "These functions analyse a trained model.",
        [
            ("spacy_psa.analysis.attention.inspect", []),
            ("spacy_psa.laboratory.analyses.counted_scores.counts_by_length", []),
            ("spacy_psa.scoring.sentence_counts.by_length", []),
            ("spacy_psa.laboratory.analyses.convergence.convergence", []),
            ("spacy_psa.laboratory.analyses.position_encodings.products", []),
            ("spacy_psa.laboratory.analyses.ablation.recalls", []),
            ("spacy_psa.laboratory.analyses.parser_ablation.ablate", []),
            ("spacy_psa.analysis.temperature.fit_temperature", []),
        ],
    ),
    (
        "Annotation on data engines",
        "See [many machines](../how-to/many-machines.md).",
        [
            ("spacy_psa.annotation.row_annotator.RowAnnotator", ["stream"]),
        ],
    ),
    (
        "Errors",
        "Wrong input raises an `InputError`, a `ValueError`. Its message explains what to do.",
        [
            ("spacy_psa.errors.InputError", []),
            ("spacy_psa.errors.SettingError", []),
        ],
    ),
]


def page() -> str:
    """The page of the Python API."""
    parts = [
        NOTE,
        "# Python",
        "The classes and functions that a program uses. Shapes are in round brackets: B "
        "sentences, n tokens, K tags, L labels.",
    ]
    for heading, text, objects in SECTIONS:
        parts += [f"## {heading}", text]
        parts += [
            embedded(
                name,
                show_root_heading=True,
                show_root_toc_entry=True,
                members=members,
                inherited_members=bool(members),
                heading_level=3,
            )
            for name, members in objects
        ]
    return "\n\n".join(parts) + "\n"


def identifiers() -> list[str]:
    """The dotted names that the page embeds, members too."""
    return [
        dotted
        for _, _, objects in SECTIONS
        for name, members in objects
        for dotted in (name, *(f"{name}.{member}" for member in members))
    ]
