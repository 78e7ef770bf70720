import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# `from support.walker import GrammarWalker` works in every test folder; the folders are no packages.
sys.path.insert(0, str(Path(__file__).parent))

# On a busy machine an example may take long for reasons that are not ours.
settings.register_profile("shared_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared_machine")
