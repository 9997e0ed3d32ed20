"""From the links in a file to a tree whose active path holds everything that the model saw.

Some clients hang the results of parallel calls, and what hooks say, beside the path that goes on from the newest of them, so that
following parents from the leaf would lose the others. Here a *branch* is only what continues the conversation: a subtree with an
assistant message or typed text in it. Everything else (results, injected texts) is put onto the path that it hangs off, at the
place where it arrived.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

__all__ = ["arrival_order", "straightened"]


def arrival_order(parents: list[int | None]) -> list[int]:
    """The nodes 0.. in order of arrival, but a parent before its children; links that close a circle are cut in `parents`."""
    order: list[int] = []
    state = bytearray(len(parents))  # 0 unseen, 1 on the way, 2 placed
    for start in range(len(parents)):
        way: list[int] = []
        at: int | None = start
        while at is not None and state[at] == 0:
            state[at] = 1
            way.append(at)
            at = parents[at]
        if at is not None and state[at] == 1:
            parents[way[-1]] = None
        for node in reversed(way):
            state[node] = 2
            order.append(node)
    return order


def straightened(
    parents: Sequence[int | None], branching: Sequence[bool], order: Sequence[int], leaf: int | None
) -> tuple[list[int | None], int | None]:
    """New parents and leaf, with everything that is no branch of its own put onto the path that it hangs off.

    Args:
        parents: parent of each node, by index; None for a root.
        branching: whether a node continues the conversation.
        order: all nodes, a parent before its children.
        leaf: the node at which the active path ends.

    Returns:
        The parents, each earlier in `order` than its children, and the end of the active path.
    """
    root = len(parents)
    rank = [0] * root + [-1]
    for position, node in enumerate(order):
        rank[node] = position
    trunk = [*branching, True]
    for node in reversed(order):
        parent = parents[node]
        if trunk[node] and parent is not None:
            trunk[parent] = True

    end = root if leaf is None else leaf
    while not trunk[end]:
        parent = parents[end]
        end = root if parent is None else parent
    onward = _continuations(parents, trunk, order, end)
    hung = _hung(parents, trunk, order, rank, onward)

    new: list[int | None] = [None] * root
    for spot, nodes in hung.items():
        before = None if spot == root else spot
        for node in nodes:
            new[node] = before
            before = node
    for node in order:
        if trunk[node]:
            parent = parents[node]
            spot = root if parent is None else parent
            nodes = hung.get(spot, [])
            at = bisect_left(nodes, rank[node], key=rank.__getitem__)
            new[node] = nodes[at - 1] if at else parent
    last = hung.get(end)
    return new, last[-1] if last else (None if end == root else end)


def _continuations(
    parents: Sequence[int | None], trunk: Sequence[bool], order: Sequence[int], end: int
) -> dict[int, int]:
    """For each node of the trunk, the child by which its path goes on: the one on the active path, else the newest."""
    root = len(parents)
    onward: dict[int, int] = {}
    for node in order:
        if trunk[node]:
            parent = parents[node]
            onward[root if parent is None else parent] = node
    onward.pop(end, None)
    at = end
    while at != root:
        parent = parents[at]
        up = root if parent is None else parent
        onward[up] = at
        at = up
    return onward


def _hung(
    parents: Sequence[int | None],
    trunk: Sequence[bool],
    order: Sequence[int],
    rank: Sequence[int],
    onward: dict[int, int],
) -> dict[int, list[int]]:
    """The nodes beside the trunk, by the trunk node after which they arrived, in order."""
    root = len(parents)
    anchor: dict[int, int] = {}
    jump: dict[int, int] = {}
    hung: dict[int, list[int]] = {}
    for node in order:
        if trunk[node]:
            continue
        parent = parents[node]
        up = root if parent is None else parent
        anchor[node] = up if trunk[up] else anchor[up]
        spot = anchor[node]
        way: list[int] = []
        while True:
            # Ranks only grow here, so a step once taken is taken by all later nodes: the way can be remembered.
            further = jump.get(spot)
            if further is None:
                further = onward.get(spot)
                if further is None or rank[further] > rank[node]:
                    break
            way.append(spot)
            spot = further
        for passed in way:
            jump[passed] = spot
        hung.setdefault(spot, []).append(node)
    return hung
