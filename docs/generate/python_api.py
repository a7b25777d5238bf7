"""The page of the classes and functions that programs use."""

from docs.generate.markdown import NOTE, embedded

# Heading, introduction, and the objects of `spacy_psa` with the members to show.
SECTIONS = [
    (
        "Every component",
        "All components have these methods, in addition to those of spaCy's `TrainablePipe`. "
        "All answers are exact.",
        {
            "pipeline.component.StructuredPipe": "analyses kbest marginals entropy posterior labels"
            " label_data add_label initialize distribution pipe update",
            "pipeline.analyses.DocAnalyses": "given best kbest posterior marginals entropy sample",
        },
    ),
    (
        "Components of a chain",
        "`crf_ner`, `crf_chunker` and `crf_tagger` also have these.",
        {
            "pipeline.chain.labeler.ChainLabeler": "tags scheme temperature rehearse",
            "pipeline.coverage.Calibrated": "coverage recall counts",
            "pipeline.chain.spans.SpanLabeler": "prediction_sets",
            "pipeline.chain.redaction.shown_spans": "",
            "pipeline.chain.redaction.redact": "",
            "pipeline.chain.redaction.Redaction": "moved",
            "pipeline.chain.mention_counts.count_mentions": "",
            "pipeline.chain.mention_counts.TextCounts": "add distinct intervals",
            "pipeline.chain.tagger.CRFTagger": "prediction_sets",
        },
    ),
    (
        "Nested spans",
        "`crf_spans` also has this.",
        {"pipeline.nested.spans.NestedSpanLabeler": "prediction_sets"},
    ),
    (
        "The parser",
        "`constituency_parser` also has these.",
        {
            "pipeline.parser.parser.ConstituencyParser": "parse tags",
            "pipeline.parser.trees.TreeSentence": "scored",
        },
    ),
    (
        "Distributions",
        "A distribution over structures, in torch, without spaCy.",
        {
            "structs.distribution.StructuredDistribution": "log_partition score log_prob argmax max"
            " kbest sample",
            "structs.chain.LinearChain": "from_emissions marginals pairwise_marginals entropy"
            " argmax max constrain",
            "structs.tree.SpanTree": "from_spans marginals span_marginals entropy argmax max"
            " augment hinge constrain",
            "structs.nested_spans.NestedSpans": "marginals entropy max constrain",
        },
    ),
    (
        "Attributes of docs",
        "These functions add the [custom attributes](components.md#custom-attributes).",
        {
            "pipeline.chain.extensions.register": "",
            "pipeline.parser.extensions.register_extensions": "",
            "pipeline.parser.extensions.remove_extensions": "",
            "pipeline.parser.extensions.NonConstituentException": "",
            "pipeline.parser.heads.head_token": "",
            "pipeline.parser.heads.dependencies": "",
        },
    ),
    (
        "Analyses of a trained model",
        "These functions analyse a trained model.",
        {
            "analysis.attention.inspect": "",
            "laboratory.analyses.counted_scores.counts_by_length": "",
            "scoring.sentence_counts.by_length": "",
            "laboratory.analyses.convergence.convergence": "",
            "laboratory.analyses.position_encodings.products": "",
            "laboratory.analyses.ablation.recalls": "",
            "laboratory.analyses.parser_ablation.ablate": "",
            "analysis.temperature.fit_temperature": "",
        },
    ),
    (
        "Annotation with data engines",
        "See [many machines](../how-to/many-machines.md).",
        {"annotation.row_annotator.RowAnnotator": "stream"},
    ),
    (
        "Errors",
        "Wrong input raises an `InputError`, a `ValueError`. Its message explains what to do.",
        {"errors.InputError": "", "errors.SettingError": ""},
    ),
]


def page() -> str:
    """The page of the Python API."""
    parts = [
        NOTE,
        "# Python",
        "These are the classes and functions for programs. Shapes are in round brackets: B "
        "sentences, n tokens, K tags, L labels.",
    ]
    for heading, text, objects in SECTIONS:
        parts += [f"## {heading}", text]
        parts += [
            embedded(
                f"spacy_psa.{name}",
                show_root_heading=True,
                show_root_toc_entry=True,
                members=members.split(),
                inherited_members=bool(members),
                heading_level=3,
            )
            for name, members in objects.items()
        ]
    return "\n\n".join(parts) + "\n"


def identifiers() -> list[str]:
    """The dotted names that the page embeds, including members."""
    return [
        ".".join(["spacy_psa", name, *member])
        for *_, objects in SECTIONS
        for name, members in objects.items()
        for member in ([], *([each] for each in members.split()))
    ]
