"""What shows of secrets, wherever they stand: nothing; and what is no secret stays readable."""

import base64
import json
import random
import string
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from zcpolicy.daemon.log.mask import MAX_DATA_BYTES, Masker
from zcpolicy.daemon.log.names import secret_names
from zcpolicy.daemon.log.settings import Masking, Shape

from .scene import call, entries, event, opened, problems

MASKER = Masker(b"k" * 32)


def shown(value: Any, masker: Masker = MASKER) -> Any:
    return masker.fit({"it": value})["it"]


# --- by name ----------------------------------------------------------------------------------------------------------

SECRET_NAMES = """password Password PASSWORD db_password dbPassword user-password passwd pwd passphrase token TOKEN accessToken access_token
x-auth-token GITHUB_TOKEN githubToken refreshtoken api_key apiKey API-KEY X-Api-Key apikey secret client_secret clientSecret AWS_SECRET_ACCESS_KEY
authorization Authorization Proxy-Authorization cookie Set-Cookie cookies private_key privateKey credentials creds auth otp pin jwt id_token
connectionString sessionKey tokens bearer""".split()
PLAIN_NAMES = """path command text user name tokenizer max_tokens input_tokens key keys monkey author authored opinion spinning passenger
password_file token_url token_type secret_name PWD OLDPWD compass bypass pinned digest url session""".split()


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_name_that_says_secret(name: str) -> None:
    assert shown({name: "hunter2"}) == {name: MASKER.hidden("hunter2")}
    assert "hunter2" not in shown(f"run with {name}=hunter2 now")
    assert "hunter2" not in shown(f'{{"{name}": "hunter2"')
    assert "hunter2" not in shown(f"x --{name} hunter2")
    assert "hunter2" not in json.dumps(shown(["x", f"--{name}", "hunter2"]))
    assert "hunter2" not in json.dumps(shown({"name": name, "value": "hunter2"}))
    assert "hunter2" not in json.dumps(shown({"headers": [[name, "hunter2"]]}))
    assert "hunter2" not in shown(
        f" {json.dumps({'outer': json.dumps({name: ['hunter2', {'a': 'hunter2'}]})}, indent=2)}\n"
    )


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_a_name_that_does_not(name: str) -> None:
    assert shown({name: 12}) == {name: 12}
    assert shown(f"{name}=12") == f"{name}=12"
    if not name.endswith("tokens"):
        assert shown({name: "hunter2"}) == {name: "hunter2"}


def test_everything_below_such_a_name() -> None:
    hidden = MASKER.hidden
    found = shown({"credentials": {"user": "ann", "n": [1, 2.5, True, None, ""]}})
    assert found == {"credentials": {"user": hidden("ann"), "n": [hidden("1"), hidden("2.5"), True, None, ""]}}


def test_a_name_and_its_value_in_the_spelling_of_others() -> None:
    hidden = MASKER.hidden("hunter2")
    assert shown({"Key": "DB_PASSWORD", "Value": "hunter2"}) == {"Key": "DB_PASSWORD", "Value": hidden}
    assert shown({"ParameterKey": "dbPassword", "ParameterValue": "hunter2"})["ParameterValue"] == hidden
    assert shown(["Authorization", "hunter2", "Accept", "*/*"]) == ["Authorization", hidden, "Accept", "*/*"]
    assert shown(["curl", "-u", "ann:hunter2", "x"])[2] != "ann:hunter2"
    assert shown(["docker", "run", "-u", "1000:1000"]) == ["docker", "run", "-u", "1000:1000"]


def test_yaml_whose_value_is_on_the_next_line() -> None:
    assert "hunter2" not in shown("user: ann\npassword: |\n  hunter2\nhost: x\n")


def test_names_of_an_operator() -> None:
    own = Masker(b"k" * 32, Masking(keys=frozenset({"patient-id"})))
    for name in ("patient_id", "PatientId", "x-patient-id"):
        assert shown({name: "hunter2"}, own) == {name: own.hidden("hunter2")}
        assert "hunter2" not in shown(f"{name}: hunter2", own)
        assert shown({name: "hunter2"}) == {name: "hunter2"}
    assert secret_names(["!"])("anything") is False


# --- by shape ---------------------------------------------------------------------------------------------------------

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVPmB92K27uhbUJU1p1r_wW1gFWFOEjXk"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIBOgIBAAJBAKj\nabc=\n-----END RSA PRIVATE KEY-----"
SHAPED: dict[str, tuple[str, Shape]] = {  # a text with a secret between «», and what tells it
    "bearer": ("curl -H 'X: Bearer «abc.DEF-123»' https://x.org", "bearer"),
    "basic": ("it sends Basic «dXNlcjpwYXNz» along", "basic"),
    "an authorization header": ("curl -H 'Authorization: Bearer «abcdefgh»' https://x.org", "assignment"),
    "an authorization header of its own kind": ('-H "Authorization: «AWS4 Credential=x/y, Signature=z»"', "assignment"),
    "a cookie": ("Cookie: «a=b; c=d»\nAccept: */*", "assignment"),
    "a JWT": (f"jq . <<< «{JWT}»", "jwt"),
    "a PEM block": (f"cat > k <<E\n«{PEM}»\nE", "pem"),
    "a PEM block without its end": ("x «-----BEGIN PRIVATE KEY-----\nMIIB»", "pem"),
    "GitHub": ("git clone x «ghp_abcdefghijklmnopqrst0123456789abcdef» y", "known"),
    "GitHub, fine-grained": ("«github_pat_11AAAAAA0abcdefghij_klmnop» y", "known"),
    "an API key": ("use «sk-proj-abcdefghijkl0123» here", "known"),
    "Stripe": ("«sk_live_abcdefgh0123»", "known"),
    "Slack": ("post with «xoxb-123-456-abc»", "known"),
    "AWS": ("key «AKIAIOSFODNN7EXAMPLE» ok", "known"),
    "Google": ("?v=«AIzaSyA0123456789abcdefghijklmnopqrstuv»&x", "known"),
    "our own": ("the client has «zcp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_abcde» now", "known"),
    "a URL": ("psql postgres://ann:«hun@ter2»@db.example.org:5432/x", "url"),
    "curl -u": ("curl -u ann:«hunter2» https://x.org", "assignment"),
    "an option": ("mysql --password «hunter2» --user ann", "assignment"),
    "an option in quotes": ("mysql --password «'hun ter2'» --user ann", "assignment"),
    "an option with =": ("mysql --password=«hunter2» --user ann", "assignment"),
    "a variable": ("export DB_PASSWORD=«hunter2» && x", "assignment"),
    "a query": ("https://x.org/?access_token=«hunter2»&page=2", "assignment"),
    "a line of settings": ("user: ann\npassword: «hunter2»\nhost: x", "assignment"),
    "a JSON text in a command": ("curl -d '{\"user\": \"ann\", \"password\": «\"hunter2\"», \"n\": 1}'", "assignment"),
    "an escaped JSON text": ('curl -d "{\\"password\\": «\\"hunter2\\»", \\"n\\": 1}"', "assignment"),
    "in a sentence": ("the api key: «hunter2» is his", "assignment"),
    "Go": ('password := «"hunter2"»', "assignment"),
    "TypeScript": ('const password: string = «"hunter2"»;', "assignment"),
    "a template": ("apiKey: «`hun ter2`»,", "assignment"),
    "an element": ("<user>ann</user><password>«hunter2»</password>", "assignment"),
    "an attribute": ('<add key="DbPassword" value="«hunter2»"/>', "assignment"),
    "SQL": ("CREATE USER ann IDENTIFIED BY '«hunter2»'", "assignment"),
    "SQL of PostgreSQL": ("ALTER USER ann WITH PASSWORD '«hunter2»'", "assignment"),
    "netrc": ("machine x.org login ann password «hunter2»\n", "assignment"),
    "curl -u without a blank": ("curl -uann:«hunter2» https://x.org", "assignment"),
    "mysql -p": ("mysql -u root -p«hunter2» db", "assignment"),
    "redis-cli -a": ("redis-cli -a «hunter2» ping", "assignment"),
    "docker login": ("docker login -u ann -p «hunter2» r.example.org", "assignment"),
    "sshpass in quotes": ("sshpass -p «'hun ter2'» ssh x", "assignment"),
    "Telegram": ("GET https://api.telegram.org/«bot123456789:AAF1abcdefghijklmnopqrstuvwxyz012345»/getMe", "known"),
    "a webhook": ("POST https://hooks.slack.com/services/«T0000/B0000/XXXXXXXXXXXX»", "url"),
    "a webhook of Discord": ("https://discord.com/api/webhooks/1234567890/«abc-def_ghi»", "url"),
    "a signed address": ("https://x.org/k?X-Amz-Date=1&X-Amz-Signature=«fe5f80f77d5fa3beca038a248ff027d0»", "url"),
    "without pattern": ("it says «wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY» there", "entropy"),
    "without pattern, below a path": ("/home/ann/«Zx8Kq2LmN4vB7tR9wY1cD3fG5hJ6»/x", "entropy"),
}  # fmt: skip


@pytest.mark.parametrize("what", SHAPED)
def test_a_shape_that_says_secret(what: str) -> None:
    text, shape = SHAPED[what]
    before, _, rest = text.partition("«")
    secret, _, after = rest.partition("»")
    assert shown(before + secret + after) == before + MASKER.hidden(secret.strip("\"'"), shape) + after
    assert secret.strip("\\\"'") not in json.dumps(shown({"a": [{before + secret + after: 1}]}), ensure_ascii=False)


@pytest.mark.parametrize("what", SHAPED)
def test_a_shape_that_is_switched_off(what: str) -> None:
    text, _ = SHAPED[what]
    plain = text.replace("«", "").replace("»", "")
    every: frozenset[Shape] = frozenset({"assignment", "bearer", "basic", "jwt", "pem", "known", "url", "entropy"})
    assert shown(plain, Masker(b"k" * 32, Masking(without=every))) == plain


ORDINARY = (
    "ls -la /home/ann/projects/zcpolicy/engine/zcpolicy/daemon/log/mask.py", "git log --oneline -5 1b7e0d1f7a3c9e5d2b4a6f8091a2b3c4d5e6f708",
    "550e8400-e29b-41d4-a716-446655440000", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "docker run -u 1000:1000 -v /var/lib/data:/data alpine:3.20", "kubectl logs web-7d9f8b6c5d-x2k4q -n prod --tail=100",
    "https://registry.npmjs.org:4873/@scope/pkg/-/pkg-1.2.3.tgz", "ssh git@github.com:org/repo.git", "http://localhost:8080/a@b",
    "backup-2026-11-30T21-08-09Z-prod-server-01.tar.gz", "getUserNameFromDatabaseConnectionPool2 ThisIsATestOfSomething123",
    "basic understanding of bearer tokens", "the author's opinion about a passenger", "def f(monkey: int, tokenizer: str) -> None:",
    "Users/Ann/Library/App1/V2/X3/Components/Header", "SELECT id FROM authors WHERE id = 5", "pip install scikit-learn==1.4.2",
    "risk-sk-learn-something-long", "dnf install glibc-common-devel-2.34.x86_64 global-config-2026-final", "rsync -u host:/data .",
    "xai-explainability-2024-report.pdf", "pypi-server-2-mirror-01", "max_tokens=4096 input_tokens: 12", "2026-11-30T21:08:09.123456Z", "C:\\Users\\Ann\\Documents\\Report 2026 Final.docx",
    "mysql -u root -p db", "docker run -p 80:80 nginx; redis-cli ping", "<name>Ann</name>", "x?sign=in&signal=9",
    "naïve café über 日本語 😀", "a" * 500, "0123456789" * 10, "-----BEGIN", "eyJ", "://:@", "passwordless login", "",
)  # fmt: skip


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_texts_stay_readable(text: str) -> None:
    assert shown(text) == text


def test_uuids_and_digests_stay_readable() -> None:
    chance = random.Random(1)
    for _ in range(300):
        digest = f"{chance.getrandbits(256):064x}"
        for text in (
            digest,
            digest[:40],
            digest.upper(),
            f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}",
        ):
            assert shown(text) == text


def test_random_texts_do_not() -> None:
    chance = random.Random(1)
    alphabets = (string.ascii_letters + string.digits, string.ascii_letters + string.digits + "-_")
    seen = 0
    for number in range(1_000):
        text = "".join(chance.choices(alphabets[number % 2], k=43))
        standard = base64.b64encode(chance.randbytes(36)).decode()
        seen += text in shown(f"x {text} y")
        seen += standard in shown(f"x {standard} y")
    assert seen <= 10, "one in some hundred has a pattern by chance"


# --- fingerprints, length, kinds --------------------------------------------------------------------------------------


def test_equal_secrets_can_be_told_equal_in_one_log_only() -> None:
    one, other = shown("curl -u ann:hunter2 x"), shown({"password": "hunter2"})
    assert one.split()[4][:12] == other["password"].split()[2][:12]
    assert shown({"password": "hunter3"}) != other
    assert shown({"password": "hunter2"}, Masker(b"j" * 32)) != other
    assert shown({"authorization": "Bearer hunter2"})["authorization"] == other["password"]


def test_where_rules_stand_is_no_secret(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log(call({"command": "ls"}, rules=["tokens.zcpolicy:3", "auth/password.zcpolicy:12"]))
    (told,) = [entry["data"]["decision"]["rules"] for entry in entries(tmp_path) if entry["kind"] == "call"]
    assert told == ["tokens.zcpolicy:3", "auth/password.zcpolicy:12"]


def test_the_key_outlives_the_writer(tmp_path: Path) -> None:
    for _ in range(2):
        with opened(tmp_path) as log:
            log(event(password="hunter2"))
    first, second = [entry["data"]["password"] for entry in entries(tmp_path) if entry["kind"] == "call"]
    assert first == second != MASKER.hidden("hunter2")


def test_long_texts_are_cut_with_their_length_and_a_digest() -> None:
    text = "word " * 10_000
    assert shown(text) == f"{text[:2_000]}… [cut: 50000 characters, {MASKER.fingerprint(text)}]"
    assert shown("a" * 2_000) == "a" * 2_000


@pytest.mark.parametrize("at", [0, 1_000, 1_970, 1_985, 1_995, 1_999, 2_000, 3_000])
def test_a_secret_across_the_cut(at: int) -> None:
    secret = "ghp_abcdefghijklmnopqrst0123456789abcdef"
    found = shown("x" * (at - 1) + " " * (at > 0) + secret + " y" * 5_000)
    assert secret[:8] not in found


def test_a_line_is_bounded(tmp_path: Path) -> None:
    huge: dict[str, Any] = {
        "wide": {f"k{n}" * 300: "v" * 10_000 for n in range(2_000)}, "long": ["😀" * 5_000] * 5_000, "phase": "admitted",
        "deep": json.loads("[" * 900 + "]" * 900),
    }  # fmt: skip
    with opened(tmp_path) as log:
        log(event(**huge))
        log(call(huge))
    lines = (tmp_path / "decisions-000000000001.jsonl").read_bytes().splitlines()
    assert max(map(len, lines)) < 2 * MAX_DATA_BYTES
    first, second = (one["data"] for one in entries(tmp_path) if one["kind"] == "call")
    assert first["phase"] == second["phase"] == "admitted"
    assert len(json.dumps(first, ensure_ascii=False).encode()) < MAX_DATA_BYTES
    assert problems(tmp_path) == []


def test_values_that_are_no_json() -> None:
    class Odd:
        def __repr__(self) -> str:
            return "hunter2"

    assert shown([Odd(), {1: (2,), Odd(): 1}, Decimal("1.50"), float("nan"), 2**80, 1e300, 1e-7, -0.0, "\ud800"]) == [
        "<Odd>", {"1": [2], "<Odd>": 1}, 1.5, "nan", str(2**80), f"{Decimal('1e300'):f}", "0.0000001", 0, "\\ud800",
    ]  # fmt: skip
    assert shown(10**5_000)[:4] == "0x10"[:2] + hex(10**5_000)[2:4]
    assert shown(Decimal("0.1000000000000000055")) == "0.1000000000000000055"


HOSTILE = (
    "password=" * 700, "://a:" * 1_200, "-----BEGIN A-----" * 360, "eyJaaaaa." * 680, "aA1" * 2_000, '\\"' * 3_000, "'" * 6_000,
    "token" + " " * 5_900, "-password " * 600, "Authorization: " * 400, "basic aaaaaaa " * 430, "=" * 6_000, "{" * 6_000 + "}",
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_no_text_takes_long(text: str) -> None:
    began = time.perf_counter()
    shown(text)
    assert time.perf_counter() - began < 0.5


# --- properties -------------------------------------------------------------------------------------------------------

_WORD = st.text(string.ascii_lowercase, min_size=1, max_size=8)
_BODY = st.text(string.ascii_letters + string.digits, min_size=24, max_size=40).filter(
    lambda text: any(map(str.isdigit, text)) and any(map(str.isupper, text))
)
_AROUND = st.text(st.characters(codec="utf-8", exclude_characters="\\\"'{}[]"), max_size=30)


def _nested(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    plain = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(st.lists(plain, max_size=3), inner).map(lambda both: [*both[0], both[1]]),
            st.tuples(_WORD, inner, st.dictionaries(_WORD, plain, max_size=3)).map(
                lambda all_: {**all_[2], all_[0]: all_[1]}
            ),
            inner.map(json.dumps),
        ),
        max_leaves=4,
    )


@st.composite
def _with_secret(draw: st.DrawFn) -> tuple[str, Any]:
    """A value with a secret in it, and the part of it that must not show."""
    body = draw(_BODY)
    by_name = draw(st.booleans())
    if by_name:
        leaf: Any = {draw(st.sampled_from(SECRET_NAMES)): draw(st.sampled_from([body, [body], {"x": body}]))}
    else:
        form = draw(st.sampled_from(["ghp_{}", "sk-{}", "Bearer {}", "password={}", "--api-key {}", "https://a:{}@x.org/", '{{"client_secret": "{}"}}',
                                     "eyJ{}.eyJhIjoxfQ.c2ln", "-----BEGIN KEY-----\n{}\n-----END KEY-----", "Cookie: id={}"]))  # fmt: skip
        before, after = draw(_AROUND), draw(_AROUND)
        assume(body not in before + after)
        leaf = f"{before} {form.format(body)} {after}"
        if draw(st.booleans()):
            leaf = {leaf: 1}
    return body, draw(_nested(st.just(leaf)))


@given(_with_secret())
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_a_secret_put_anywhere_never_shows(tmp_path: Path, made: tuple[str, Any]) -> None:
    secret, value = made
    assert secret not in json.dumps(shown(value), ensure_ascii=False)
    line = MASKER.fit({"decision": value, "error": json.dumps(value)})
    assert secret not in json.dumps(line, ensure_ascii=False)


@given(st.recursive(st.one_of(st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.from_regex(r"[a-z ]{0,12}", fullmatch=True)), lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.from_regex(r"[xyz]{1,4}", fullmatch=True), inner))))  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_what_has_no_secret_is_what_it_was(value: Any) -> None:
    assert shown(value) == value
