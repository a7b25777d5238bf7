"""The studio: a page in the browser to look at pipelines, correct them and teach them."""
