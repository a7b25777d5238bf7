"""The constituency parser: a chart over labelled spans, and trees on docs."""
