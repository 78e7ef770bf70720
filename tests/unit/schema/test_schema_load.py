"""Finding a schema by name or path, and the seed schemas themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hornbeam.errors import SchemaError
from hornbeam.schema import GraphSchema, load, load_schema, seed_schemas

SEEDS = ["cooccurrence", "general", "incident", "medical", "nerel", "research"]
SMALL = '{"name": "small", "entity_types": [{"name": "人物"}]}'


def refusal(name_or_path: str) -> str:
    with pytest.raises(SchemaError) as caught:
        load_schema(name_or_path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestLoading:
    @pytest.mark.parametrize("mark", ["", "\ufeff"])
    def test_a_file_is_read_with_or_without_a_byte_order_mark(self, tmp_path: Path, mark: str) -> None:
        (tmp_path / "mine.json").write_text(mark + SMALL, encoding="utf-8")
        assert load_schema(str(tmp_path / "mine.json")).entity_types[0].name == "人物"

    def test_a_form_without_a_name_is_named_after_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "news.conf").write_text("[entities]\nPERSON\n")
        assert load_schema(str(tmp_path / "news.conf")).name == "news"

    def test_an_unknown_name_is_refused_with_the_seeds_and_the_nearest(self) -> None:
        assert refusal("genral") == (
            "no schema 'genral': no such file, and the seed schemas are "
            "cooccurrence, general, incident, medical, nerel, research; did you mean 'general'?"
        )

    def test_a_seed_wins_over_a_file_of_its_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "general").write_text(SMALL, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        assert load_schema("general").name == "general"
        assert load_schema("./general").name == "small"

    def test_errors_name_the_file(self, tmp_path: Path) -> None:
        file = tmp_path / "mine.json"
        file.write_text('{"name": "m", "entity_types": []}')
        assert (
            refusal(str(file))
            == f"schema file {file}: schema 'm' declares no entity type; at least one is needed"
        )
        file.write_bytes(b'{"name": "\xff"}')
        assert refusal(str(file)) == f"schema file {file}: not UTF-8 text (byte 10)"
        assert refusal(str(tmp_path)) == f"schema file {tmp_path}: cannot be read: Is a directory"

    def test_seeds_in_the_package_come_before_the_checkout(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        installed = tmp_path / "seed_schemas"
        installed.mkdir()
        (installed / "small.json").write_text(SMALL, encoding="utf-8")
        monkeypatch.setattr(load, "_SEED_FOLDERS", (installed, *load._SEED_FOLDERS))
        assert seed_schemas() == ["small"]
        assert load_schema("small").name == "small"

    def test_an_installation_without_seeds_still_reads_files(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "mine.json").write_text(SMALL, encoding="utf-8")
        monkeypatch.setattr(load, "_SEED_FOLDERS", (tmp_path / "none",))
        assert load_schema(str(tmp_path / "mine.json")).name == "small"
        assert "the seed schemas are none (the installation is incomplete)" in refusal("general")


class TestSeeds:
    def test_the_seeds_are_these(self) -> None:
        assert seed_schemas() == SEEDS

    @pytest.fixture(params=SEEDS)
    def seed(self, request: pytest.FixtureRequest) -> GraphSchema:
        return load_schema(request.param)

    def test_each_seed_is_named_like_its_file(self, seed: GraphSchema) -> None:
        assert seed.name in SEEDS
        assert seed.version == 1

    def test_every_domain_and_range_exists(self, seed: GraphSchema) -> None:
        known = {entity.name for entity in seed.entity_types}
        for item in seed.relation_types:
            assert {*item.domain, *item.range} <= known, item.name
        for attribute in seed.attribute_types:
            assert attribute.domain, attribute.name
            assert set(attribute.domain) <= known, attribute.name

    def test_every_entity_type_takes_part_in_a_relation(self, seed: GraphSchema) -> None:
        heads = {name for r in seed.relation_types for name in seed.head_types(r.name)}
        tails = {name for r in seed.relation_types for name in seed.tail_types(r.name)}
        assert heads | tails == {entity.name for entity in seed.entity_types}

    def test_every_description_is_there_and_short(self, seed: GraphSchema) -> None:
        for item in (*seed.entity_types, *seed.relation_types, *seed.attribute_types):
            assert 1 <= len(item.description.split()) <= 8, item.name

    def test_names_are_snake_case(self, seed: GraphSchema) -> None:
        for item in (*seed.entity_types, *seed.relation_types, *seed.attribute_types):
            assert item.name.isascii()
            assert item.name.replace("_", "").isalpha()
            assert item.name == item.name.lower()

    def test_nerel_is_complete(self) -> None:
        nerel = load_schema("nerel")
        assert (len(nerel.entity_types), len(nerel.relation_types)) == (29, 49)
        assert nerel.allows("works_as", "person", "profession")
        assert not nerel.allows("works_as", "organization", "profession")


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, hornbeam.schema; "
        "heavy = {'numpy', 'pyarrow', 'torch', 'xgrammar', 'vllm', 'pydantic_settings'}; "
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
