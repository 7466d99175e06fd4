"""Powers of truth values by a truth value, of all forms."""

import strata

BOTH = strata.tensor([True, False])


def test_powers():
    for exponent in (True, False):
        wanted = [a or not exponent for a in (True, False)]
        changed = BOTH.clone()
        changed **= exponent
        for made in (BOTH**exponent, BOTH.clone().pow_(exponent), changed):
            assert made.dtype is strata.bool and made.tolist() == wanted
    assert (BOTH**2).dtype is strata.int64
