"""`GET /approvals`, `POST /approvals/{id}`: operators see what waits for them, and answer.

In: requests that the guard has admitted, each with its holder. Out: JSON. Who answers is recorded by the name of the token.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from zcpolicy.approvals.question import Approve, Reject, Scope
from zcpolicy.approvals.weigh import MAX_SAID_CHARACTERS
from zcpolicy.daemon.approvals import MAX_LISTED_CHARACTERS, How, NotTaken, Open, Questions
from zcpolicy.daemon.tokens import Holder
from zcpolicy.daemon.wire import BadInput, only, read_object, text_in
from zcpolicy.extras import missing
from zcpolicy.ledgers.contract import LedgerUnavailable

try:
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
except ImportError:
    raise missing("the gateway", "gateway") from None

MAX_WAIT_SECONDS: Final = 60
"""Seconds for which a listing waits for news, at most."""

_STATUS: Final[Mapping[How, int]] = {
    "unknown": 404,
    "answered": 409,
    "over": 410,
    "wider": 400,
    "own": 403,
    "later": 503,
}
_SCOPES: Final[Mapping[str, Scope]] = {"once": "once", "exact": "exact", "tool": "tool"}


def approval_routes(questions: Questions, client: Callable[[Holder], str]) -> list[Route]:
    """`client`: the id of a holder as a client of the gateway."""
    serving = _Serving(questions, client)
    return [
        Route("/approvals", serving.listed, methods=["GET"]),
        Route("/approvals/{name}", _told(serving.answered), methods=["POST"]),
    ]


@dataclass(frozen=True, slots=True)
class _Serving:
    questions: Questions
    client: Callable[[Holder], str]

    async def listed(self, request: Request) -> Response:
        """All that waits, oldest first. `wait`: seconds for news, `since`: of a revision; without one, until something waits."""
        asked = dict(request.query_params)
        only(asked, "wait", "since")
        seconds = _number(asked, "wait", 0, MAX_WAIT_SECONDS)
        waiting = await self.questions.waiting()
        since = _number(asked, "since", -1 if waiting else self.questions.revision)
        if seconds and since == self.questions.revision:
            await self.questions.changed(since, seconds)
            waiting = await self.questions.waiting()
        shown = _shown(waiting)
        told = {
            "questions": [one.to_json() for one in shown],
            "more": len(waiting) - len(shown),
            "revision": self.questions.revision,
        }
        return JSONResponse(told)

    async def answered(self, request: Request) -> Response:
        holder: Holder | None = request.state.holder
        if holder is None:
            raise NotTaken("own", "it has to be known who answers")
        said = _said(read_object(await request.body()), holder.name)
        name: str = request.path_params["name"]
        heard = await self.questions.answer(name, said, client=self.client(holder))
        told = {"id": name, "answer": "no" if isinstance(said, Reject) else "yes", "by": holder.name, "recorded": heard}
        if isinstance(said, Approve):
            told["scope"] = said.scope
        return JSONResponse(told, status_code=200 if heard else 202)


def _told(handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """A handler whose refusals are statuses."""

    async def answer(request: Request) -> Response:
        try:
            return await handle(request)
        except NotTaken as wrong:
            return JSONResponse({"error": str(wrong)}, status_code=_STATUS[wrong.how])
        except LedgerUnavailable:
            return JSONResponse({"error": "the answer cannot be put on record now: give it again"}, status_code=503)

    return answer


def _shown(waiting: list[Open]) -> list[Open]:
    """As many as one listing takes; at least one."""
    size, shown = 0, list[Open]()
    for one in waiting:
        size += one.characters
        if shown and size > MAX_LISTED_CHARACTERS:
            break
        shown.append(one)
    return shown


def _said(members: Mapping[str, Any], by: str) -> Approve | Reject:
    """Raises BadInput."""
    only(members, "answer", "scope", "note")
    answer, scope, note = text_in(members, "answer"), text_in(members, "scope", "once"), text_in(members, "note", "")
    if len(note) > MAX_SAID_CHARACTERS:
        raise BadInput(f"a `note` has at most {MAX_SAID_CHARACTERS} characters")
    if answer == "no":
        if "scope" in members:
            raise BadInput("a no has no `scope`: it is for this one call")
        return Reject(note, by)
    if answer != "yes" or scope not in _SCOPES:
        raise BadInput("`answer` is `yes` or `no`, `scope` is `once`, `exact` or `tool`")
    if note:
        raise BadInput("a `note` goes with a no: it tells the agent why")
    return Approve(_SCOPES[scope], by=by)


def _number(asked: Mapping[str, str], name: str, otherwise: int, most: int | None = None) -> int:
    """Raises BadInput."""
    text = asked.get(name)
    if text is None:
        return otherwise
    if not text.isascii() or not text.isdecimal() or len(text) > 16 or (most is not None and int(text) > most):
        raise BadInput(f"`{name}` is no whole number, or too large")
    return int(text)
