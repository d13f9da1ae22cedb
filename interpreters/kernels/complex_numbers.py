"""Functions of complex128 numbers for which numpy's own functions are inaccurate or mishandle special values.

For zeros, infinities and NaN they follow Annex G of the C standard, as StableHLO's reference interpreter does.
`exponential` and the functions that use it are an exception: if the real part is infinite and the imaginary part is not
finite, the result is NaN, as in StableHLO's tests and in XLA.
"""

from __future__ import annotations

import numpy as np

from .arrays import Array

NAN = complex(np.nan, np.nan)
# For larger real parts x, 1 is negligible compared with e**x.
FAR = 40.0
# Dekker's constant for f64. It splits 53 bits into 26 and 27.
SPLIT = 2.0**27 + 1


def of_parts(real: Array, imaginary: Array) -> Array:
    """Return complex numbers with these parts. `real + 1j * imaginary` would turn infinities into NaN and lose signs of
    zeros."""
    result = np.empty(np.shape(real), np.complex128)
    result.real, result.imag = real, imaginary
    return result


def parts_of(a: Array) -> tuple[Array, Array]:
    return np.real(a), np.imag(a)


def exponential(a: Array) -> Array:
    real, imaginary = parts_of(a)
    return np.where(np.isinf(real) & ~np.isfinite(imaginary), NAN, np.exp(a))


def exponential_minus_one(a: Array) -> Array:
    """Compute `e^a - 1`.

    For `a = x + iy`, unless x is large, the real part `e^x cos y - 1` is computed as `(e^x - 1) cos y - 2 sin²(y / 2)`
    to avoid cancellation.
    """
    x, y = parts_of(a)
    real, imaginary = parts_of(exponential(a))
    near = np.expm1(x) * np.cos(y) - 2 * np.sin(y / 2) ** 2
    return of_parts(np.where(np.abs(x) > FAR, real - 1, near), imaginary)


def log_plus_one(a: Array) -> Array:
    """Compute `log(1 + a)`.

    The real part is `log(|1 + a|)`. If `|1 + a|` is close to 1, the real part is computed as `log1p(|1 + a|² - 1) / 2`.
    """
    x, y = parts_of(a)
    is_near = (np.abs(x) < 3) & (np.abs(y) < 2)
    high, low = _square_size_less_one(np.where(is_near, x, 0), np.where(is_near, y, 0))
    near = (np.log1p(high) + low / (1 + high)) / 2
    far = np.log(np.hypot(1 + x, y))
    # If |1 + a| overflows, |a| / 2 does not.
    far = np.where(far == np.inf, np.log(np.hypot(x / 2, y / 2)) + np.log(2), far)
    return of_parts(np.where(is_near & (np.abs(high) < 0.5), near, far), np.arctan2(y, 1 + x))


def _square_size_less_one(x: Array, y: Array) -> tuple[Array, Array]:
    """Compute `|1 + a|² - 1 = 2x + x² + y²` as a sum of two numbers (double-double precision), because the terms may
    cancel."""
    (x_squared, x_error), (y_squared, y_error) = _square(x), _square(y)
    first, error = _sum(2 * x, x_squared)
    second, more = _sum(first, y_squared)
    return _sum(second, error + more + x_error + y_error)


def _square(a: Array) -> tuple[Array, Array]:
    """Return the rounded square and its rounding error (Dekker, 1971)."""
    product = a * a
    high = SPLIT * a - (SPLIT * a - a)
    low = a - high
    return product, ((high * high - product) + 2 * high * low) + low * low


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum and its rounding error (Knuth's TwoSum)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def divide(a: Array, b: Array) -> Array:
    """Compute quotients. Operands are scaled to avoid overflow, and results that are NaN are corrected as in Annex
    G."""
    (x, y, up), (c, d, down) = _scale(a), _scale(b)
    size = c * c + d * d
    real, imaginary = (x * c + y * d) / size, (y * c - x * d) / size
    quotient = of_parts(np.ldexp(real, up - down), np.ldexp(imaginary, up - down))
    lost = np.isnan(real) & np.isnan(imaginary)
    return np.where(lost, _correct_nan(a, b, quotient), quotient) if lost.any() else quotient


def _scale(a: Array) -> tuple[Array, Array, Array]:
    """Return both parts, divided by a power of two close to the larger part, and the exponent of this power."""
    x, y = parts_of(a)
    size = np.maximum(np.abs(x), np.abs(y))
    exponent = np.where(np.isfinite(size), np.frexp(size)[1], 0)
    return np.ldexp(x, -exponent), np.ldexp(y, -exponent), exponent


def _correct_nan(a: Array, b: Array, otherwise: Array) -> Array:
    """Return the quotients that Annex G requires instead of NaN: nonzero / 0 and infinite / finite are infinite, and
    finite / infinite is 0.

    `otherwise`: the quotients for all other operands.
    """
    (x, y), endless = parts_of(a), np.copysign(np.inf, np.real(b))
    of_infinite, by_infinite = _times_conjugate(_corner(a), b), _times_conjugate(a, _corner(b))
    cases = [
        ((b == 0) & ~(np.isnan(x) & np.isnan(y)), of_parts(endless * x, endless * y)),
        (_is_infinite(a) & np.isfinite(b), of_parts(np.inf * of_infinite[0], np.inf * of_infinite[1])),
        (_is_infinite(b) & np.isfinite(a), of_parts(0 * by_infinite[0], 0 * by_infinite[1])),
    ]
    return np.select([where for where, _ in cases], [value for _, value in cases], otherwise)


def _is_infinite(a: Array) -> Array:
    """Return a mask of the numbers that have an infinite part."""
    real, imaginary = parts_of(a)
    return np.isinf(real) | np.isinf(imaginary)


def _corner(a: Array) -> Array:
    """Replace infinite parts by ones and finite parts by zeros, with the same signs."""
    real, imaginary = (np.copysign(np.isinf(part).astype(np.float64), part) for part in parts_of(a))
    return of_parts(real, imaginary)


def _times_conjugate(a: Array, b: Array) -> tuple[Array, Array]:
    (x, y), (c, d) = parts_of(a), parts_of(b)
    return x * c + y * d, y * c - x * d


def power(a: Array, b: Array) -> Array:
    """Compute powers.

    For a negative integer exponent, numpy divides by a product. This division may overflow, so `divide` is used
    instead.
    """
    real, imaginary = parts_of(b)
    is_divided = (imaginary == 0) & (real < 0) & (real == np.trunc(real)) & (a != 0)
    return np.where(is_divided, divide(np.ones_like(a), np.power(a, -b)), np.power(a, b))


def cbrt(a: Array) -> Array:
    """Return the principal cube root: the argument of the root is a third of the argument of the number."""
    angle, size = np.angle(a) / 3, np.cbrt(np.abs(a))
    return of_parts(size * np.cos(angle), size * np.sin(angle))


def rsqrt(a: Array) -> Array:
    return divide(np.ones_like(a), np.sqrt(a))


def logistic(a: Array) -> Array:
    return divide(np.ones_like(a), 1 + exponential(-a))


def sign(a: Array) -> Array:
    """Return each number divided by its magnitude; 0 for any zero, and NaN in both parts if either part is NaN."""
    (x, y), size = parts_of(a), np.abs(a)
    direction = np.where(size == 0, 0, of_parts(x / size, y / size))
    return np.where(np.isnan(a), NAN, direction)


def square(a: Array) -> Array:
    """Compute squares. The real part is computed as `(x + y)(x - y)`, because `x² - y²` could overflow or cancel."""
    x, y = parts_of(a)
    is_diagonal = (np.abs(x) == np.abs(y)) & np.isfinite(a)
    return of_parts(np.where(is_diagonal, 0, (x + y) * (x - y)), 2 * (x * y))


def atan2(y: Array, x: Array) -> Array:
    """Return the principal value of `-i log((x + iy) / sqrt(x² + y²))`."""
    return -1j * np.log(divide(x + 1j * y, np.sqrt(x * x + y * y)))
