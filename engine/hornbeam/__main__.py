"""`python -m hornbeam` is `hornbeam`."""

from hornbeam.cli import main

if __name__ == "__main__":
    main()
