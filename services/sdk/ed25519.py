"""Verifies Ed25519 signatures in pure Python, so that a game does not need a cryptography library.

All inputs are public, so the running time may depend on them: about ten milliseconds for a signature. Source: RFC 8032,
section 5.1.7. The tests compare the results with those of `cryptography`.
"""

from hashlib import sha512

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT_OF_MINUS_ONE = pow(2, (_P - 1) // 4, _P)
KEY_BYTES, _SIGNATURE_BYTES = 32, 64

# A point in extended coordinates: x = X/Z, y = Y/Z, x * y = T/Z.
_Point = tuple[int, int, int, int]
_NEUTRAL: _Point = (0, 1, 1, 0)


def is_signature(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return True if the owner of a public key has signed a message."""
    if len(public_key) != KEY_BYTES or len(signature) != _SIGNATURE_BYTES:
        return False
    owner, commitment = _decoded(public_key), _decoded(signature[:KEY_BYTES])
    scalar = int.from_bytes(signature[KEY_BYTES:], "little")
    if owner is None or commitment is None or scalar >= _ORDER:
        return False
    digest = sha512(signature[:KEY_BYTES] + public_key + message).digest()
    challenge = int.from_bytes(digest, "little") % _ORDER
    return _are_equal(_multiplied(scalar, _BASE), _sum(commitment, _multiplied(challenge, owner)))


def _decoded(encoded: bytes) -> _Point | None:
    """Return the point of an encoding; None for bytes that encode no point."""
    number = int.from_bytes(encoded, "little")
    y, sign = number & ((1 << 255) - 1), number >> 255
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if x * x % _P != square:
        x = x * _ROOT_OF_MINUS_ONE % _P
    if x * x % _P != square or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = _P - x
    return x, y, 1, x * y % _P


def _sum(left: _Point, right: _Point) -> _Point:
    a = (left[1] - left[0]) * (right[1] - right[0]) % _P
    b = (left[1] + left[0]) * (right[1] + right[0]) % _P
    c = 2 * left[3] * right[3] * _D % _P
    d = 2 * left[2] * right[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _multiplied(factor: int, point: _Point) -> _Point:
    total = _NEUTRAL
    while factor:
        if factor & 1:
            total = _sum(total, point)
        point = _sum(point, point)
        factor >>= 1
    return total


def _are_equal(left: _Point, right: _Point) -> bool:
    x_is_equal = (left[0] * right[2] - right[0] * left[2]) % _P == 0
    return x_is_equal and (left[1] * right[2] - right[1] * left[2]) % _P == 0


def _base() -> _Point:
    y = 4 * pow(5, -1, _P) % _P
    point = _decoded(y.to_bytes(KEY_BYTES, "little"))
    assert point is not None  # noqa: S101 # a constant of the curve
    return point


_BASE = _base()
