"""Text that travels in an address: deflated, in letters that need no escaping there."""

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error

from .errors import FieldError

LONGEST = 16_000  # letters that are unpacked at all
LARGEST = 200_000  # bytes that they may become
_RAW = -15  # deflate without a header, RFC 1951


def packed(text: str) -> str:
    """`text` deflated, in base64url without padding."""
    squeezed = zlib.compressobj(9, wbits=_RAW)
    return urlsafe_b64encode(squeezed.compress(text.encode()) + squeezed.flush()).decode().rstrip("=")


def unpacked(given: str, field: str) -> str:
    """The text of `packed`.

    Raises:
        FieldError: too long, not of this form, or more than 200,000 bytes of text.
    """
    if len(given) > LONGEST:
        raise FieldError("error.packed_long", field=field, value=len(given), highest=LONGEST)
    try:
        unsqueezed = zlib.decompressobj(wbits=_RAW)
        content = unsqueezed.decompress(urlsafe_b64decode(given + "=" * (-len(given) % 4)), LARGEST + 1)
        if not unsqueezed.eof or len(content) > LARGEST:
            raise FieldError("error.packed", field=field, value=f"{given[:20]}…")
        return content.decode()
    except (Error, ValueError, zlib.error) as error:
        raise FieldError("error.packed", field=field, value=f"{given[:20]}…") from error
