"""Whether asking for what the model is unsure of saves annotation."""
