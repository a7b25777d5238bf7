"""What a trained model looks at."""
