"""The cheapest cut through a network, by augmenting paths along shortest ways.

Source: E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", Soviet
Mathematics Doklady 11 (1970).  SciPy has one, too, whose import takes longer than all of a derivative's transpilation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator

Node = Hashable
INFINITE = 1 << 60


class Network:
    """Directed edges with int capacities."""

    def __init__(self) -> None:
        self._number: dict[Node, int] = {}
        self._out: list[list[int]] = []          # edges leaving each node
        self._to: list[int] = []                 # edge e runs to _to[e]; e ^ 1 is its reverse
        self._room: list[int] = []

    def edge(self, start: Node, end: Node, capacity: int) -> None:
        a, b = self._node(start), self._node(end)
        for at, to, room in ((a, b, min(capacity, INFINITE)), (b, a, 0)):
            self._out[at].append(len(self._to))
            self._to.append(to)
            self._room.append(room)

    def _node(self, node: Node) -> int:
        if node not in self._number:
            self._number[node] = len(self._out)
            self._out.append([])
        return self._number[node]

    def sink_side(self, source: Node, sink: Node) -> set[Node]:
        """Cut with least capacity and give the nodes that the sink is still reached from: of all such cuts, the one
        with the fewest of them."""
        s, t = self._node(source), self._node(sink)
        while True:
            level = self._levels(s, t)
            if level[t] < 0:
                break
            ways = [iter(edges) for edges in self._out]
            while self._augment(s, t, level, ways):
                pass
        reached, pending = {t}, deque([t])
        while pending:
            for edge in self._out[pending.popleft()]:
                at = self._to[edge]
                if at not in reached and self._room[edge ^ 1] > 0:
                    reached.add(at)
                    pending.append(at)
        return {node for node, number in self._number.items() if number in reached}

    def _levels(self, s: int, t: int) -> list[int]:
        level = [-1] * len(self._out)
        level[s] = 0
        pending = deque([s])
        while pending:
            at = pending.popleft()
            for edge in self._out[at]:
                if self._room[edge] > 0 and level[self._to[edge]] < 0:
                    level[self._to[edge]] = level[at] + 1
                    pending.append(self._to[edge])
        return level

    def _augment(self, s: int, t: int, level: list[int], ways: list[Iterator[int]]) -> bool:
        """Send what fits along one shortest path; False where there is none left."""
        path: list[int] = []
        at = s
        while at != t:
            for edge in ways[at]:
                if self._room[edge] > 0 and level[self._to[edge]] == level[at] + 1:
                    path.append(edge)
                    at = self._to[edge]
                    break
            else:
                if not path:
                    return False
                level[at] = -2                       # a dead end
                at = self._to[path.pop() ^ 1]
        amount = min(self._room[edge] for edge in path)
        for edge in path:
            self._room[edge] -= amount
            self._room[edge ^ 1] += amount
        # The walk starts over from the source: its edges that still have room are looked at again.
        for edge in path:
            start = self._to[edge ^ 1]
            ways[start] = iter(self._out[start])
        return True
