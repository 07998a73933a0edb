import zcpolicy
from peers._zcpolicy import Engine, decide

VENV, DIST, IMPORT = "../.venv", "zcpolicy", "import zcpolicy"
NOTE = "zcpolicy from the bytes of a compiled .zcpc file; else as zcpolicy_text"
__all__ = ["decide", "load", "source"]


def source(policy):
    import policy_lang
    from peers._zcpolicy_text import text

    return policy_lang.loads(text(policy)).dump()


def load(src):
    return Engine(zcpolicy.load_compiled(src))
