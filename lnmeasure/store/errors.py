"""What can be wrong with a store. Each message names the file, the rule and the way out."""


class StoreError(Exception):
    """The store cannot be used as it is. exit_code is what a job ends with."""

    exit_code = 76


class StoreMissing(StoreError):
    """There is no store at the path."""


class StoreBusy(StoreError):
    """Another refresh holds the store's lock."""

    exit_code = 75
