"""Settings that are changed on a component and are to be there when it is loaded again."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

CHANGED = "changed"


class KeptSettings:
    """Saves settings that differ from those that the component was made with.

    A pipeline is made from its config before its components are loaded, so a setting that was
    changed after that would be lost. It is saved with the component, beside the value that it
    replaces. It is taken again where the config still has that value: a config that says something
    else wins.

    Examples:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> ner = nlp.add_pipe("crf_ner")
        >>> ner.decoding = "mbr"
        >>> ner.note_changes()
        >>> ner.cfg["changed"]
        {'decoding': ['viterbi', 'mbr']}
    """

    cfg: dict[str, Any]
    kept: tuple[str, ...] = ()
    """The names of the settings."""
    _made_with: Mapping[str, Any] = MappingProxyType({})

    def remember(self) -> None:
        """Note the settings that the component was made with."""
        self._made_with = {name: getattr(self, name) for name in self.kept}

    def note_changes(self) -> None:
        """Note in `cfg`, which is saved, what has changed since."""
        changed = {
            name: [value, getattr(self, name)]
            for name, value in self._made_with.items()
            if getattr(self, name) != value
        }
        self.cfg.pop(CHANGED, None)
        if changed:
            self.cfg[CHANGED] = changed

    def take_changes(self) -> None:
        """Set what was changed before the component was saved.

        Raises:
            InputError: if a value is not possible.
        """
        for name, (before, value) in self.cfg.get(CHANGED, {}).items():
            if name in self.kept and self._made_with[name] == before:
                setattr(self, name, value)
