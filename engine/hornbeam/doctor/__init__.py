"""What is installed, which backend serves each part and why, and what is missing and how to get it.

Looks at package metadata, files and devices and imports no heavy library, so that it is quick and still
answers where one cannot be loaded. (torch is imported only where a GPU's device file is there to ask about.)

diagnosis     what was found, as plain data
sizes         amounts of bytes
components    installed distributions against what is required
machine       processor, memory, disks, GPUs
models        the language model and the embedder that the settings lead to
parts         what serves each part of the engine
examination   all of it together
rendering     the diagnosis for people
"""

from hornbeam.doctor.diagnosis import Diagnosis
from hornbeam.doctor.examination import examine
from hornbeam.doctor.rendering import render

__all__ = ["Diagnosis", "examine", "render"]
