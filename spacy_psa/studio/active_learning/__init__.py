"""Annotation by decisions: their store, the queue of texts, exports, and training from them."""
