"""How much Hypothesis tries: `short` in every run, `--hypothesis-profile=long` for campaigns by hand. No fault is hidden."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    from tests.servers.redis_server import RedisServer

NOT_TIMED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "short",
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=NOT_TIMED,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
settings.register_profile("long", max_examples=3000, deadline=None, suppress_health_check=NOT_TIMED)
settings.load_profile("short")


@pytest.fixture(autouse=True, scope="session")
def _faults_are_raised() -> Iterator[None]:
    """In production a fault of the engine denies; here it fails the test that met it."""

    def raised(_run: object, _tool: object, fault: Exception) -> NoReturn:
        raise fault

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zcpolicy.execution.ResolvedAgentExecution._fault", raised)
        yield


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[RedisServer]":
    """One for all tests: each takes a name of its own. Who stops it starts it again; what was written is there then."""
    from tests.servers.redis_server import RedisServer  # half a second of work, which most tests do not need

    made = RedisServer(tmp_path_factory.mktemp("redis"), appendonly=True)
    yield made
    made.kill()
