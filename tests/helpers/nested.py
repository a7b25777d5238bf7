"""All sets of nested spans of short sentences, one by one."""

import itertools

Spans = list[tuple[int, int, int]]


def spans_of(n: int, longest: int | None) -> list[tuple[int, int]]:
    every = itertools.combinations(range(n + 1), 2)
    return [(i, j) for i, j in every if longest is None or j - i <= longest]


def cross(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]


def nested_sets(n: int, labels: int, longest: int | None = None) -> list[Spans]:
    """Every set of nested spans, each in preorder."""
    sets: list[Spans] = [[]]
    for i, j in spans_of(n, longest):
        free = [own for own in sets if not any(cross((i, j), span) for span in own)]
        sets += [[*own, (i, j, label)] for own in free for label in range(1, labels + 1)]
    return [sorted(own, key=lambda s: (s[0], -s[1])) for own in sets]


def layered_sets(n: int, labels: int, longest: int | None = None) -> list[Spans]:
    """Every set of spans of which none overlaps one of its own label."""
    sets: list[Spans] = [[]]
    for i, j in spans_of(n, longest):
        for label in range(1, labels + 1):
            free = [
                own for own in sets if not any(k == label and s < j and i < e for s, e, k in own)
            ]
            sets += [[*own, (i, j, label)] for own in free]
    return [sorted(own, key=lambda s: (s[0], -s[1], s[2])) for own in sets]
