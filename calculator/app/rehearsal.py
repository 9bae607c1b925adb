"""STUB, replaced by the page work: drives every control once, so that the build sees every import."""


def rehearse() -> None:
    from .browser import start

    start("")
