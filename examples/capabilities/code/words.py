import collections

import normal  # the file beside this one


def count(text: str, most: int | None = None, *, ignore: set[str] = frozenset()) -> dict[str, int]:
    """Counts the words of a text.

    :param text: any text
    :param most: only so many of the commonest words
    :param ignore: words that do not count
    """
    words = [w for w in normal.words(text) if w not in ignore]
    return dict(collections.Counter(words).most_common(most))
