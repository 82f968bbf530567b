"""Hamiltonian Monte Carlo for the eight schools: many chains in one compiled call.

Eight schools coached their pupils for a test; school j found an effect y[j] with a standard error s[j] (Rubin, 1981;
Gelman et al., *Bayesian Data Analysis*, 3rd ed., 2013, section 5.5):

    mu ~ N(0, 10)    tau ~ half-Cauchy(0, 5)    theta[j] = mu + tau z[j],  z[j] ~ N(0, 1)    y[j] ~ N(theta[j], s[j])

A chain is a Python function with loops and an accept-or-reject `if`, which calls `grad` of the log-density.  `vmap`
runs chains beside each other, each with its own branches; `jit` compiles the whole.  As theta can be integrated out by
hand, moments of mu and tau are known from quadrature, to compare with (Neal, *MCMC using Hamiltonian dynamics*, 2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import figures
import numpy as np
from figures import BLACK, BLUE, GRAY, GREEN, ORANGE

import gradsmith

Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
S = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOLS = "ABCDEFGH"


def log_density(q):
    """Up to a constant; q: mu, log tau, z."""
    mu, log_tau, z = q[0], q[1], q[2:]
    tau = np.exp(log_tau)
    theta = mu + tau * z
    prior = -0.5 * (mu / 10.0) ** 2 - np.log1p((tau / 5.0) ** 2) + log_tau - 0.5 * np.sum(z**2)
    return prior - 0.5 * np.sum(((Y - theta) / S) ** 2)


def leapfrog(q, p, step, steps):
    """The way of a particle, momentum p, over the landscape -log_density."""
    slope = gradsmith.grad(log_density)
    p = p + 0.5 * step * slope(q)
    for k in range(steps):
        q = q + step * p
        p = p + (1.0 if k < steps - 1 else 0.5) * step * slope(q)
    return q, p


def chain(q, momenta, levels, jitter, step, steps):
    """States after each proposal, and the rate at which proposals were accepted.

    momenta: normal numbers, a row for each proposal.  levels, jitter: uniform numbers, one for each.
    """
    samples = np.empty(momenta.shape)
    accepted = 0
    energy = -log_density(q)
    for t in range(len(momenta)):
        p = momenta[t]
        new_q, new_p = leapfrog(q, p, step * (0.8 + 0.4 * jitter[t]), steps)
        new_energy = -log_density(new_q)
        if np.log(levels[t]) < energy + 0.5 * p @ p - new_energy - 0.5 * new_p @ new_p:
            q, energy = new_q, new_energy
            accepted += 1
        samples[t] = q
    return samples, accepted / len(momenta)


sample = gradsmith.jit(gradsmith.vmap(chain, in_axes=(0, 0, 0, 0, None, None)))


def quadrature(points: int = 400) -> tuple[Any, ...]:
    """Densities of mu and tau over grids: with theta integrated out, y[j] ~ N(mu, s[j]^2 + tau^2)."""
    mu, tau = np.linspace(-25.0, 35.0, points), np.linspace(1e-3, 60.0, points)
    variance = S**2 + tau[:, None] ** 2
    exponent = -0.5 * np.sum((Y - mu[:, None, None]) ** 2 / variance + np.log(variance), axis=-1)
    joint = np.exp(exponent - 0.5 * (mu[:, None] / 10.0) ** 2 - np.log1p((tau / 5.0) ** 2))
    of_mu, of_tau = joint.sum(1), joint.sum(0)
    return mu, of_mu / np.trapezoid(of_mu, mu), tau, of_tau / np.trapezoid(of_tau, tau)


@dataclass
class Found:
    samples: Any            # chains, proposals, (mu, tau, theta)
    rate: float
    known: tuple[Any, ...]

    def moments(self) -> Any:
        """Rows mean and deviation, columns mu and tau: sampled, and by quadrature."""
        flat = self.samples[..., :2].reshape(-1, 2)
        exact = []
        for x, density in (self.known[:2], self.known[2:]):
            mean = np.trapezoid(x * density, x)
            exact.append((mean, np.sqrt(np.trapezoid((x - mean) ** 2 * density, x))))
        return np.array([flat.mean(0), flat.std(0)]), np.array(exact).T

    def r_hat(self) -> float:
        """The worst potential scale reduction: close to one where the chains agree."""
        x = self.samples
        between, within = x.mean(1).var(0, ddof=1), x.var(1, ddof=1).mean(0)
        return float(np.max(np.sqrt(1.0 + between / within)))

    def __str__(self) -> str:
        (mean, deviation), (exact_mean, exact_deviation) = self.moments()
        return (f"mu {mean[0]:.2f} +- {deviation[0]:.2f} (exact {exact_mean[0]:.2f} +- {exact_deviation[0]:.2f}), "
                f"tau {mean[1]:.2f} +- {deviation[1]:.2f} (exact {exact_mean[1]:.2f} +- {exact_deviation[1]:.2f}); "
                f"{self.rate:.0%} accepted, R-hat {self.r_hat():.3f}")


def solve(chains: int = 32, proposals: int = 2500, warm_up: int = 250, step: float = 0.25, steps: int = 12) -> Found:
    rng = np.random.default_rng(2)
    start = rng.normal(size=(chains, 10))
    momenta = rng.normal(size=(chains, proposals, 10))
    q, rate = sample(start, momenta, rng.uniform(size=(chains, proposals)), rng.uniform(size=(chains, proposals)),
                     step, steps)
    q = q[:, warm_up:]
    mu, tau = q[..., :1], np.exp(q[..., 1:2])
    return Found(np.concatenate([mu, tau, mu + tau * q[..., 2:]], axis=-1), float(np.mean(rate)), quadrature())


def draw(found: Found) -> Any:
    figure, (left, middle, right) = figures.panels(1.0, 1.0, 1.1)
    mu, of_mu, tau, of_tau = found.known
    flat = found.samples.reshape(-1, found.samples.shape[-1])
    for axes, x, density, column, limits, name in ((left, mu, of_mu, 0, (-10.0, 20.0), r"$\mu$, mean effect (points)"),
                                                   (middle, tau, of_tau, 1, (0.0, 20.0), r"$\tau$, spread (points)")):
        axes.hist(flat[:, column], bins=np.linspace(*limits, 61), density=True, color=BLUE, alpha=0.35, label="sampled")
        axes.plot(x, density, color=BLACK, lw=1.2, label="quadrature")
        axes.set(xlim=limits, xlabel=name, ylabel="density (1/points)")
    left.set(title="Mean over schools")
    middle.set(title="Spread between schools")
    left.legend(fontsize=8)

    rows = np.arange(8)[::-1]
    right.errorbar(Y, rows + 0.16, xerr=S, fmt="s", color=GRAY, ms=4, lw=1.0, label="measured, one standard error")
    mean, deviation = flat[:, 2:].mean(0), flat[:, 2:].std(0)
    right.errorbar(mean, rows - 0.16, xerr=deviation, fmt="o", color=ORANGE, ms=4.5, lw=1.4,
                   label="posterior, one deviation")
    right.axvline(flat[:, 0].mean(), ymax=0.8, color=GREEN, lw=1.0, ls="--", label=r"mean of $\mu$")
    right.set_yticks(rows, list(SCHOOLS))
    right.set(xlabel="effect of coaching (points)", ylabel="school", title="School by school", ylim=(-0.8, 9.6))
    right.legend(fontsize=7.5, loc="upper left")
    return figure


SMALL = {"chains": 16, "proposals": 800, "warm_up": 100}

if __name__ == "__main__":
    figures.main(solve, draw, SMALL)
