import zcpolicy
from peers._zcpolicy import Engine, decide

VENV, DIST, IMPORT = "../.venv", "zcpolicy", "import zcpolicy"
NOTE = "zcpolicy from a compiled .zcpc file; else as zcpolicy_text"
__all__ = ["decide", "load", "source"]


def source(policy):
    from pathlib import Path

    import policy_lang
    from peers._zcpolicy_text import text

    path = Path(__file__).parents[1] / "cache" / f"workload-{len(policy.agents)}.zcpc"
    path.write_bytes(policy_lang.loads(text(policy)).dump())
    return str(path)


def load(src):
    return Engine(zcpolicy.load_compiled(src))
