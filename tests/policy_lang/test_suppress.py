"""Comments that silence: which finding stays, which comment is itself a finding."""

import pytest

from policy_lang.compile import compile_text

HEAD = "zcpolicy 1\ntool read() risk read\ntool shell(command: shell) risk high\n"

COMMENTS: dict[str, tuple[str, list[str]]] = {
    "a warning, behind its statement": (
        "agent a {\n allow shell # zcpolicy: allow ZC4002 a sandbox\n}",
        [],
    ),
    "another warning than the one it names": (
        "agent a {\n allow shell # zcpolicy: allow ZC4003 a sandbox\n}",
        ["ZC4002"],
    ),
    "an error stays, and is said once": ("agent a {\n allow raed # zcpolicy: allow ZC2101 why not\n}", ["ZC2101"]),
    "an error that the statement has not": ("agent a {\n allow read # zcpolicy: allow ZC2101 why not\n}", ["ZC1045"]),
    "an error of the statement below": (
        "agent a {\n allow read # zcpolicy: allow ZC2101 why not\n allow raed\n}",
        ["ZC1045", "ZC2101"],
    ),
}


@pytest.mark.parametrize("name", COMMENTS)
def test_what_a_comment_silences(name: str) -> None:
    text, codes = COMMENTS[name]
    found = [one.code.id for one in compile_text(HEAD + text).diagnostics]
    assert [code for code in found if code != "ZC4004"] == codes
