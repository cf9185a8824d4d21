"""Tables in Markdown."""


def table(header, rows):
    """A table as lines of Markdown.

    Args:
      header: a list of strings.
      rows: a list of lists of strings.
    """
    return '\n'.join('| %s |' % ' | '.join(cells) for cells in [header, ['---'] * len(header)] + rows)
