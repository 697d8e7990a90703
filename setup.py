"""Puts into a wheel, beside the packages, the examples and tables that `rise demo` and `rise bench` read."""

from pathlib import Path
from shutil import copytree, ignore_patterns

from setuptools import setup
from setuptools.command.build_py import build_py

DATA = ("examples", "benchmarks/tables")  # `rise.shipped` finds them here in the source tree


class BuildWithData(build_py):
    """Copies the data into the package, but not for an editable installation, which reads the source tree."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for folder in DATA:
                target = Path(self.build_lib) / "rise" / "share" / folder
                copytree(folder, target, ignore=ignore_patterns("__pycache__"), dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithData})
