"""Results equal those of the command line: every field is an attribute, with the same value."""

import pickle
from pathlib import Path

import pytest
from conftest import Cli, without_speed

import bimetal

OPTIONS = {"arrivals": "closed:8", "repeat": 2, "measure": 1, "seed": 7, "fill": "trace"}


@pytest.mark.parametrize("options", [{}, OPTIONS])
def test_compare_has_what_the_command_writes(
    cli: Cli, small: Path, trace: bimetal.Trace, options: dict[str, object]
) -> None:
    words = ["--arrivals", "closed:8", "--repeat", 2, "--measure", 1, "--seed", 7, "--fill", "trace"] if options else []
    expected = cli("compare", small, *words)
    found = bimetal.compare(trace, **options)  # type: ignore[arg-type]
    assert [result.scheme for result in found.results] == [scheme.name for scheme in bimetal.schemes()]
    assert without_speed(found.to_dict()) == without_speed(expected)
    assert found.to_dict()["results"][0]["speed"].keys() == expected["results"][0]["speed"].keys()


def test_seeds_spread_as_on_the_command_line(cli: Cli, small: Path, trace: bimetal.Trace) -> None:
    settings: dict[str, str | int] = {"slow.program_fail_ppm": 20000, "slow.replacement_blocks": 100000}
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    found = bimetal.compare(trace, ["pagemap", "chang"], set=settings, seeds=3)
    expected = cli("compare", small, "--schemes", "pagemap,chang", "--seeds", 3, *words)
    assert without_speed(found.to_dict()) == without_speed(expected)
    spread = found["pagemap"].spread
    assert spread is not None
    assert (spread.seeds, spread.min_us < spread.max_us) == (3, True)
    assert " ± " in repr(found)
    assert bimetal.compare(trace, ["pagemap", "chang"]).results[0].spread is None


@pytest.mark.parametrize("scheme", [scheme.name for scheme in bimetal.schemes()])
def test_replay_has_what_the_command_writes(cli: Cli, small: Path, trace: bimetal.Trace, scheme: str) -> None:
    found = bimetal.replay(trace, scheme, repeat=2)
    assert without_speed(found.to_dict()) == without_speed(cli("replay", small, "--scheme", scheme, "--repeat", 2))
    assert len(found.result.intervals) == 12


def test_devices_and_settings_reach_the_simulation(cli: Cli, small: Path, trace: bimetal.Trace, tmp_path: Path) -> None:
    words = ["--set", "fast.capacity=8MiB", "--set", "slow.spare=9%", "--set", "gc_free_blocks=3"]
    settings: dict[str, str | int] = {"fast.capacity": "8MiB", "slow.spare": "9%", "gc_free_blocks": 3}
    found = bimetal.compare(trace, ["wlaftl", "cftl"], set=settings)
    expected = cli("compare", small, "--schemes", "wlaftl,cftl", *words)
    assert without_speed(found.to_dict()) == without_speed(expected)
    # A result's device can be replayed. This trace touches its whole span, so no device compacts its addresses.
    dense = bimetal.Trace.generate("uniform", set={"requests": 6000, "span": "16MiB"})
    first = bimetal.compare(dense, ["cftl"], set=settings)
    again = bimetal.replay(dense, device=first.results[0].device, intervals=0)
    assert again.result.scheme == "cftl"
    assert again.result.ops == first["cftl"].ops
    path = tmp_path / "device.toml"
    path.write_text(found.results[0].device.to_toml())
    assert bimetal.Device.open(path) == found.results[0].device
    preset = bimetal.replay(trace, device="chang-c3", intervals=0)
    expected = cli("replay", small, "--device", "chang-c3", "--intervals", 0)
    assert without_speed(preset.to_dict()) == without_speed(expected)


@pytest.mark.parametrize("kind", ["schemes", "chips", "drives", "devices", "formats", "workloads", "papers"])
def test_lists_are_those_of_the_command(cli: Cli, kind: str) -> None:
    found = getattr(bimetal, kind)()
    assert [item.to_dict() for item in found] == cli("list", kind)


def test_a_profile_is_that_of_the_command(cli: Cli, small: Path, trace: bimetal.Trace) -> None:
    expected = cli("profile", small, "--curve-points", 5)
    assert trace.profile(curve_points=5).to_dict() == expected["profile"]
    assert trace.facts.to_dict() == expected["trace"]
    assert trace.profile(curve_points=0).hit_rates is None


def test_a_paper_has_what_the_command_writes(cli: Cli) -> None:
    found = bimetal.paper("hyssd", ["fig2", "table2"], quick=True)
    assert found.to_dict() == cli("paper", "hyssd", "fig2", "table2", "--quick")
    assert [figure.figure for figure in found.figures] == ["table2", "fig2"]
    assert {claim.kind for claim in found.claims} == {score.kind for score in found.scoreboard} == {"arithmetic"}
    assert {claim.verdict for claim in found.claims} <= {"held", "not held", "not judged"}
    assert sum(score.held + score.not_held + score.not_judged for score in found.scoreboard) == len(found.claims)


def test_claims_on_a_trace_are_those_of_the_command(cli: Cli, small: Path) -> None:
    found = bimetal.paper("wlaftl", on=[small])
    assert found.to_dict() == cli("paper", "wlaftl", "--on", small)
    assert {claim.trace for claim in found.claims} == {small.name}
    with pytest.raises(bimetal.SettingError, match="`on` excludes"):
        bimetal.paper("wlaftl", on=[small], quick=True)
    with pytest.raises(bimetal.PaperError, match="two traces are called"):
        bimetal.paper("wlaftl", on=[small, small])


def test_settings_of_a_paper_are_those_of_the_command(cli: Cli) -> None:
    settings: dict[str, str | int] = {"financial.popular_share": 0, "hyssd-static.utilisation_percent": 33}
    with pytest.warns(bimetal.BimetalWarning, match="`hyssd-static.utilisation_percent=33` changes no replay"):
        found = bimetal.paper("hyssd", "fig5c", quick=True, set=settings)
    given = [f"--set={key}={value}" for key, value in settings.items()]
    assert found.to_dict() == cli("paper", "hyssd", "fig5c", "--quick", *given)
    with pytest.raises(bimetal.SettingError, match="no parameter `periods`"):
        bimetal.paper("hyssd", "fig5c", quick=True, set={"hyssd.periods": 64})


def test_results_survive_a_pickle_and_say_what_does_not(trace: bimetal.Trace, tmp_path: Path) -> None:
    found = bimetal.compare(trace, ["pagemap", "chang"])
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert repr(again) == repr(found)
    with pytest.raises(bimetal.BimetalError, match="another process"):
        again.html(tmp_path / "report.html")


def test_no_field_of_the_json_goes_unnoticed(trace: bimetal.Trace) -> None:
    whole = bimetal.replay(trace, "pagemap").to_dict()
    for change, message in [({"new": 1}, r"Replay has no field \['new'\]"), ({}, None)]:
        if message:
            with pytest.raises(TypeError, match=message):
                bimetal.Replay._from_dict(whole | change)
    whole["results"][0]["load"].pop("backlog_s")
    with pytest.raises(TypeError, match=r"Replay.Result.Load: no \['backlog_s'\]"):
        bimetal.Replay._from_dict(whole)
