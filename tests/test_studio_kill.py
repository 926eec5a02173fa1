"""Killed at any point, the database opens with everything that was acknowledged, and nothing twice."""

import random
import sys

import pytest

from studio_kills import check, kill_in_browser, kill_once, kill_settling, start


def test_kills_lose_nothing(tmp_path):
    rng, acknowledged = random.Random(7), {}
    for k in range(3):
        kill_once(tmp_path, rng, acknowledged, k)
        assert check(tmp_path, acknowledged) >= len(acknowledged)
    assert len(acknowledged) >= 2


def test_a_database_of_two_people_is_whole_or_not_there(tmp_path):
    rng, acknowledged = random.Random(1), {}
    kill_once(tmp_path, rng, acknowledged, 0)
    assert kill_settling(tmp_path, rng) > 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes of a browser are found in /proc")
@pytest.mark.parametrize("victims", ["server", "browser"])
def test_kills_of_server_and_browser_lose_nothing(playwright, tmp_path, victims):
    acknowledged = {}
    kill_in_browser(playwright, tmp_path, random.Random(3), acknowledged, victims)
    assert check(tmp_path, acknowledged) >= len(acknowledged) > 0


def test_a_server_that_is_asked_to_end_ends_well(tmp_path):
    process, person = start(tmp_path)
    person.warm()
    assert person.do(1, "label", level="phrase", start=0, stop=1, label="O")["version"] == 1
    process.terminate()
    assert process.wait(timeout=30) == 0
    process.stdout.close()
    person.close()
    assert check(tmp_path, {}) == 1
