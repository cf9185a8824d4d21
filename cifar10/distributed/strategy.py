"""How the workers' gradients or weights come together: the modes and their numbers."""

from typing import NamedTuple

from cifar10.errors import UserError

MODES = ('sync', 'allreduce', 'async', 'average')


class Strategy(NamedTuple):
    """How several workers train one network."""

    mode: str  # one of MODES
    num_workers: int
    # with sync, the workers whose gradients make an update; 0 means all
    replicas_to_aggregate: int = 0
    fetch_steps: int = 1  # with async, after how many of its steps a worker fetches the weights
    push_steps: int = 1  # with async, after how many of its steps a worker sends its gradients
    average_period: int = 10  # with average, after how many steps the weights are averaged

    @property
    def has_servers(self):
        """Whether there are parameter servers."""
        return self.mode != 'allreduce'

    @property
    def needs_all(self):
        """Whether the run stands still without its chief, and then begins again at the last
        checkpoint."""
        return self.mode in ('sync', 'allreduce')

    @property
    def num_aggregated(self):
        """With sync, the workers whose gradients make an update."""
        return self.replicas_to_aggregate or self.num_workers

    @property
    def batches_per_step(self):
        """The batches, one of each tower of a worker, from which a step of the run is made."""
        return {
            'sync': self.num_aggregated,
            'allreduce': self.num_workers,
            'async': self.push_steps,
            'average': self.num_workers,
        }[self.mode]

    @property
    def steps_per_run(self):
        """The steps of the run that a session run of a worker's train op makes."""
        return self.average_period if self.mode == 'average' else 1

    def check(self):
        """Raises UserError if numbers are given that have no effect, or cannot be."""
        for name, mode, default in [
            ('replicas_to_aggregate', 'sync', 0),
            ('fetch_steps', 'async', 1),
            ('push_steps', 'async', 1),
            ('average_period', 'average', 10),
        ]:
            if getattr(self, name) != default and self.mode != mode:
                raise UserError(
                    '--%s has no effect with --mode=%s: leave it out, or give --mode=%s'
                    % (name, self.mode, mode)
                )
        if self.num_aggregated > self.num_workers:
            raise UserError(
                '--replicas_to_aggregate=%d is more than the %d workers: give at most their number'
                % (self.replicas_to_aggregate, self.num_workers)
            )
