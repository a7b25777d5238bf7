"""`python -m spacy_psa`."""

from spacy_psa.app import main

if __name__ == "__main__":
    main()
