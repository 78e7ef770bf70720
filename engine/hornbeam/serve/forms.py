"""What requests may say, with examples for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from hornbeam.answer.engines import ENGINES

#: Characters of a question or a search.
LONGEST_TEXT = 4000
#: Of one server-sent event, for the OpenAPI document; `data` is one JSON document.
EVENT_SCHEMA = {
    "type": "object",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["data"],
}
VERSION_ID = r"^v[0-9a-f]{16}$"


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("it holds half a surrogate pair")
    return text


def _engine(name: str) -> str:
    if name not in ENGINES:
        raise ValueError(f"choose one of {', '.join(ENGINES)}")
    return name


Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT), AfterValidator(_not_blank)]


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PastTurn(Form):
    question: Text
    answer: str = Field("", max_length=20_000, description="without marks; empty of a declined question")


class Ask(Form):
    question: Text = Field(examples=["Who invented the tide gauge?"])
    engine: Annotated[str, AfterValidator(_engine)] = Field(
        "auto", description="one of " + ", ".join(ENGINES), json_schema_extra={"enum": list(ENGINES)}
    )
    mode: Literal["open", "reject"] | None = Field(None, description="none: as the server is set")
    style: Literal["extract", "short", "sentences"] | None = Field(
        None, description="none: as the server is set"
    )
    history: list[PastTurn] = Field(
        [],
        max_length=50,
        description="the conversation before, oldest first: a question that leans on it is completed from it",
    )
    deadline_s: float | None = Field(
        None, gt=0, le=3600, description="the best answer so far is given then; at most the server's"
    )


class Search(Form):
    text: Text = Field(examples=["tide gauge"])
    top_k: int | None = Field(None, ge=1, le=200)


class Promotion(Form):
    version: str = Field(pattern=VERSION_ID, examples=["v0123456789abcdef"])
    force: bool = Field(False, description="also one that a gate refused")


class BuildForm(Form):
    source: str | None = Field(
        None,
        max_length=200,
        description="a name among the server's `serve.sources`; none: what the index was built from",
        examples=["papers"],
    )
    full: bool = Field(False, description="organise from scratch")
    evolve: bool = Field(False, description="ask for types that the schema lacks, too")


class CancelForm(Form):
    now: bool = Field(False, description="at once; calls in flight are lost")


class FeedbackForm(Form):
    rating: Literal["up", "down"]
    note: str = Field("", max_length=2000)


class AcceptForm(Form):
    types: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        [],
        max_length=500,
        description="NAME or KIND:NAME as proposed; none: all that pass the gates",
        examples=[["entity:clinic"]],
    )
    force: bool = Field(False, description="also a named one that a gate refuses")


class TextPart(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    type: Literal["text"]
    text: str


class Message(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    include_usage: bool = False


class ChatRequest(BaseModel):
    """OpenAI's form. What Hornbeam has no use for (temperature and the like) is not looked at."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        json_schema_extra={
            "examples": [
                {"model": "papers", "messages": [{"role": "user", "content": "Who invented the tide gauge?"}]}
            ]
        },
    )

    model: str = Field(description="the name of an index")
    messages: list[Message] = Field(min_length=1, max_length=200)
    stream: bool = False
    stream_options: StreamOptions | None = None


class Failure(BaseModel):
    """Every error has this form."""

    error: dict[str, Any] = Field(
        examples=[{"message": "no index 'paper'", "type": "not_found", "code": 404}]
    )
