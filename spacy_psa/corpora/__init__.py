"""Corpora: one reader a format, each giving one sentence a `Doc`, and the conversion to `.spacy`.

| module | what |
| --- | --- |
| `conll` | the four columns of CoNLL-2003, also as the reader `spacy-psa.Conll2003.v1` |
| `conll2000` | three columns with chunks, `spacy-psa.Conll2000.v1` |
| `ontonotes` | CoNLL-2012 documents: parts of speech, names, trees |
| `ptb` | the Penn Treebank's .mrg files; a bracketed tree a line |
| `bmes` | Chinese names, a character a line, `spacy-psa.Bmes.v1` |
| `jsonl` | the layered JSON lines of the sample corpus |
| `sample`, `sample_grammar`, `sample_words` | the generator of the sample corpus |
| `glove` | pretrained vectors for `spacy init vectors` |
| `schemes`, `bracketing`, `trees` | tag schemes and constituency trees |
| `archives`, `lines`, `columns`, `sections`, `make_doc`, `readers` | shared by the readers |
| `layouts` | the files of each corpus in a project |
| `docbin`, `atomic` | writing: a file appears whole or not at all |

Whatever a user can mend is raised as `spacy_psa.errors.InputError`
"FILE:LINE: reason; what to do".
"""
