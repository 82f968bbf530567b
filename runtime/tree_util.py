"""The functions of `gradsmith.tree` under JAX's older names, and classes whose objects are trees."""

from .tree import all as tree_all
from .tree import flatten as tree_flatten
from .tree import leaves as tree_leaves
from .tree import map as tree_map
from .tree import reduce as tree_reduce
from .tree import register_dataclass, register_pytree_node, register_pytree_node_class
from .tree import structure as tree_structure
from .tree import transpose as tree_transpose
from .tree import unflatten as tree_unflatten

__all__ = ["register_dataclass", "register_pytree_node", "register_pytree_node_class", "tree_all", "tree_flatten",
           "tree_leaves", "tree_map", "tree_reduce", "tree_structure", "tree_transpose", "tree_unflatten"]
