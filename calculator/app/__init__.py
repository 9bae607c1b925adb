"""The Panel app behind the page."""
