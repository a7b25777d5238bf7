"""The page in the browser and the HTTP interface: annotation, analyses, evidence."""
