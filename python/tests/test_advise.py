"""Advice: the answer equals that of the command line; notebooks show it; interrupts end it."""

import html
import json
import pickle
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pyarrow as pa
import pytest
from conftest import BINARY, Cli

import bimetal
from bimetal._errors import in_python

mpl.use("Agg")

#: A small space of candidates, which is quickly searched.
FEW: dict[str, Any] = {
    "schemes": ["pagemap", "wlaftl"],
    "chips": ["slc-2011", "mlc-2008"],
    "simulations": 6,
    "drives": ["samsung-980-1tb", "sn770"],
}
FEW_WORDS = ["--schemes", "pagemap,wlaftl", "--chips", "slc-2011,mlc-2008", "--simulations", "6"]
FEW_WORDS += ["--drives", "samsung-980-1tb,sn770"]


@pytest.fixture(scope="module")
def advice(trace: bimetal.Trace) -> bimetal.Advice:
    """Ask for goals that a device meets."""
    return bimetal.advise(trace, life="1h", p99="10s", budget=100, **FEW)


def answered(*arguments: object) -> Any:
    """Run the command. Its status tells if no device meets the goals."""
    command = [str(BINARY), "advise", *map(str, arguments), *FEW_WORDS, "--json", "-"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def refused(*arguments: object) -> str:
    command = [str(BINARY), "advise", *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode in (1, 2)
    return done.stderr.strip().removeprefix("error: ")


def test_the_answer_is_that_of_the_command(advice: bimetal.Advice, small: Path) -> None:
    assert advice.to_dict() == answered(small, "--life", "1h", "--p99", "10s", "--budget", 100)
    assert advice.recommended is not None
    assert advice.recommended.meets
    assert [goal.measure for goal in advice.goals] == ["life", "p99", "budget"]
    assert advice.simulations == len(advice.simulated) + advice.failed
    assert advice.drives is not None
    assert {drive.name for drive in advice.drives.offered} == {"samsung-980-1tb", "wd-sn770-1tb"}
    assert advice.drives.offered[0].rated_tbw == 600
    assert all(drive.scale > 100 and drive.choice.cost_usd > 100 for drive in advice.drives.offered)


def test_every_argument_is_an_option(small: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('[[prices]]\nyear = 2027\ncell = "mlc"\nusd_per_gib = 0.5\n')
    trace = bimetal.Trace.open(small, limit=3000)
    found = bimetal.advise(
        trace,
        mean="1us",
        p50="1us",
        p95="1us",
        p999="1us",
        writes_per_day="1GiB",
        capacity=96 << 20,
        year=2027,
        prices=prices,
        price={"slc": 2.5, "samsung-980-1tb": 75},
        arrivals="closed:2",
        repeat=3,
        measure=1,
        jobs=1,
        **FEW,
    )
    words = "--mean 1us --p50 1us --p95 1us --p999 1us --writes-per-day 1GiB --capacity 96MiB --year 2027"
    words += " --price slc=2.5 --price samsung-980-1tb=75 --arrivals closed:2 --repeat 3 --measure 1 --limit 3000"
    assert found.to_dict() == answered(small, *words.split(), "--prices", prices)
    assert found.recommended is None
    assert found.closest
    assert found.price_year == 2027
    over_disk = bimetal.advise(trace, mean="1s", disk="nearline-18tb", schemes="opfcl", chips="slc-2011", simulations=1)
    assert ["nearline-18tb" in choice.device for choice in over_disk.simulated] == [True]
    on_dies = bimetal.advise(small, mean="1s", channels=2, dies_per_channel=3, **FEW)
    assert on_dies.to_dict() == answered(small, "--mean", "1s", "--channels", 2, "--dies-per-channel", 3)
    assert "candidate devices of 6 dies" in repr(on_dies)
    assert {(choice.channels, choice.dies) for choice in on_dies.simulated} == {(2, 6)}
    worn = bimetal.advise(trace, tbw="1GB", dwpd=0.001, load="0.5x", **FEW)
    assert worn.to_dict() == answered(small, "--limit", 3000, "--tbw", "1GB", "--dwpd", 0.001, "--load", "0.5x")
    assert worn.replay.arrivals == "trace:0.5"
    assert [goal.measure for goal in worn.goals] == ["tbw", "dwpd"]


def test_commands_repeat_figures_where_a_command_can_read_the_trace(
    advice: bimetal.Advice, trace: bimetal.Trace, small: Path, cli: Cli
) -> None:
    def confirm(choice: bimetal.Choice | None) -> None:
        assert choice is not None
        assert choice.command is not None
        replayed = cli(*shlex.split(choice.command)[1:])["results"][0]
        assert replayed["cost_usd"] == choice.cost_usd
        assert replayed["lifetime_years"] == choice.life_years
        assert choice.response_us is not None
        for name, value in choice.response_us.to_dict().items():
            assert replayed["response_us"][name] == value

    confirm(advice.recommended)
    few = FEW | {"simulations": 1, "arrivals": "closed"}
    limited = bimetal.Trace.open(small, small, format="bimetal", volumes=[0], limit=7000)
    confirm(bimetal.advise(limited, mean="10s", **few).recommended)
    confirm(bimetal.advise(bimetal.Trace.sample(limit=500), mean="10s", **few).recommended)
    for other in (bimetal.Trace.from_arrays(**trace.to_arrays()), trace.like(requests=500)):
        found = bimetal.advise(other, mean="10s", **few)
        assert {choice.command for choice in found.simulated} == {None}
    # The answer does not depend on the source of the requests.
    same = bimetal.Trace.from_arrays(**trace.to_arrays(), name=trace.facts.name)
    again = bimetal.advise(same, life="1h", p99="10s", budget=100, **FEW)
    assert [choice.excess for choice in again.simulated] == [choice.excess for choice in advice.simulated]


def test_names_may_be_any_iterable(trace: bimetal.Trace, tmp_path: Path) -> None:
    schemes, chips = (name for name in ["conventional"]), {"slc-2011": 1}
    found = bimetal.advise(trace, mean="1s", schemes=schemes, chips=chips, drives=iter(["none"]), simulations=1)
    assert {choice.scheme for choice in found.simulated} == {"conventional"}
    found.html(tmp_path / "page.html")
    assert "chips=['slc-2011'], schemes=['conventional']" in html.unescape((tmp_path / "page.html").read_text())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, []),
        ({"mean": "1s", "chips": ["nosuch"]}, ["--mean", "1s", "--chips", "nosuch"]),
        ({"mean": "1s", "schemes": ["nosuch"]}, ["--mean", "1s", "--schemes", "nosuch"]),
        ({"mean": "1s", "disk": "nosuch"}, ["--mean", "1s", "--disk", "nosuch"]),
        ({"mean": "1s", "capacity": 1024}, ["--mean", "1s", "--capacity", "1KiB"]),
        ({"mean": "1s", "price": {"plc": 1}}, ["--mean", "1s", "--price", "plc=1"]),
        ({"mean": "1s", "year": 1999}, ["--mean", "1s", "--year", "1999"]),
        ({"mean": "1s", "channels": 65}, ["--mean", "1s", "--channels", "65"]),
        (
            {"mean": "1s", "load": "2x", "arrivals": "trace"},
            ["--mean", "1s", "--load", "2x", "--arrivals", "trace"],
        ),
        ({"mean": "1s", "repeat": 2, "measure": 3}, ["--mean", "1s", "--repeat", "2", "--measure", "3"]),
    ],
)
def test_what_cannot_be_answered_is_said_as_the_command_says_it(
    options: dict[str, Any], words: list[str], trace: bimetal.Trace, small: Path
) -> None:
    with pytest.raises(bimetal.AdviceError) as raised:
        bimetal.advise(trace, **options)
    assert str(raised.value) == in_python(refused(small, *words))


def test_each_kind_of_error_has_a_class(trace: bimetal.Trace, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('[[prices]]\nyear = 2026\ncell = "tlc"\n')
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"life": "5"}, bimetal.SettingError, "`life`: `5` is not a life such as"),
        ({"p99": "fast"}, bimetal.SettingError, "`p99`: `fast` is not a time such as"),
        ({"budget": -1}, bimetal.SettingError, "`budget`: `-1` is not an amount"),
        ({"mean": "1s", "capacity": "big"}, bimetal.SettingError, "`capacity`: `big` is not a size"),
        ({"mean": "1s", "writes_per_day": "x"}, bimetal.SettingError, "`writes_per_day`: `x` is not a size"),
        ({"mean": "1s", "load": "fast"}, bimetal.SettingError, "`load`: `fast` is not a load"),
        ({"tbw": "600"}, bimetal.SettingError, "`tbw`: `600` is not an amount of written data"),
        ({"mean": "1s", "arrivals": "open"}, bimetal.SettingError, "`open` is not one of"),
        ({"mean": "1s", "simulations": 0}, bimetal.SettingError, "`simulations` is 0"),
        ({"mean": "1s", "jobs": 0}, bimetal.SettingError, "`jobs` is 0"),
        ({"mean": "1s", "chips": []}, bimetal.SettingError, "`chips` names none"),
        ({"mean": "1s", "prices": tmp_path / "none.toml"}, FileNotFoundError, "none.toml"),
        ({"mean": "1s", "prices": wrong}, bimetal.AdviceError, "wrong.toml: line 1: "),
    ]
    for options, kind, message in cases:
        with pytest.raises(kind, match=re.escape(message)):
            bimetal.advise(trace, **options)


def test_no_field_of_the_json_goes_unnoticed(advice: bimetal.Advice) -> None:
    whole = advice.to_dict()
    with pytest.raises(TypeError, match=r"Advice has no field \['new'\]"):
        bimetal.Advice._from_dict(whole | {"new": 1})
    whole["recommended"].pop("meets")
    with pytest.raises(TypeError, match=r"Advice.Choice: no \['meets'\]"):
        bimetal.Advice._from_dict(whole)


def test_progress_is_told_and_may_end_it(trace: bimetal.Trace) -> None:
    told: list[tuple[int, int]] = []
    found = bimetal.advise(trace, mean="10s", progress=lambda done, most: told.append((done, most)), **FEW)
    assert found.drives is not None
    drives = len(found.drives.offered)
    assert drives == 2
    assert [most for _, most in told] == [6 + drives] * len(told)
    done = [done for done, _ in told]
    assert done == sorted(set(done))
    assert done[-1] == found.simulations + drives

    def end(_done: int, _most: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        bimetal.advise(trace, mean="10s", progress=end, **FEW)


def test_a_table_has_a_row_for_each_simulated_device(advice: bimetal.Advice) -> None:
    table = advice.to_arrow()
    assert table["cost_usd"].to_pylist() == [choice.cost_usd for choice in advice.simulated]
    assert table["excess_p99"].to_pylist() == [choice.excess[1] for choice in advice.simulated]
    assert table["response_us_p99"].to_pylist() == [
        choice.response_us and choice.response_us.p99 for choice in advice.simulated
    ]
    assert table.schema.field("meets").type == pa.bool_()
    assert advice.to_pandas().columns.tolist() == table.column_names


def test_a_notebook_shows_the_answer(advice: bimetal.Advice, trace: bimetal.Trace, tmp_path: Path) -> None:
    assert advice.recommended is not None
    for shown in (repr(advice), advice._repr_html_()):
        for text in (
            "life at least",
            "99th percentile at most 10.0 s",
            "The cheapest that meets all goals",
            advice.recommended.device,
            f"{advice.recommended.cost_usd:.3f}",
            "The best by price, response and life",
        ):
            assert text in shown
    lines = repr(advice).splitlines()
    assert len(lines) == 1 + 2 + 2 + 1 + len(advice.front)
    none = bimetal.advise(trace, mean="1us", **FEW)
    assert "No device meets all goals. The closest:" in repr(none)
    assert "latency is the limit" in repr(none)

    page = tmp_path / "advice.html"
    advice.html(page)
    written = page.read_text()
    assert "bimetal.advise(bimetal.Trace.open(" in written
    assert "bimetal replay " in written
    again = pickle.loads(pickle.dumps(advice))
    assert again == advice
    assert repr(again) == repr(advice)
    with pytest.raises(bimetal.BimetalError, match="another process"):
        again.html(page)


def test_devices_that_all_fall_behind_are_shown(trace: bimetal.Trace, tmp_path: Path) -> None:
    none = bimetal.advise(trace, mean="1ms", arrivals="trace:1000000", channels=2, dies_per_channel=1, **FEW)
    assert none.closest
    assert all(choice.response_us is None and (choice.overload or 0) > 1 for choice in none.simulated)
    for shown in (repr(none), none._repr_html_()):
        assert "falls behind" in shown
        assert "The best" not in shown
    none.html(tmp_path / "none.html")
    assert "Every device falls behind" in (tmp_path / "none.html").read_text()
    axes: Any = none.plot()
    assert [text.get_text() for text in axes.texts] == ["every device falls behind"]


def test_a_diagram_has_every_device_and_the_goals(advice: bimetal.Advice, trace: bimetal.Trace) -> None:
    axes: Any = advice.plot()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert {"pagemap", "recommended", "meets all goals", "goal: response, 99th percentile"} <= {*labels}
    assert "goal: budget" not in labels, "far beyond the dearest device"
    assert axes.get_xlabel() == "cost (USD)"
    assert re.fullmatch(r"response, 99th percentile \((µs|ms|s)\)", axes.get_ylabel())
    drawn = {float(cost) for line in axes.get_lines() for cost in line.get_xdata()}
    assert {choice.cost_usd for choice in advice.simulated if choice.response_us} <= drawn
    star = next(line for line in axes.get_lines() if line.get_label() == "recommended")
    assert advice.recommended is not None
    assert [float(cost) for cost in star.get_xdata()] == [advice.recommended.cost_usd]
    given: Any = plt.subplots()[1]
    tight = bimetal.advise(trace, mean="10s", budget=advice.recommended.cost_usd, **FEW)
    returned = tight.plot(ax=given)
    assert "goal: budget" in [text.get_text() for text in given.get_legend().get_texts()]
    assert given.get_ylabel().startswith("mean response (")
    assert given.get_yscale() == "log", "the goal is far above every device"
    assert returned is given
    plt.close("all")
