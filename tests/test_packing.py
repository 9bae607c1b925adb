"""Text in an address: there and back, and nothing that could fill the memory."""

import zlib
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.errors import FieldError
from calculator.packing import LARGEST, LONGEST, packed, unpacked


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_text_comes_back(text):
    assert unpacked(packed(text), "config") == text


def test_it_needs_no_escaping_and_is_shorter():
    text = '{"num_hidden_layers":32}' * 20
    assert packed(text).replace("-", "").replace("_", "").isalnum()
    assert len(packed(text)) < len(text) / 4


def deflated(content: bytes) -> str:
    return urlsafe_b64encode(zlib.compress(content, wbits=-15)).decode().rstrip("=")


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("A" * (LONGEST + 1), "error.packed_long"),
        (deflated(b"x" * (LARGEST + 1)), "error.packed"),
        (deflated(b"x" * 10**8)[:LONGEST], "error.packed"),
        (packed("whole")[:-3], "error.packed"),
        (deflated(b"\xff\xfe"), "error.packed"),
        ("not base64!", "error.packed"),
        ("é", "error.packed"),
        ("AAAA", "error.packed"),
        ("A", "error.packed"),
    ],
)
def test_what_is_not_packed_text_is_refused_at_its_field(given, key):
    with pytest.raises(FieldError) as caught:
        unpacked(given, "config")
    assert (caught.value.key, caught.value.field) == (key, "config")
