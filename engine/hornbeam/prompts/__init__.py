"""What is put to the model, in builds and about questions: text files, one per task and language, and worked
examples.

The shipped files lie beside this module, a folder a language; a folder of the user's takes their place file
by file (`prompts.directory`).
"""

from hornbeam.prompts.files import DEFAULT_LANGUAGE, Prompts, load_prompts, shipped_prompts, write_prompts
from hornbeam.prompts.template import TASKS, PromptText
from hornbeam.prompts.worked import ExampleFile, TypeExample, WorkedExample

__all__ = [
    "DEFAULT_LANGUAGE",
    "TASKS",
    "ExampleFile",
    "PromptText",
    "Prompts",
    "TypeExample",
    "WorkedExample",
    "load_prompts",
    "shipped_prompts",
    "write_prompts",
]
