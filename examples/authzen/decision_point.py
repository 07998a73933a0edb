"""A decision point for hosts in any language, whose policy changes while it answers: `python decision_point.py PORT`."""

import asyncio
import secrets
import signal
import sys
from pathlib import Path

from policy_lang.serving.compiling import compile_layers
from zcpolicy import Resolver
from zcpolicy.daemon.listening import served
from zcpolicy.hosts.authzen import application
from zcpolicy.reload.generations import Generations
from zcpolicy.reload.sources import PolicySource

HERE = Path(__file__).parent
TOKEN = HERE / "host.header"  # what hosts send: `curl -H @host.header`


async def serve(generations: Generations, port: int) -> None:
    """Answers until it is told to stop; watches the policy meanwhile."""
    token = secrets.token_urlsafe(32)
    TOKEN.touch(mode=0o600)
    TOKEN.write_text(f"authorization: Bearer {token}\n")
    app = application(lambda: generations.resolver, tokens=[token], url=f"http://127.0.0.1:{port}")
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with generations, served(app, port=port):
        await stopped.wait()


if __name__ == "__main__":
    policy = Generations.start(
        PolicySource.of_layers([HERE / "desk.zcpolicy"]),
        compile_layers,
        HERE / "state",
        make=lambda program, number, files: Resolver(program, generation=number, policy_files=files),
    )
    asyncio.run(serve(policy, int(sys.argv[1])))
