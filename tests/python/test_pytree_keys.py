"""Key paths, saved forms and predicates of nests: texts and values as PyTorch 2.13 gives them."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
import strata.utils._pytree as pt

Pair = namedtuple("Pair", "x y")
NEST = {"a": [1, 2], "b": (3, {"c": 4}), "d": OrderedDict(z=1), "e": Pair(1, 2), "g": deque([1], maxlen=3), "n": None}


def test_each_leaf_has_its_path():
    keyed, spec = pt.tree_flatten_with_path(NEST)
    assert [pt.keystr(path) for path, _ in keyed] == [
        "['a'][0]", "['a'][1]", "['b'][0]", "['b'][1]['c']", "['d']['z']", "['e'].x", "['e'].y", "['g'][0]", "['n']"]  # fmt: skip
    assert repr(keyed[3][0]) == "(MappingKey(key='b'), SequenceKey(idx=1), MappingKey(key='c'))"
    assert repr(keyed[5][0][1]) == "GetAttrKey(name='x')"
    assert [leaf for _, leaf in keyed] == pt.tree_leaves(NEST) and spec == pt.tree_structure(NEST)
    assert all(pt.key_get(NEST, path) is leaf for path, leaf in pt.tree_leaves_with_path(NEST))


def test_a_function_of_path_and_leaves():
    assert pt.tree_map_with_path(lambda p, a, b: (pt.keystr(p), a, b), [1, (2,)], [3, (4,)]) == [("[0]", 1, 3), (("[1][0]", 2, 4),)]
    assert pt.tree_map_with_path(lambda p, x: x, []) == []


def test_paths_of_registered_classes():
    class Silent:
        pass

    class Keyed:
        def __init__(self, v):
            self.v = v

    pt.register_pytree_node(Silent, lambda s: ([], None), lambda v, c: Silent())
    pt.register_pytree_node(Keyed, lambda k: ([k.v], None), lambda v, c: Keyed(*v),
                            flatten_with_keys_fn=lambda k: ([(pt.GetAttrKey("v"), k.v)], None))  # fmt: skip
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn for type"):
        pt.tree_flatten_with_path(Silent())
    assert pt.tree_leaves_with_path([Keyed(1)]) == [((pt.SequenceKey(0), pt.GetAttrKey("v")), 1)]


def test_a_form_prints_over_lines_and_is_saved():
    spec = pt.tree_structure({"a": [1, 2], "f": defaultdict(list, q=1), "e": Pair(1, ())})
    assert repr(spec) == (
        "TreeSpec(dict, ['a', 'f', 'e'], [TreeSpec(list, None, [*,\n    *]),\n  TreeSpec(defaultdict, [<class 'list'>, ['q']], [*]),\n"
        f"  TreeSpec(namedtuple, {Pair}, [*,\n    TreeSpec(tuple, None, [])])])"
    )
    spec = pt.tree_structure({"a": [1, (2,)]})
    text = pt.treespec_dumps(spec)
    assert text == (
        '[1, {"type": "builtins.dict", "context": "[\\"a\\"]", "children_spec": [{"type": "builtins.list", "context": "null", '
        '"children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": "builtins.tuple", "context": "null", '
        '"children_spec": [{"type": null, "context": null, "children_spec": []}]}]}]}]'
    )
    assert pt.treespec_loads(text) == spec
    with pytest.raises(NotImplementedError, match="has no name to be saved by"):
        pt.treespec_dumps(pt.tree_structure(Pair(1, 2)))
    ordered = "OrderedDict([('z', *)])" if sys.version_info < (3, 12) else "OrderedDict({'z': *})"
    assert pt.treespec_pprint(pt.tree_structure(NEST)) == (
        "{'a': [*, *], 'b': (*, {'c': *}), 'd': " + ordered + ", 'e': Pair(x=*, y=*), 'g': deque([*], maxlen=3), 'n': *}"
    )


def test_predicates():
    assert pt.tree_all_only(int, lambda x: x > 0, NEST) and not pt.tree_any_only(int, lambda x: x > 4, NEST)
    assert pt.arg_tree_leaves(1, [2], k=3) == [1, 2, 3]
    assert pt.tree_is_leaf(1) and not pt.tree_is_leaf([]) and pt.tree_is_leaf([], is_leaf=lambda x: True)
    assert pt.is_namedtuple_instance(Pair(1, 2)) and pt.is_namedtuple_class(Pair) and not pt.is_namedtuple((1,))


def test_classes_that_derive_from_dict_register_with_its_functions():
    from strata.utils import _pytree

    class Output(dict):
        pass

    _pytree.register_pytree_node(
        Output, _pytree._dict_flatten, lambda values, keys: Output(_pytree._dict_unflatten(values, keys)), flatten_with_keys_fn=_pytree._dict_flatten_with_keys
    )
    tree = [Output(a=1, b=(2, 3))]
    leaves, spec = _pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3] and type(_pytree.tree_unflatten(leaves, spec)[0]) is Output
    assert [_pytree.keystr(path) for path, _ in _pytree.tree_leaves_with_path(tree)] == ["[0]['a']", "[0]['b'][0]", "[0]['b'][1]"]
