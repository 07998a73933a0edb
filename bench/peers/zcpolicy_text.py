import policy_lang
from peers._zcpolicy import Engine, decide

VENV, DIST, IMPORT = "../.venv", "zcpolicy", "import policy_lang, zcpolicy"
NOTE = "zcpolicy from source text: parsed, checked, compiled; arguments checked against their schema; the Decision's effect"
__all__ = ["decide", "load", "source"]


def source(policy):
    from peers._zcpolicy_text import text

    return text(policy)


def load(src):
    return Engine(policy_lang.loads(src))
