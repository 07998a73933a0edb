"""The person of the tests who is asked."""

from typing import Any

from zcpolicy.approvals.question import Answer, Question


class Person:
    """Answers from a list, and keeps the questions. An exception is raised; a function makes its answer of the question."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        answer: Any = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        if callable(answer):
            answer = answer(question)
        given: Answer = answer
        return given
