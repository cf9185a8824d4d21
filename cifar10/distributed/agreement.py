"""What all workers of a run must have in common."""

import json
import reprlib

from cifar10.errors import UserError


def text(job, strategy, data_checksum):
    """The hyperparameters, the Strategy and the data of a training.Job, by the names of flags, as
    JSON."""
    return json.dumps(
        dict(
            job.hparams._asdict(),
            num_towers=job.num_towers,
            max_steps=job.max_steps,
            seed=job.seed,
            deterministic=job.deterministic,
            num_examples=job.num_examples,
            class_names=job.data.class_names,
            data_checksum=data_checksum,
            **strategy._asdict(),
        )
    )


def adopted(job, names, theirs):
    """Returns the Job with the hyperparameters of these names as the run has them, by its text."""
    run = json.loads(theirs)
    return job._replace(hparams=job.hparams._replace(**{name: run[name] for name in names}))


def check(name, ours, theirs):
    """Compares two texts.

    Args:
      name: of this worker.
      ours, theirs: the texts of this worker and of the run.

    Raises:
      UserError: names the first value in which they differ.
    """
    run, worker = json.loads(theirs), json.loads(ours)
    for field, value in worker.items():
        if run.get(field) != value:
            raise UserError(
                'The run has %s %s, but %s has %s: give all workers the same flags and data'
                % (field, reprlib.repr(run.get(field)), name, reprlib.repr(value))
            )
