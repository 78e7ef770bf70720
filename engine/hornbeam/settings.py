"""One typed settings model. Later sources win: defaults, TOML file, environment, command line.

Environment variables are `HORNBEAM_<SECTION>__<KEY>`, for example `HORNBEAM_CHUNK__MAX_TOKENS=300`.
The TOML file is `--config FILE`, else `$HORNBEAM_CONFIG`, else `hornbeam.toml` in the working directory.
An unknown key, wherever it comes from, is an error that names the nearest known one.
"""

from __future__ import annotations

import copy
import difflib
import hashlib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hornbeam.cost.budget import Budget, parse_budget
from hornbeam.errors import UsageError, reason

ENVIRONMENT_PREFIX = "HORNBEAM_"
#: Of a value that an error quotes.
_SHOWN_CHARACTERS = 60
#: Variables with the prefix that are not settings: the settings file, the cache, evaluation data for tests.
RESERVED_ENVIRONMENT = frozenset(
    {
        "HORNBEAM_CONFIG",
        "HORNBEAM_CACHE",
        "HORNBEAM_CHROMIUM",
        "HORNBEAM_REQUIRE_BROWSER",
        "HORNBEAM_DATA",
        "HORNBEAM_DEBUG",
    }
)
#: How long the long tests are.
_OF_TESTS = "HORNBEAM_TEST_"


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class ModelSettings(Section):
    """The language model."""

    path: str | None = Field(
        None, description="model directory, or URL[,URL…] of servers; none: the embedded model"
    )
    backend: Literal["auto", "vllm", "transformers"] = Field(
        "auto", description="of a model directory; auto: vLLM where it is installed"
    )
    adapter: str | None = Field(
        None,
        description="directory of an adapter ('hornbeam tune') of this model; a server must have it loaded "
        "under the directory's name",
    )
    name: str | None = Field(
        None, description="model name on a server; none: the adapter's, else the first that it lists"
    )
    tokenizer: str | None = Field(None, description="tokenizer directory for a model behind a URL")
    api_key: str | None = Field(None, description="bearer token for a server", exclude=True, repr=False)
    max_model_len: int = Field(4096, ge=512, description="context window in tokens")
    max_num_seqs: int = Field(64, ge=1, description="requests in one batch")
    max_num_batched_tokens: int = Field(4096, ge=256)
    gpu_memory_utilization: float = Field(0.9, gt=0, le=1)
    cpu_kv_cache_gib: int = Field(2, ge=1, description="key-value cache of the CPU build")
    quantization: str | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto",
        description="auto: float32 on the CPU, where answers then hardly follow the batch; bfloat16 on a GPU",
    )
    batch_invariant: bool = Field(
        False, description="on a GPU: answers that do not follow the batch; slower (VLLM_BATCH_INVARIANT)"
    )
    seed: int = 42
    request_timeout_s: float = Field(300.0, gt=0, description="for a model behind a URL")


class EmbedderSettings(Section):
    kind: Literal["auto", "model", "hashed"] = Field(
        "auto",
        description="hashed: character n-grams, spelling without meaning, no model, some 10,000 texts/s; "
        "auto: the model, but hashed for imports of more than max_facts_for_model facts",
    )
    max_facts_for_model: int = Field(5000, ge=0, description="for kind auto, of imports")
    path: str | None = Field(None, description="sentence-transformers directory; none: the embedded one")
    batch_size: int = Field(64, ge=1, description="texts at once, at most; long ones fewer on a CPU")
    dtype: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="bfloat16: up to 1.8 times the texts a second on a processor that computes in it, and "
        "vectors that follow their batch a little; an index keeps to what it was built with",
    )


class CorpusSettings(Section):
    max_file_mib: int = Field(256, ge=1, description="a larger file is rejected, not read")
    max_pages: int = Field(5000, ge=1, description="pages of one PDF; a longer one is rejected")
    follow_links: Literal["all", "inside", "none"] = Field(
        "all",
        description="links below a folder: inside rejects those that lead out of the paths that were given",
    )


class ChunkSettings(Section):
    max_tokens: int = Field(320, ge=32, description="hard maximum, in tokens of the model in use")
    overlap_tokens: int = Field(32, ge=0)

    @model_validator(mode="after")
    def _overlap_leaves_room(self) -> ChunkSettings:
        if self.overlap_tokens * 2 > self.max_tokens:
            raise ValueError("overlap_tokens may be at most half of max_tokens")
        return self


class PromptSettings(Section):
    """What is put to the model."""

    language: str = Field(
        "auto",
        description="of the prompts of a build; document: that of the text where there are prompts in it, "
        "else English; auto: English for the embedded model, which knows no other language, else document",
    )
    directory: str | None = Field(
        None,
        description="LANGUAGE/TASK.txt files that take the place of the shipped ones, as written by "
        "'hornbeam prompts write'",
    )


class ExtractSettings(Section):
    tier: Literal["model", "fast"] = Field(
        "model",
        description="fast: no model; noun-like spans that share a sentence, in the schema cooccurrence",
    )
    entities_per_clause: int = Field(3, ge=1)
    relations_per_head: int = Field(3, ge=0, description="of one chunk; 0: extract none")
    attributes_per_entity: int = Field(2, ge=0, description="of one chunk; 0: extract none")
    max_name_words: int = Field(
        10, ge=2, description="words in a name; for unspaced scripts, 2 characters each"
    )
    descriptions: bool = Field(
        False, description="with each entity, what the text says that it is: a span beside its name"
    )
    description_words: int = Field(16, ge=2, description="in a description; as for names")
    max_output_tokens: int = Field(256, ge=32, description="of one call")
    temperature: float = Field(0.0, ge=0)
    min_confidence: float = Field(
        0.0,
        ge=0,
        le=1,
        description="facts below stay out of the graph; how sure the model was, a probability of being "
        "right for guided facts alone",
    )
    examples: int = Field(3, ge=0, description="worked examples in the prompt")
    example_file: str | None = Field(
        None,
        description='worked examples in place of the shipped ones: JSON lines {"text", "entities": [[name, '
        'type], …], "relations": [[head, type, tail], …], "attributes": [[entity, type, value], …]}',
    )
    example_choice: Literal["fixed", "nearest"] = Field(
        "fixed",
        description="fixed: the first ones, the same for every chunk; nearest: the likest to each chunk",
    )
    known_facts: str | None = Field(
        None,
        description="JSON lines of sentences with their facts, in the schema's types; extraction is guided "
        "by the nearest of them, one call for a few sentences",
    )
    guided_threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        description="P(right) below which a guided fact is left out; the best is kept. None: the adapter's, "
        "else 0.06",
    )
    retries: int = Field(1, ge=0, description="of a call that failed")
    grammar_seconds: float = Field(
        5.0, gt=0, description="to compile one grammar; a slower one is asked for in parts"
    )
    retry_budget: float = Field(
        2.0, ge=1, description="times the tokens for a list that was cut, asked again; 1: not asked again"
    )
    retry_splits: int = Field(
        2, ge=0, le=6, description="how often a text may be halved whose list was still cut, or too long"
    )
    retry_types: int = Field(
        1, ge=0, le=6, description="how often the types of a call may be halved whose list was still cut"
    )
    verify: bool = Field(False, description="ask about every fact, yes or no")
    verify_threshold: float = Field(
        0.5, ge=0, le=1, description="P(yes) below which a verified fact stays out of the graph"
    )
    window: int = Field(128, ge=1, description="requests submitted to the model at once")


class ResolveSettings(Section):
    """Which names are one thing."""

    without: str = Field(
        "", description="kinds of evidence that do not count, between blanks, e.g. 'partial acronym'"
    )
    types: Literal["keep", "document"] = Field(
        "document",
        description="document: a name with two types in one document is one thing, of the likelier",
    )
    neighbours: int = Field(
        0, ge=0, description="names nearest to a name that may be forms of it in other documents; 0: none"
    )
    ask: bool = Field(
        False,
        description="ask the model, yes or no, about names of different documents that could be forms of one "
        "and that their company does not decide; looks at 5 neighbours where `neighbours` is 0",
    )
    ask_threshold: float = Field(0.9, ge=0, le=1, description="P(yes) from which such names are one thing")
    summarise_from: int = Field(
        0,
        ge=0,
        description="different descriptions of an entity from which they are clustered and the model says "
        "each cluster in a sentence of its words; 0: the surest mention's sentence is the description",
    )
    homonyms: Literal["off", "single", "all"] = Field(
        "single",
        description="names that may be different things in different documents; single: a person's only name",
    )


class EvolveSettings(Section):
    """Types that the schema lacks."""

    enabled: bool = Field(False, description="ask for them after extraction; the schema stays as it is")
    max_chunks: int | None = Field(1000, ge=1, description="chunks asked about, drawn evenly; none: all")
    types_per_chunk: int = Field(4, ge=1, le=32, description="of each kind, proposed for one chunk at most")
    max_name_words: int = Field(8, ge=2, description="words in an example")
    name_words: Literal["auto", "chunk", "any"] = Field(
        "auto", description="of proposed names; auto: the chunk's for the embedded model, else any"
    )
    max_output_tokens: int = Field(192, ge=32, description="of one call")
    retries: int = Field(1, ge=0, description="of a call that failed")
    examples: int = Field(10, ge=1, description="kept of each proposal")
    min_confidence: float = Field(0.6, ge=0, le=1, description="μ: mean confidence that a proposal needs")
    min_support: int = Field(
        2, ge=1, description="distinct documents that a proposal needs; in fewer than 10, chunks"
    )
    duplicate_similarity: float = Field(
        0.7, ge=0, le=1, description="cosine to an existing type from which a proposal is the same"
    )
    synonym_similarity: float = Field(
        0.78, ge=0, le=1, description="cosine from which two proposals are the same"
    )
    reextract: Literal["touched", "all"] = Field(
        "touched", description="after a type was accepted: chunks that it could touch, or all"
    )
    touch_similarity: float = Field(
        0.15, ge=0, le=1, description="cosine of chunk and new type from which the chunk is touched"
    )
    touch_share: float = Field(
        0.9,
        ge=0,
        le=1,
        description="of the chunks in which the type was seen: the bound falls until so many reach it; 0: it "
        "does not fall",
    )


class OrganiseSettings(Section):
    """The knowledge tree; DESIGN names in brackets."""

    partitioner: Literal["dual", "leiden"] = "dual"
    representation: Literal["propagated", "paper"] = "propagated"
    structure_weight: float = Field(0.3, ge=0, le=1, description="w of the dual perception")
    members_per_cluster: int = Field(10, ge=2, description="β of the initial clusters")
    max_clusters: int = Field(200, ge=2, description="η of the initial clusters")
    restarts: int = Field(5, ge=1)
    merge_threshold: float = Field(
        0.45, ge=0, le=2, description="ε: communities less unlike than this may merge; 0 = one, 1 = any two"
    )
    refinements: int = Field(2, ge=0, description="rounds of moving entities and merging again")
    max_community_size: int = Field(60, ge=2)
    keywords: int = Field(5, ge=1)
    summary_tokens: int = Field(160, ge=16)
    summary_retries: int = Field(1, ge=0)
    namer: Literal["model", "facts"] = Field(
        "model",
        description="of communities; facts: keywords and heaviest facts, without a model, as imports do",
    )
    summary_words: Literal["auto", "facts", "any"] = Field(
        "auto",
        description="of names and summaries; auto: those of the facts for the embedded model, else any",
    )
    seed: int = 42


class UpdateSettings(Section):
    max_drift: float = Field(
        0.2,
        ge=0,
        le=1,
        description="share of entities that may be new, gone or changed since communities were last found "
        "from scratch, before an update finds them all anew",
    )


class RetrieveSettings(Section):
    top_k: int = Field(10, ge=1)
    candidates: int = Field(40, ge=1, description="of each route, before fusion")
    depth: int = Field(5, ge=1, le=8, description="hops of a path")
    beam: int = Field(32, ge=1)
    gamma: float = Field(0.5, gt=0, le=1, description="discount of a path per hop")
    damping: float = Field(0.5, ge=0, lt=1, description="PageRank: how likely a walk goes on at a step")
    seed_facts: int = Field(4, ge=0, description="best facts that PageRank walks from")
    floor: float = Field(
        0.38,
        ge=0,
        le=1,
        description="relevance below which a search finds nothing; 0: never; for all-MiniLM-L6-v2",
    )
    without: tuple[str, ...] = Field((), description="routes that are left out, for comparison")
    asked_types: bool = Field(True, description="a type that the question asks for lifts its entities")
    fusion: Literal["rrf", "weighted"] = "weighted"
    rrf_k: int = Field(60, ge=1)
    rerank: Literal["off", "cross-encoder", "model"] = Field(
        "off", description="a second reading of the best chunks and triples; model: for queries, not searches"
    )
    cross_encoder: str | None = Field(None, description="its directory, for rerank=cross-encoder")
    rerank_candidates: int = Field(20, ge=2, description="chunks, and triples, that are read again")

    @field_validator("without", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        """ "community, path" from a command line or the environment is a list."""
        return (
            [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        )


class AnswerSettings(Section):
    mode: Literal["open", "reject"] = "open"
    style: Literal["auto", "extract", "short", "sentences"] = Field(
        "auto",
        description="a passage of the evidence, a few written words, or sentences; auto: extract for the "
        "embedded model, else sentences",
    )
    evidence_tokens: int = Field(700, ge=64)
    max_tokens: int = Field(160, ge=8)
    max_sentences: int = Field(3, ge=1)
    answerable_by: Literal["model", "evidence"] = Field(
        "model",
        description="in reject mode; model: its yes or no; evidence: how many of the question's words and "
        "names stand in what was found, without a call: for models too small to judge",
    )
    answerable_threshold: float = Field(0.5, ge=0, le=1, description="P(answerable) below is a rejection")
    words: Literal["auto", "question", "any"] = Field(
        "auto",
        description="of plans, queries and rewritten questions: those of question and evidence, or any; "
        "auto: any, but in the style extract",
    )
    plan_questions: int = Field(4, ge=1, le=9, description="sub-questions of one question, at most")
    max_steps: int = Field(
        5, ge=1, description="of the engine plan: each answers or searches, the last one answers"
    )
    global_calls: int = Field(12, ge=3, description="model calls of one global question, the answer included")
    global_tokens: int = Field(1200, ge=256, description="of community summaries in one of these calls")
    global_point_tokens: int = Field(192, ge=32, description="of what one of these calls may say")
    prompts: str | None = Field(
        None,
        description="LANGUAGE/TASK.txt files for questions, in place of the shipped ones; by default those "
        "of prompts.directory",
    )


class GateSettings(Section):
    max_degraded_chunks: float = Field(0.02, ge=0, le=1)
    max_failed_chunks: float = Field(0.0, ge=0, le=1)
    max_unverified_facts: float = Field(0.05, ge=0, le=1, description="when extract.verify is on")
    probes: str | None = Field(
        None, description='frozen questions, JSON lines {"question", "documents": [source, title or id, …]}'
    )
    probe_k: int = Field(10, ge=1, description="documents found that count, in order")
    max_recall_drop: float = Field(
        0.05, ge=0, le=1, description="of the probes' recall@k against the promoted version"
    )


class VersionSettings(Section):
    keep: int = Field(
        5, ge=1, description="newest versions that stay; older ones go, but for the promoted and those in use"
    )


class ServeSettings(Section):
    """`hornbeam serve`."""

    questions: int = Field(16, ge=1, description="answered at once")
    searches: int = Field(4, ge=1, description="at once; they are the processor's work")
    queue: int = Field(64, ge=0, description="of questions, and of searches, that wait; more are sent away")
    deadline_s: float = Field(60.0, gt=0, description="of a question, which may ask for less")
    body_bytes: int = Field(262_144, ge=1024, description="of a request")
    question_log: Literal["off", "rated", "all"] = Field(
        "rated",
        description="questions and answers that are kept with the index (questions.sqlite): those that "
        "somebody rated, all, or none",
    )
    traces: str | None = Field(
        None,
        description="an OpenTelemetry collector (OTLP over HTTP), e.g. http://localhost:4318/v1/traces; "
        "none: nothing is sent. Needs the extra `telemetry`",
    )
    sources: dict[str, str] = Field(
        {}, description="paths that a build started over HTTP may read, by the names that requests say"
    )
    build_settings: dict[str, str | int | float | bool] = Field(
        {},
        description="settings of such builds, over those that the index was built with: 'model.path' of "
        "another server, say",
    )


class CostSettings(Section):
    gpu_hour_price: float | None = Field(None, ge=0, description="of the machine, all its GPUs together")
    currency: str = "USD"
    budget: str | None = Field(
        None, description="of one run, which stops in order when it is used up: '3h', '2M tokens', '12.5'"
    )

    @model_validator(mode="after")
    def _budget_can_be_read(self) -> CostSettings:
        limits = self.limits()
        if limits.money is not None and self.gpu_hour_price is None:
            raise ValueError("a budget of money needs cost.gpu_hour_price")
        return self

    def limits(self) -> Budget:
        return parse_budget(self.budget, self.currency) if self.budget else Budget()


class RaySettings(Section):
    """Reading and extraction on many machines: `executor = "ray"`."""

    address: str | None = Field(
        None,
        description="of a running cluster: HOST:PORT, or auto for the one that this machine is part of; "
        "none: workers on this machine alone",
    )
    workers: int = Field(2, ge=1, description="that extract, each with a model of its own")
    gpus_per_worker: float | None = Field(
        None, ge=0, description="none: 1 where the model runs in the worker, on a GPU, else 0"
    )
    cpus_per_worker: int = Field(1, ge=1, description="also the threads of a worker's libraries")
    readers: int = Field(2, ge=1, description="groups of files that are read and cut at once")
    batch: int = Field(32, ge=1, description="chunks that go to a worker together")
    losses: int = Field(
        8, ge=0, description="workers lost without a batch done between them after which a run stops"
    )
    start_timeout_s: float = Field(600.0, gt=0, description="until the first worker must be there")
    object_store_mib: int = Field(
        256, ge=80, description="shared memory of a cluster that is started on this machine"
    )


class Settings(Section):
    executor: Literal["local", "ray"] = Field(
        "local", description="of reading and extraction; ray: section `ray`, needs the extra `ray`"
    )
    device: Literal["auto", "cpu", "cuda"] = "auto"
    repro: bool = Field(
        False,
        description="same input, same version: greedy, seeded, and on a GPU vLLM's batch-invariant kernels",
    )
    memory_limit_mib: int | None = Field(
        None, ge=64, description="of array blocks; none: a quarter of what is free"
    )
    schema_file: str = Field("general", description="a schema file, or the name of a seed schema")
    model: ModelSettings = ModelSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    corpus: CorpusSettings = CorpusSettings()
    chunk: ChunkSettings = ChunkSettings()
    prompts: PromptSettings = PromptSettings()
    extract: ExtractSettings = ExtractSettings()
    resolve: ResolveSettings = ResolveSettings()
    evolve: EvolveSettings = EvolveSettings()
    organise: OrganiseSettings = OrganiseSettings()
    update: UpdateSettings = UpdateSettings()
    retrieve: RetrieveSettings = RetrieveSettings()
    answer: AnswerSettings = AnswerSettings()
    gates: GateSettings = GateSettings()
    versions: VersionSettings = VersionSettings()
    serve: ServeSettings = ServeSettings()
    cost: CostSettings = CostSettings()
    ray: RaySettings = RaySettings()

    @model_validator(mode="after")
    def _repeatable(self) -> Settings:
        if self.repro and self.extract.temperature > 0:
            raise ValueError("repro needs extract.temperature = 0")
        return self

    @model_validator(mode="after")
    def _one_folder_of_prompts(self) -> Settings:
        if self.answer.prompts is None and self.prompts.directory is not None:
            answer = self.answer.model_copy(update={"prompts": self.prompts.directory})
            object.__setattr__(self, "answer", answer)  # settings are frozen for everyone else
        return self

    def fingerprint(self, *sections: str) -> str:
        """SHA-256 of the named sections, for keys of stored results."""
        dump = self.model_dump_json(include=set(sections))
        return hashlib.sha256(dump.encode()).hexdigest()


def load_settings(
    config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    base: Mapping[str, Any] | None = None,
) -> Settings:
    """Resolve the settings.

    Args:
        config: TOML file; None looks at `$HORNBEAM_CONFIG` and `./hornbeam.toml`.
        overrides: from the command line, `{"chunk.max_tokens": 300}`; None values are ignored.
        environment: `os.environ` unless given.
        base: what holds where none of these says otherwise, as a manifest has an index's settings.

    Raises:
        UsageError: a file that cannot be read, an unknown key, a value out of range.
    """
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = copy.deepcopy(dict(base or {}))
    path = _config_file(config, environment)
    if path is not None:
        try:
            _merge(values, tomllib.loads(path.read_text("utf-8")))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageError(f"settings file {path}: {reason(error)}") from error
    origins: dict[str, str] = {}
    for name, text in environment.items():
        if name in RESERVED_ENVIRONMENT or name.startswith(_OF_TESTS):
            continue
        if name.startswith(ENVIRONMENT_PREFIX):
            keys = name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
            _assign(values, keys, text, name)
            origins[".".join(keys)] = name
    for dotted, value in (overrides or {}).items():
        if value is not None:
            _assign(values, dotted.split("."), value, dotted)
            origins[dotted] = "command line"
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise UsageError(_explain(error, origins, str(path) if path else "settings")) from error


def _config_file(config: Path | None, environment: Mapping[str, str]) -> Path | None:
    if config is not None:
        return config
    if named := environment.get("HORNBEAM_CONFIG"):
        return Path(named)
    default = Path("hornbeam.toml")
    return default if default.is_file() else None


def _merge(values: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Section by section, `changes` over `values`."""
    for name, change in changes.items():
        held = values.get(name)
        if isinstance(held, dict) and isinstance(change, dict):
            _merge(held, change)
        else:
            values[name] = change


def _assign(values: dict[str, Any], keys: list[str], value: Any, origin: str) -> None:
    node = values
    for key in keys[:-1]:
        node = node.setdefault(key, {})
        if not isinstance(node, dict):
            raise UsageError(f"{origin}: '{key}' is a value, not a section")
    node[keys[-1]] = value


def _explain(error: ValidationError, origins: Mapping[str, str], file: str) -> str:
    """All problems in one line, each with where it came from; an unknown key with the nearest known one."""
    problems = []
    for problem in error.errors():
        location = [str(part) for part in problem["loc"]]
        dotted = ".".join(location)
        # Of what several values of a section say together, whoever has set one of them.
        setters = {one for key, one in origins.items() if f"{key}.".startswith(f"{dotted}.")}
        origin = setters.pop() if len(setters) == 1 else file
        said = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        if not location:  # of several sections together
            problems.append(f"{file}: {said}")
        elif problem["type"] == "extra_forbidden":
            known = _known_keys(location[:-1])
            near = difflib.get_close_matches(location[-1], known, n=1, cutoff=0.0)
            hint = f"; did you mean '{'.'.join([*location[:-1], near[0]])}'?" if near else ""
            problems.append(f"{origin}: unknown key '{dotted}'{hint}")
        else:
            given = f" (got {_short(problem['input'])})"
            # What is given in place of a whole section may hold the key too.
            if location[-1] == "api_key" or isinstance(problem["input"], dict | list):
                given = ""
            problems.append(f"{origin}: '{dotted}': {said}{given}")
    return "; ".join(problems)


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}…"


def _known_keys(section: list[str]) -> list[str]:
    model: type[BaseModel] = Settings
    for key in section:
        annotation = model.model_fields[key].annotation
        assert isinstance(annotation, type)
        assert issubclass(annotation, BaseModel)
        model = annotation
    return list(model.model_fields)
