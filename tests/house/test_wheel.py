"""The wheel, in a fresh environment, embedded in a host's folder that owns packages named like our folders."""

import subprocess
import sys
from pathlib import Path

import pytest

from policy_lang.codes import ALL

from .blocks import ROOT, run_story

UV = Path(sys.executable).parent / "uv"


def uv(*arguments: str | Path) -> None:
    done = subprocess.run([UV, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a fresh environment in which the wheel, built from the sdist, is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    uv("build", "--quiet", "--no-build-isolation", "--python", sys.executable, "--out-dir", folder / "dist", ROOT)
    uv("venv", "--quiet", "--python", sys.executable, folder / "venv")
    (wheel,) = (folder / "dist").glob("*.whl")
    uv("pip", "install", "--quiet", "--python", folder / "venv/bin/python", wheel)
    return folder / "venv/bin"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A host's folder with its own `engine`, `grammar` and `tests`, each of which would break us if we took it for ours."""
    for name in ("engine", "grammar", "tests"):
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text(f'raise ImportError("the host\'s own {name}")\n')
    return tmp_path


def test_the_tour_of_the_readme_runs_in_another_folder(installed: Path, host: Path) -> None:
    assert run_story(ROOT / "README.md", host, installed, skip=r"(git clone|cd|scripts/|pip install)") >= 8


def test_the_wheel_holds_the_two_packages_and_nothing_else(installed: Path) -> None:
    (site,) = (installed.parent / "lib").glob("python*/site-packages")
    ours = {
        p.name for p in site.iterdir() if p.name.startswith(("zcpolicy", "policy_lang", "engine", "tests", "grammar"))
    }
    assert {name for name in ours if not name.endswith(".dist-info")} == {"policy_lang", "zcpolicy"}
    assert (site / "policy_lang/zcpolicy.lark").is_file()
    assert {page.stem for page in (site / "policy_lang/codes_pages").glob("ZC*.md")} == set(ALL)
    assert (site / "zcpolicy/py.typed").is_file()
