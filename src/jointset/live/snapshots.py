"""States to bytes and back, bit for bit and without a pickle: a JSON tree, then the arrays that it names."""

from __future__ import annotations

import json
from typing import Any

from jointset.errors import InputError, require
from jointset.storage import pack, unpack

LENGTH = 8  # bytes that say how long the tree is


def to_bytes(parts: dict[str, Any]) -> bytes:
    """Named values, each as `jointset.storage` packs it, as one string of bytes."""
    from safetensors.numpy import save

    arrays: dict[str, Any] = {}
    trees = json.dumps({name: pack(value, arrays, name) for name, value in parts.items()}).encode()
    return len(trees).to_bytes(LENGTH, "little") + trees + save(arrays)


def from_bytes(data: bytes) -> dict[str, Any]:
    """The values of `to_bytes`; lists come back as tuples."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    end = LENGTH + int.from_bytes(data[:LENGTH], "little")
    try:
        trees = json.loads(data[LENGTH:end])
        arrays = load(data[end:])
    except (ValueError, SafetensorError) as error:
        raise InputError(f"the snapshot cannot be read ({error})") from None
    require(isinstance(trees, dict), "the snapshot holds no parts")
    return {name: unpack(tree, arrays, name) for name, tree in trees.items()}
