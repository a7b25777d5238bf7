"""Corpora: a reader for each format, and the conversion to spaCy's `.spacy` files.

Each reader of a published corpus yields one `Doc` for each sentence; those of exports
yield texts with their marks.

| module | contents |
| --- | --- |
| `conll` | the four columns of CoNLL-2003; registered as `spacy-psa.Conll2003.v1` |
| `conll2000` | the three columns of CoNLL-2000, with chunks; `spacy-psa.Conll2000.v1` |
| `bmes` | Chinese names, one character on each line; `spacy-psa.Bmes.v1` |
| `any_columns` | columns in any order, and how to find out the order |
| `conllu`, `gum` | CoNLL-U with nested entities; GUM, with the trees of its sentences |
| `chunks` | chunks from trees, as those of CoNLL-2000 |
| `repository` | corpora of many files in a git repository |
| `token_rows` | CSV, CoNLL-U, WebAnno TSV and JSON of tokens with tags |
| `ontonotes` | CoNLL-2012 documents: parts of speech, names, trees |
| `treebanks` | bracketed trees: Penn, SPMRL and Chinese treebanks, and files of any trees |
| `negra_export`, `projective` | TIGER and NEGRA; discontinuous trees made continuous |
| `spacy_jsonl`, `prodigy`, `label_studio`, `doccano`, `dataturks`, `brat` | exports of tools |
| `uima_xmi` | UIMA CAS XMI, as of INCEpTION |
| `json_tokens` | JSON of tokens with spans, such as GLiNER's |
| `json_records`, `marked_text` | from marked characters to tokens |
| `own_files`, `own_labels`, `own_corpus`, `split_parts` | a folder of files in any format |
| `corpus_check` | figures that show mistakes in a corpus |
| `jsonl` | the JSON lines of the sample corpus |
| `tree_corpus` | trees to train a parser on; `spacy-psa.TreeCorpus.v1` |
| `documents` | documents to train on; `spacy-psa.DocumentCorpus.v1` |
| `unlabelled` | text without annotation; `spacy-psa.WithUnlabelled.v1` |
| `glove` | pretrained vectors for `spacy init vectors` |
| `tag_schemes` | IOB1, IOB2 and BIOES tags |
| `bracketing`, `trees` | constituency trees in brackets, and the parts of them that are kept |
| `head_rules` | the head word of each constituent, and the dependencies that follow |
| `quotes` | quotation marks and spaces, from treebanks to text and back |
| `archives`, `lines`, `columns`, `readers` | shared by the readers |
| `layouts` | the files of each corpus in a project |
| `docbin`, `atomic` | writing; a file appears complete or not at all |

The readers raise `spacy_psa.errors.InputError` for every error that a user can correct. Its
message has the form "FILE:LINE: reason; advice".
"""
