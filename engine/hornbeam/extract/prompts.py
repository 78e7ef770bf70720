"""The prompts of two-stage extraction.

Both stages share one prompt up to and including the chunk and the entities, so the second stage's prefill
comes out of the prefix cache:

    [instructions · schema · examples] [chunk] {"entities":[ … ]} {"relations":[ …
    └────────── stage one reads ─────────────┘└── writes ──┘
    └────────────────────── stage two reads ───────────────┘└── writes ──┘

Everything before the chunk is the same for every chunk of a build and language; with nearest examples,
everything before these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hornbeam.extract.examples import Example, ExampleStore, choose, read_examples, rows, schema_examples
from hornbeam.extract.known_facts import Encoder
from hornbeam.grammar import entities as entity_stage
from hornbeam.grammar import relations as relation_stage
from hornbeam.grammar.relations import NamedEntity
from hornbeam.llm.protocol import LanguageModel
from hornbeam.prompts import Prompts, PromptText
from hornbeam.schema.describe import attribute_lines, entity_lines, relation_lines
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings

TASK, DESCRIBING = "extraction", "describing"


@dataclass(frozen=True, slots=True)
class ExtractionPrompt:
    """The prompts of one chunk, or of all that share their instructions.

    Args:
        system: instructions, schema and examples.
        text: of the task; its question is asked.
    """

    system: str
    text: PromptText
    model: LanguageModel

    @property
    def fixed_tokens(self) -> int:
        """Tokens of the part that is not the chunk."""
        return self.model.tokenizer.count(self.entities(""))

    def entities(self, text: str) -> str:
        return self.model.chat_prompt(self.system, self._asked(text)) + entity_stage.OPENING

    def question(self, text: str, question: str) -> str:
        """About the chunk, behind the prompt that the stages share."""
        return self.model.chat_prompt(
            self.system, f"{self._asked(text)}\n\n{self.model.neutralise(question)}"
        )

    def relations(self, text: str, entities: Sequence[NamedEntity]) -> str:
        named = rows([(entity.name, entity.type) for entity in entities])
        return f"{self.entities(text)}{named}]}}\n{relation_stage.OPENING}"

    def _asked(self, text: str) -> str:
        return self.text.ask(text=self.model.neutralise(text))


class ExtractionPrompts:
    """The prompts of one schema for one model, in every language that there are prompts in.

    Args:
        schema: types with descriptions; those that are not asked for are not shown.
        model: for its chat format and its room.
        encoder: where the settings ask for the nearest examples.

    Raises:
        UsageError: the file of examples cannot be used.
    """

    def __init__(
        self,
        prompts: Prompts,
        schema: GraphSchema,
        model: LanguageModel,
        settings: ExtractSettings,
        encoder: Encoder | None = None,
    ) -> None:
        self._prompts = prompts
        self._schema = schema
        self._model = model
        self._settings = settings
        own = read_examples(Path(settings.example_file), schema) if settings.example_file else None
        nearest = encoder if settings.example_choice == "nearest" else None
        self._stores = {
            language: ExampleStore(own or schema_examples(schema, prompts.examples(language)), nearest)
            for language in prompts.languages
        }
        self._fixed = {
            language: self._filled(language, store.ranked(""))
            for language, store in self._stores.items()
            if not store.varies
        }
        self.versions: Mapping[str, str] = self._versions()

    def of(self, text: str, language: str = "") -> ExtractionPrompt:
        """
        Args:
            text: the chunk.
            language: that it is written in; "" and others without prompts: the first there is.
        """
        chosen = self._prompts.language_of(language)
        fixed = self._fixed.get(chosen)
        return fixed or self._with_nearest(chosen, text)

    def _with_nearest(self, language: str, text: str) -> ExtractionPrompt:
        """As many of the nearest as the context has room for, the nearest next to the chunk."""
        bare = self._filled(language, ())
        room = self._model.max_model_len - 2 * self._settings.max_output_tokens
        left = room - self._model.tokenizer.count(bare.entities(text))

        def fits(example: str) -> bool:
            nonlocal left
            cost = self._model.tokenizer.count(example) + 2  # and the blank line before the next
            if cost > left:
                return False
            left -= cost
            return True

        ranked = self._stores[language].ranked(text)
        shown = choose(ranked, self._settings.examples, lambda one: self._rendered(language, one), fits)
        return self._instructed(language, list(shown)[::-1])

    def _filled(self, language: str, examples: Sequence[Example]) -> ExtractionPrompt:
        shown = examples[: self._settings.examples]
        return self._instructed(language, [self._rendered(language, example) for example in shown])

    def _rendered(self, language: str, example: Example) -> str:
        question = self._prompts.text(TASK, language).ask(text=example.text)
        rendered = example.rendered(question, described=self._settings.descriptions)
        return self._model.neutralise(rendered)

    def _instructed(self, language: str, examples: Sequence[str]) -> ExtractionPrompt:
        text = self._prompts.text(TASK, language)
        relations = relation_lines(self._schema) if self._settings.relations_per_head else []
        attributes = attribute_lines(self._schema) if self._settings.attributes_per_entity else []
        entities = "\n".join(entity_lines(self._schema))
        if self._settings.descriptions:
            entities += f"\n\n{self._prompts.text(DESCRIBING, language).ask()}"
        system = text.instruct(
            entity_types=entities,
            relation_types="\n".join(relations) or "none",
            attribute_types="\n".join(attributes) or "none",
            examples="\n\n".join(examples),
        )
        return ExtractionPrompt(system, text, self._model)

    def _versions(self) -> dict[str, str]:
        """By language, with "" for all that have no prompts of their own."""
        versions = {}
        for language, store in self._stores.items():
            prompt = self._fixed.get(language)
            shown = prompt.system if prompt else f"{self._filled(language, ()).system}\n{store.version}"
            content = f"{shown}\n{self._prompts.text(TASK, language).question}"
            versions[language] = hashlib.sha256(content.encode()).hexdigest()[:16]
        return {"": versions[self._prompts.languages[0]]} | versions
