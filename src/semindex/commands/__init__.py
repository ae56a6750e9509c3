"""The subcommands of ``semindex``, one module each: its arguments, and what it does with them.

A module has ``add_parser(subparsers)``, which sets ``run`` as the parser's default, and ``run(arguments)``, which
returns the exit code. Whatever is slow to import is imported by ``run``.
"""
