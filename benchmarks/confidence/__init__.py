"""What confidences and n-best analyses cost."""
