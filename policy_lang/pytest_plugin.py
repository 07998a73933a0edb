"""The parity harness in pytest: a test for every setting on every path of a host, and an index of who answers for them.

In: `@pytest.mark.parity(PATHS)`, `--parity-index FILE`, `--parity-matrix FILE`. Out: the fixtures `parity_cell`, `parity_row`
and `parity_matrix`; `two_clients`, for tools of a host's own; a run that fails where a row of the index is not borne out by a test that passed in it.

The index is looked at where it is asked for, by the option or by `parity_index` in the configuration, and then against this
very run, whatever was selected: a row whose test was not run fails it. Without both nothing is looked at.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path as File
from typing import TYPE_CHECKING, Any, Final, get_args

import pytest

from policy_lang.nearest import nearest

if TYPE_CHECKING:
    from zcpolicy.parity.index import Outcome
    from zcpolicy.parity.matrix import Matrix
    from zcpolicy.parity.settings.setting import Setting
    from zcpolicy.parity.suite import Checked, Suite
    from zcpolicy.state.two_clients import TwoClients

MARKER: Final = (
    "parity(paths, diverging={}, settings=SETTINGS, compiled=policy_lang.loads): "
    "drive these paths of a host with every setting, for the fixtures `parity_*`"
)
FIXTURES: Final = ("parity_cell", "parity_row", "parity_matrix")
_SUITES: Final = pytest.StashKey["list[Suite]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("parity", "the parity harness of zcpolicy")
    group.addoption("--parity-index", metavar="FILE", help="Fail unless every row's test ran and passed in this run.")
    group.addoption("--parity-matrix", metavar="FILE", help="Write the matrix of this run: a .md, .json or .html file.")
    parser.addini("parity_index", "The index of every run, as of --parity-index.", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    config.stash[_SUITES] = []
    if hasattr(config, "workerinput"):  # of a distributed run: the one that hands out the tests hears of all
        return
    index = _index_file(config)
    if index is not None:
        config.pluginmanager.register(_Index(index, config), "zcpolicy-parity-index")
    matrix = config.getoption("--parity-matrix")
    if matrix is not None:
        if File(matrix).suffix[1:] not in ("md", "json", "html"):
            raise pytest.UsageError(f"--parity-matrix: `{matrix}` ends in none of `.md`, `.json`, `.html`")
        config.pluginmanager.register(_MatrixFile(File(matrix), config), "zcpolicy-parity-matrix")


def _index_file(config: pytest.Config) -> File | None:
    given = config.getoption("--parity-index")
    if given is not None:
        return File(config.invocation_params.dir, given)
    told = config.getini("parity_index")
    return File(config.rootpath, told) if told else None


# --- the tests -----------------------------------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    wanted = [name for name in FIXTURES if name in metafunc.fixturenames]
    marker = metafunc.definition.get_closest_marker("parity")
    if not wanted:
        return
    if marker is None:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: `{wanted[0]}` needs `@pytest.mark.parity(PATHS)`")
    wrong = _wrong(marker)
    if wrong:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: `@pytest.mark.parity`: {wrong}")
    suite = _suite(metafunc.config, marker)
    if "parity_cell" in wanted:
        cells = [(path.name, setting.name) for setting in suite.settings for path in suite.paths]
        metafunc.parametrize(
            "parity_cell", [(suite, *cell) for cell in cells], indirect=True, ids=["-".join(cell) for cell in cells]
        )
    if "parity_row" in wanted:
        names = [setting.name for setting in suite.settings]
        metafunc.parametrize("parity_row", [(suite, name) for name in names], indirect=True, ids=names)
    if "parity_matrix" in wanted:
        metafunc.parametrize("parity_matrix", [suite], indirect=True, ids=["all"])


def _wrong(marker: pytest.Mark) -> str:
    """What is wrong with the arguments of a marker, "" if nothing is."""
    from zcpolicy.exact import is_object
    from zcpolicy.parity.matrix import Status
    from zcpolicy.parity.probe import ParityPath
    from zcpolicy.parity.settings.setting import Setting

    given: dict[str, Any] = dict(marker.kwargs)
    settings, compiled = given.pop("settings", ()), given.pop("compiled", None)
    diverging: Any = given.pop("diverging", {})
    if len(marker.args) != 1 or not _are(marker.args[0], ParityPath) or not marker.args[0]:
        return "it takes one list of `zcpolicy.parity.probe.ParityPath`, and all else by name"
    if given:
        return f"it takes `diverging`, `settings` and `compiled`, and no `{min(given)}`"
    if not (_are(settings, Setting) or _are(settings, str)) or ("settings" in marker.kwargs and not settings):
        return "`settings` is a list of settings, or of their names as `zcpolicy parity --setting` takes them"
    unknown = _unknown(settings)
    if unknown:
        return unknown
    if compiled is not None and not callable(compiled):
        return "`compiled` is a function that makes a program out of a text"
    known: dict[Any, Any] = diverging if is_object(diverging) else {None: None}
    statuses = get_args(Status)
    if not all(_are(key, str) and len(key) == 2 for key in known) or not {*known.values()} <= {*statuses}:
        return f"`diverging` says for (path, setting) one of {', '.join(f'`{status}`' for status in statuses)}"
    return ""


def _unknown(settings: Any) -> str:
    """What is said of the first name that no setting has."""
    from zcpolicy.parity.settings import SETTINGS

    known = [setting.name for setting in SETTINGS]
    for name in settings:
        if isinstance(name, str) and name not in known:
            near = nearest(name, known)
            return f"there is no setting `{name}`" + (f"; did you mean `{near}`?" if near else "")
    return ""


def _are(listed: object, kind: type) -> bool:
    found: list[Any] = [*listed] if isinstance(listed, (list, tuple)) else [None]
    return all(isinstance(one, kind) for one in found)


def _suite(config: pytest.Config, marker: pytest.Mark) -> "Suite":
    """The suite of these paths: the same for all tests that name the same, so that they are driven once."""
    import policy_lang
    from zcpolicy.parity.settings import SETTINGS
    from zcpolicy.parity.suite import Suite

    made = Suite(
        tuple(marker.args[0]),
        marker.kwargs.get("compiled") or cache(policy_lang.loads),
        marker.kwargs.get("diverging", {}),
        _settings(marker.kwargs.get("settings", SETTINGS)),
        wanted=set(),
    )
    there = {(path.name, setting.name) for path in made.paths for setting in made.settings}
    for path, setting in made.diverging:
        if (path, setting) not in there:
            raise pytest.UsageError(f"`diverging` names what there is not: setting `{setting}` on path `{path}`")
    for known in config.stash[_SUITES]:
        if (known.paths, known.settings, known.diverging) == (made.paths, made.settings, made.diverging):
            return known
    config.stash[_SUITES].append(made)
    return made


def _settings(given: Any) -> "tuple[Setting, ...]":
    """The settings; names mean those of the harness."""
    from zcpolicy.parity.settings import SETTINGS

    named = {setting.name: setting for setting in SETTINGS}
    return tuple(named[one] if isinstance(one, str) else one for one in given)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was selected is driven together."""
    for item in session.items:
        for name, value in getattr(getattr(item, "callspec", None), "params", {}).items():
            if name in ("parity_cell", "parity_row"):
                value[0].wanted = {*(value[0].wanted or ()), value[-1]}


@pytest.fixture
def parity_cell(request: pytest.FixtureRequest) -> "Checked":
    """One setting on one path: `parity_cell.check()` fails where it is not enforced."""
    suite, path, setting = request.param
    found: Checked = suite.cell(path, setting)
    return found


@pytest.fixture
def parity_row(request: pytest.FixtureRequest) -> "tuple[Checked, ...]":
    """One setting on every path."""
    suite, setting = request.param
    found: tuple[Checked, ...] = suite.row(setting)
    return found


@pytest.fixture
def parity_matrix(request: pytest.FixtureRequest) -> "Matrix":
    """The whole matrix of the paths."""
    found: Matrix = request.param.matrix()
    return found


@pytest.fixture
def two_clients() -> "TwoClients":
    """`two_clients(factory, handles, acting, calls, agents=…)` runs tools as two clients, and fails where something crosses."""
    from zcpolicy.state.two_clients import TwoClients

    return TwoClients()


# --- the files -----------------------------------------------------------------------------------------------------


class _Index:
    """Hears how every test went, and holds the index to it."""

    def __init__(self, file: File, config: pytest.Config) -> None:
        self._file = file
        self._config = config
        self._outcomes: dict[str, Outcome] = {}
        self._wrong: list[str] = []

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._outcomes.update({item.nodeid: "deselected" for item in items})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test has passed if all its phases have, and it was not marked to fail."""
        before = self._outcomes.get(report.nodeid, "passed")
        now: Outcome = "passed"
        if hasattr(report, "wasxfail"):
            now = "xpassed" if report.passed else "xfailed"
        elif report.failed:
            now = "failed"
        elif report.skipped:
            now = "skipped"
        ran = report.when == "call" or report.nodeid in self._outcomes or now != "passed"
        if ran:
            self._outcomes[report.nodeid] = now if before in ("passed", "deselected") else before

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        from zcpolicy.parity.index import IndexUnusable, read_index, wrong

        suites = self._config.stash[_SUITES]
        settings: dict[str, str] = {setting.name: setting.area for suite in suites for setting in suite.settings}
        diverging = {key for suite in suites for key in suite.diverging}
        try:
            rows = read_index(str(self._file))
            self._wrong = list(wrong(rows, self._outcomes, settings, diverging, str(self._file.parent)))
        except IndexUnusable as error:
            self._wrong = [str(error)]
        except OSError as error:
            self._wrong = [f"it cannot be read: {error.strerror}"]
        if self._wrong and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._wrong:
            terminalreporter.section(f"parity index {self._file.name}", red=True, bold=True)
            for line in self._wrong:
                terminalreporter.line(line)


class _MatrixFile:
    """Writes what was driven."""

    def __init__(self, file: File, config: pytest.Config) -> None:
        self._file = file
        self._config = config

    def pytest_sessionfinish(self) -> None:
        from zcpolicy.parity.render import FORMATS

        matrices = list(self._matrices())
        if matrices:
            self._file.write_text(FORMATS[self._file.suffix[1:]](matrices[0]), "utf-8")

    def _matrices(self) -> "Iterator[Matrix]":
        """Of suites that were driven whole; what was left out by selection makes no matrix."""
        for suite in self._config.stash[_SUITES]:
            if len(suite.driven()) == len(suite.settings):
                yield suite.matrix()
