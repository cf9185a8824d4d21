"""What the scripts share: a quiet start, flags, the plan, errors in one line."""
