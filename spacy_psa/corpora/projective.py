"""Discontinuous trees made continuous, so that brackets can hold them.

A tree is a list `above`: the n words have the places 0 to n - 1, the constituents those after them,
and the root the last, `len(above)`. `above[i]` is the place of the constituent above i.
"""

from collections.abc import Collection, Sequence


def yields(above: Sequence[int], words: int) -> list[set[int]]:
    """Return the words below each node, including the root."""
    below: list[set[int]] = [set() for _ in range(len(above) + 1)]
    for word in range(words):
        for node in (word, *path_up(above, word)):
            below[node].add(word)
    return below


def path_up(above: Sequence[int], node: int) -> list[int]:
    """Return the nodes above a node, the lowest first, up to the root."""
    path = []
    while node < len(above):
        node = above[node]
        path.append(node)
    return path


def is_discontinuous(above: Sequence[int], words: int) -> bool:
    """Tell whether there are other words between those below a node."""
    return any(max(y) - min(y) >= len(y) for y in yields(above, words) if y)


def lower_punctuation(above: Sequence[int], words: Sequence[str]) -> list[int]:
    """Put punctuation that hangs at the root into the lowest constituent around it.

    Punctuation, which is a word without letters and digits, stays at the root at either end of the
    sentence.
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

    From the lowest constituents upwards: of the children of a constituent that are not side by
    side, those next to its head stay, and the others hang one constituent higher. Without a head,
    the longest block of children stays, the first of several. `heads` are the places of heads.
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
