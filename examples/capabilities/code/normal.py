"""What the words of a text are."""
import re


def words(text):
    return re.findall(r"\w+", text.lower())
