"""Residues of an arithmetic progression, without walking along it."""


def floor_sum(count: int, modulus: int, step: int, first: int) -> int:
    """Sum of ⌊(step · k + first) / modulus⌋ over k = 0 … count - 1, in about log(modulus) rounds."""
    result = 0
    while count:
        result += (count - 1) * count // 2 * (step // modulus) + count * (first // modulus)
        step, first = step % modulus, first % modulus
        top = step * count + first
        count, first, step, modulus = top // modulus, top % modulus, modulus, step or 1
    return result


def reaches(first: int, step: int, count: int, modulus: int, residue: int) -> bool:
    """Whether one of first, first + step, … (`count` of them) leaves `residue` or more, above 0."""
    lifted = floor_sum(count, modulus, step, first + modulus - residue)
    return lifted > floor_sum(count, modulus, step, first)


def greatest_residue(first: int, step: int, count: int, modulus: int) -> int:
    """The largest residue of first, first + step, … (`count` of them)."""
    lowest, highest = 0, modulus - 1
    while lowest < highest:
        middle = (lowest + highest + 1) // 2
        if reaches(first, step, count, modulus, middle):
            lowest = middle
        else:
            highest = middle - 1
    return lowest
