"""Tables in Markdown."""


def table(header, rows):
    """A table as lines of Markdown.

    Args:
      header: a list of strings.
      rows: a list of lists of strings.
    """
    lines = [header, ['---'] * len(header)] + rows
    return '\n'.join(
        '| %s |' % ' | '.join(cell.replace('|', r'\|') for cell in cells) for cells in lines
    )
