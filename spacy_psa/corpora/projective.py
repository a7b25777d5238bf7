"""Discontinuous trees made continuous, so that brackets can hold them.

A tree is a list `above`: the n words have the places 0 to n - 1, the constituents those after them,
and the root the last, `len(above)`. `above[i]` is the place of the constituent above i.
"""

from collections.abc import Collection, Sequence


def yields(above: Sequence[int], words: int) -> list[set[int]]:
    """Give the words below each node, the root too.

    Examples:
        >>> yields([3, 4, 3, 4], 3)  # words 0 and 2 are a constituent, around word 1
        [{0}, {1}, {2}, {0, 2}, {0, 1, 2}]
    """
    found: list[set[int]] = [set() for _ in range(len(above) + 1)]
    for word in range(words):
        found[word].add(word)
        node = word
        while node < len(above):
            node = above[node]
            found[node].add(word)
    return found


def path_up(above: Sequence[int], node: int) -> list[int]:
    """Give the nodes above a node, the lowest first, up to the root.

    Examples:
        >>> path_up([3, 4, 3, 4], 0)
        [3, 4]
    """
    found = []
    while node < len(above):
        node = above[node]
        found.append(node)
    return found


def is_discontinuous(above: Sequence[int], words: int) -> bool:
    """Tell whether the words below a node do not stand side by side.

    Examples:
        >>> is_discontinuous([3, 4, 3, 4], 3), is_discontinuous([3, 3, 4, 4], 3)
        (True, False)
    """
    return any(max(y) - min(y) >= len(y) for y in yields(above, words) if y)


def lower_punctuation(above: Sequence[int], words: Sequence[str]) -> list[int]:
    """Put punctuation that hangs at the root into the lowest constituent around it.

    Punctuation at either end of the sentence stays at the root.

    Args:
        above: the tree.
        words: the words; one without letters and digits is punctuation.

    Examples:
        >>> lower_punctuation([3, 4, 3, 4], ["so", ",", "what"])
        [3, 3, 3, 4]
    """
    lowered, root = list(above), len(above)
    marks = {
        i for i, word in enumerate(words)
        if above[i] == root and not any(letter.isalnum() for letter in word)
    }  # fmt: skip
    before: int | None = None
    for i in range(len(words)):
        if i in marks and before is not None:
            after = next((j for j in range(i + 1, len(words)) if j not in marks), None)
            if after is not None:
                around = set(path_up(lowered, before))
                lowered[i] = next(node for node in path_up(lowered, after) if node in around)
        if i not in marks:
            before = i
    return lowered


def raise_blocks(above: Sequence[int], words: int, heads: Collection[int]) -> list[int]:
    """Make a tree continuous by raising.

    From the lowest constituents upwards: of the children of a constituent that do not stand side by
    side, those beside its head stay, and the others hang one constituent higher. Without a head,
    the longest block of children stays, the first of several.

    Args:
        above: the tree.
        words: the number of words.
        heads: the places of heads.

    Examples:
        >>> raise_blocks([3, 4, 3, 4], 3, heads=[2])  # word 0 leaves the constituent of word 2
        [4, 4, 3, 4]
    """
    raised = list(above)
    depths = {node: len(path_up(above, node)) for node in range(words, len(above))}
    for node in sorted(depths, key=lambda node: -depths[node]):
        below = yields(raised, words)  # those of the children are continuous already
        children = [i for i in range(len(above)) if raised[i] == node and below[i]]
        blocks: list[list[int]] = []
        end = -1
        for child in sorted(children, key=lambda child: min(below[child])):
            if not blocks or min(below[child]) != end:
                blocks.append([])
            blocks[-1].append(child)
            end = max(below[child]) + 1
        if len(blocks) > 1:
            stays = max(
                blocks,
                key=lambda block: (
                    any(child in heads for child in block),
                    sum(len(below[child]) for child in block),
                ),
            )
            for block in blocks:
                for child in block if block is not stays else []:
                    raised[child] = above[node]
    return raised
