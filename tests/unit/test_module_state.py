"""Modules keep no state: objects of a process are in one cache with a bound. And types of arrays have one name each."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "gamelake").rglob("*.py"))}
ARRAYS = "gamelake/model/arrays.py"
# Containers that begin empty, and so exist to be filled.
CONTAINERS = frozenset({"dict", "list", "set", "defaultdict", "OrderedDict", "WeakValueDictionary", "deque", "local"})
STATE = {
    "gamelake/model/worker_cache.py": "the cache itself",
    "gamelake/serving/gold/table.py": "handles of tables, which belong to a thread",
}


def _is_filled_later(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Dict | ast.List):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    if isinstance(value, ast.Call):
        function = value.func.value if isinstance(value.func, ast.Subscript) else value.func
        return ast.unparse(function).rsplit(".", 1)[-1] in CONTAINERS
    return False


def _assigned(path: Path) -> list[ast.expr | None]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]


def test_no_module_has_a_cache_of_its_own() -> None:
    found = {module for module, path in MODULES.items() if any(map(_is_filled_later, _assigned(path)))}

    assert found == STATE.keys(), "use gamelake.model.worker_cache.per_worker"


def test_an_array_type_is_named_in_one_module() -> None:
    others = [
        (module, ast.unparse(value))
        for module, path in MODULES.items()
        for value in _assigned(path)
        if module != ARRAYS and value is not None and "NDArray" in ast.unparse(value)
    ]

    assert others == [("gamelake/serving/kpis/numbers.py", "npt.NDArray[np.uint32]")]
