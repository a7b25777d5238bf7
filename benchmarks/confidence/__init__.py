"""The cost of confidences and n-best analyses."""
