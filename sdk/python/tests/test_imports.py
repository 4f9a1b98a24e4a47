"""No modules of the package import each other in a circle, whether at the top, in functions or for type checkers."""

import ast
import pathlib
import unittest

SOURCES = pathlib.Path(__file__).parent.parent / "src" / "millrace"


def imported(source: str) -> set[str]:
    """Returns the modules of the package that a module imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names.update([node.module.split(".")[0]] if node.module else [name.name for name in node.names])
    return names


def circle(imports: dict[str, set[str]]) -> list[str]:
    """Returns modules that import each other, one after the other, or nothing."""
    done: set[str] = set()

    def follow(module: str, way: list[str]) -> list[str]:
        if module in way:
            return way[way.index(module) :]
        if module in done or module not in imports:
            return []
        for other in sorted(imports[module]):
            found = follow(other, [*way, module])
            if found:
                return found
        done.add(module)
        return []

    for module in sorted(imports):
        found = follow(module, [])
        if found:
            return found
    return []


class Imports(unittest.TestCase):
    def test_no_circles(self) -> None:
        imports = {path.stem: imported(path.read_text()) for path in SOURCES.glob("*.py")}
        self.assertGreater(len(imports), 30)
        self.assertEqual(circle(imports), [])

    def test_a_circle_is_found(self) -> None:
        self.assertEqual(imported("from .a import b\nif x:\n    def f():\n        from . import c\n"), {"a", "c"})
        self.assertEqual(circle({"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b"}}), ["b", "c", "d"])
        self.assertEqual(circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}), [])


if __name__ == "__main__":
    unittest.main()
