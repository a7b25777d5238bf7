"""The one error that a user can mend."""


class InputError(ValueError):
    """Bad input: the message names the file, line or token, and what to do.

    The command line prints it as one line and exits with code 2.
    """
