"""What classes and mistakes are called."""


def name(class_names, number):
    """The name of a class: `class_names` are in label order, or None, then it is the number."""
    return str(number) if class_names is None else class_names[number]


def names(class_names, num_classes):
    """The names of all classes, a list."""
    return [name(class_names, number) for number in range(num_classes)]


def shortened(text, length):
    """The text, or its beginning and '...' if it is longer than `length` characters, which are more
    than 3."""
    return text if len(text) <= length else text[: length - 3].rstrip() + '...'


def mistake(predicted, label, probability):
    """Two parts that together tell a mistake, like 'cat,' and 'not dog 0.98'.

    Args:
      predicted, label: names of classes.
      probability: of the predicted class.
    """
    return '%s,' % predicted, 'not %s %.2f' % (label, probability)
