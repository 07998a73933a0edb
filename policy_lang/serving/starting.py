"""What a daemon would stumble over as it starts, said beforehand, without starting anything.

In: settings, their top table. Out: findings about the file of tokens, and about providers that pydantic-ai does not have, or has not
the library of. Modules of factories and chats are not imported, keys of providers are not read, the ledger is not opened, no
port is asked for: those speak up at the start.
"""

from policy_lang import codes
from policy_lang.serving.reading import Table
from zcpolicy.daemon.settings import Settings
from zcpolicy.daemon.tokens import Tokens, TokensError


def judge_start(settings: Settings, top: Table) -> None:
    """Adds what is wrong to the table's findings."""
    try:
        Tokens(settings.tokens_file).holders()
    except TokensError as error:
        top.say(codes.UNUSABLE_FILE, str(error), ("state", "folder"))
    for name, agent in settings.agents.items():
        provider, _, model = agent.model.partition(":")
        if provider != "scripted" and model:
            _judge_provider(provider, name, top)


def _judge_provider(provider: str, agent: str, top: Table) -> None:
    try:
        from pydantic_ai.providers import infer_provider_class
    except ImportError:  # that it is not there was said where the model was read
        return
    place = ("agents", agent, "model")
    try:
        infer_provider_class(provider)
    except ImportError as error:
        top.say(codes.ABSENT_LIBRARY, f"provider `{provider}` needs a library: {_line(error)}", place)
    except Exception:  # noqa: BLE001 - whatever the library says of a name that it does not know
        top.say(
            codes.BAD_SETTING, f"pydantic-ai has no provider `{provider}`", place,
            help="write PROVIDER:MODEL as pydantic-ai does, or `scripted:FILE`",
        )  # fmt: skip


def _line(error: ImportError) -> str:
    """The first 200 characters, on a line, as a message of ours begins."""
    text = " ".join(str(error).split())[:200]
    return text[:1].lower() + text[1:]
