import policy_lang
from peers._zcpolicy import Engine, decide

VENV, DIST, IMPORT, CHECK = "../.venv", "zcpolicy", None, False
NOTE = "zcpolicy with the kinds `shell` and `path`: stricter than the reference by design, so not compared with it"
__all__ = ["decide", "load", "source"]


def source(policy):
    from peers._zcpolicy_text import text

    return text(policy, typed=True)


def load(src):
    return Engine(policy_lang.loads(src))
