"""`python -m jointset`: the command line, where its script is on no path."""

from jointset.cli import main

if __name__ == "__main__":
    main()
