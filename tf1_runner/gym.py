"""The interface of Gym before version 0.26, on Gymnasium.

A program imports it as `gym`, if Gymnasium is installed.
"""

import gymnasium
from gymnasium import *  # noqa: F403 (programs use its other names)


class _OldInterface(gymnasium.Wrapper):
    """Environment whose `reset` returns the observation, and whose `step` returns four values."""

    def reset(self, **options):
        return self.env.reset(**options)[0]

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated or truncated, info

    def render(self, *unused_mode, **unused_options):
        return None


def make(id, **options):
    """Return an environment, by its name like 'CartPole-v0'; `render` draws nothing."""
    return _OldInterface(gymnasium.make(id, **options))
