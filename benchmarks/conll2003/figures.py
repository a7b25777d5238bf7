"""The records that the page of this experiment names, by system."""

psa = "conll2003/psa, psa-seed*"
arxiv = "conll2003/psa_arxiv, psa_arxiv-seed*"
baseline = "conll2003/bilstm_crf, bilstm_crf-seed*"
