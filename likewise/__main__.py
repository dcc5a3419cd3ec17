"""`python -m likewise`, where the folder of the command is not in PATH."""

from likewise.shell.program import main

if __name__ == "__main__":
    main()
