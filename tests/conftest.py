import sys
from pathlib import Path

# `from support.walker import GrammarWalker` works in every test folder; the folders are no packages.
sys.path.insert(0, str(Path(__file__).parent))
