"""PSA-BiLSTM-CRF and its baseline on CoNLL-2003."""
