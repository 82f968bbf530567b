"""The functions of `gradsmith.tree` under JAX's older names, and classes whose objects are trees."""

from .tree import all as tree_all
from .tree import broadcast as tree_broadcast
from .tree import flatten as tree_flatten
from .tree import flatten_with_path as tree_flatten_with_path
from .tree import leaves as tree_leaves
from .tree import leaves_with_path as tree_leaves_with_path
from .tree import map as tree_map
from .tree import map_with_path as tree_map_with_path
from .tree import reduce as tree_reduce
from .tree import register_dataclass, register_pytree_node, register_pytree_node_class
from .tree import structure as tree_structure
from .tree import transpose as tree_transpose
from .tree import unflatten as tree_unflatten
from .tree_paths import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey, keystr

__all__ = ["DictKey", "FlattenedIndexKey", "GetAttrKey", "SequenceKey", "keystr", "register_dataclass",
           "register_pytree_node", "register_pytree_node_class", "tree_all", "tree_broadcast", "tree_flatten",
           "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path",
           "tree_reduce", "tree_structure", "tree_transpose", "tree_unflatten"]
