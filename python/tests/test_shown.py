"""Tables, diagrams and reports."""

import builtins
import copy
import dataclasses
import html
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pytest
from conftest import BINARY, Cli

import bimetal
from bimetal._errors import in_python

mpl.use("Agg")


@pytest.fixture(scope="module")
def compared(trace: bimetal.Trace) -> bimetal.Comparison:
    """Compare three schemes, one of them over disks."""
    return bimetal.compare(trace, ["pagemap", "chang", "opfcl"], intervals=4)


@pytest.fixture(scope="module")
def replayed(trace: bimetal.Trace) -> bimetal.Replay:
    """Replay one scheme."""
    return bimetal.replay(trace, "chang", intervals=5)


def test_a_table_has_a_row_for_each_scheme(compared: bimetal.Comparison) -> None:
    table = compared.to_arrow()
    assert table["scheme"].to_pylist() == ["pagemap", "chang", "opfcl"]
    assert table["response_us_mean"].to_pylist() == [result.response_us.mean for result in compared.results]
    assert table["relative_to"].to_pylist() == [None, "pagemap", "pagemap"]
    assert table.schema.field("lifetime_years").type == pa.float64()
    assert table.schema.field("response_us_count").type == pa.int64()
    frame = compared.to_pandas()
    assert frame["response_us_mean"].tolist() == table["response_us_mean"].to_pylist()
    assert frame.columns.tolist() == table.column_names


@pytest.mark.parametrize(
    "name", ["ops", "streams", "wear", "intervals", "faults", "regions", "disks", "metrics", "controller"]
)
def test_other_tables_have_rows_of_each_scheme(compared: bimetal.Comparison, name: str) -> None:
    table = compared.to_arrow(name)
    # Nothing fails on these devices.
    assert (len(table) > 0) == (name != "faults")
    for result in compared.results:
        rows = sum(scheme == result.scheme for scheme in table["scheme"].to_pylist())
        assert rows == len(getattr(result, name))
    assert compared.to_pandas(name).columns.tolist() == table.column_names


def test_lists_of_each_interval_are_tables(replayed: bimetal.Replay) -> None:
    intervals = replayed.result.intervals
    ops = replayed.to_arrow("intervals.ops")
    assert ops.column_names[:3] == ["scheme", "end_s", "region"]
    for column in ("read", "program_bytes"):
        expected = [getattr(row, column) for interval in intervals for row in interval.ops]
        assert ops[column].to_pylist() == expected
    metrics = replayed.to_pandas("intervals.metrics")
    assert metrics["end_s"].unique().tolist() == [interval.end_s for interval in intervals]
    name, values = next(iter(metrics.groupby("metric", sort=False)["value"]))
    at = list(replayed.result.metrics).index(str(name))
    assert values.tolist() == [interval.metrics[at] for interval in intervals]
    assert len(replayed.to_arrow("intervals.disks")) == 0


def test_an_unknown_table_is_refused(compared: bimetal.Comparison) -> None:
    with pytest.raises(ValueError, match=r"there is no table 'nonsense'; there are: results, ops.*intervals\.metrics"):
        compared.to_arrow("nonsense")


@pytest.mark.parametrize(
    ("library", "method"), [("pyarrow", "to_arrow"), ("pandas", "to_pandas"), ("matplotlib", "plot")]
)
def test_what_is_not_installed_is_said(
    compared: bimetal.Comparison, monkeypatch: pytest.MonkeyPatch, library: str, method: str
) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any, **options: Any) -> Any:
        if name.split(".")[0] == library:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=f"needs {library}; hint: `pip install {library}`"):
        getattr(compared, method)()


def test_importing_takes_no_library_that_is_not_asked_for() -> None:
    check = (
        "import sys, bimetal; bimetal.schemes(); print({'numpy', 'pandas', 'pyarrow', 'matplotlib'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", check], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def test_the_text_is_the_table_of_the_command(
    compared: bimetal.Comparison, replayed: bimetal.Replay, small: Path
) -> None:
    command = [str(BINARY), "compare", str(small), "--schemes", "pagemap,chang,opfcl"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n\n")
    lines = repr(compared).splitlines()
    assert lines[0].startswith("small.bimetal: 6,000 requests")
    # The verdict, then the table with its remarks. The terminal may be wider.
    shown = "\n".join(lines[1:])
    assert shown.startswith(printed[1])
    assert " ".join(shown.split()) == in_python(" ".join([*printed[1].split(), *printed[2].split()]))
    assert max(map(len, lines)) <= 80
    assert "service (" in shown
    assert "response (" in shown
    for text, tables in [(compared._repr_html_(), 1), (replayed._repr_html_(), 4)]:
        assert text.count("<table>") == text.count("</table>") == tables
    assert "flash cache over a disk</th>" in compared._repr_html_()
    assert "fastest" not in repr(replayed)
    assert "host" in replayed._repr_html_()
    assert repr(compared["chang"]).startswith("<Result 'chang', mean service time ")
    with pytest.raises(KeyError):
        compared["nonsense"]


def test_a_profile_prints_the_tables_of_the_command(trace: bimetal.Trace, small: Path) -> None:
    command = [str(BINARY), "profile", str(small)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    profile = trace.profile()
    title, tables = repr(profile).split("\n\n", 1)
    assert title == "small.bimetal: 6,000 requests"
    assert tables.split() == printed.split("\n\n", 1)[1].split()
    shown = profile._repr_html_()
    # The tables of labels and values, addresses and arrivals, have no heads.
    assert (shown.count("<h4>"), shown.count("<table>"), shown.count("<thead>")) == (6, 6, 4)
    assert pickle.loads(pickle.dumps(profile))._repr_html_() == shown
    assert "Hit rates by cache size" not in repr(trace.profile(curve_points=0))


@pytest.mark.parametrize("figure", ["response", "operations", "write_amplification", "life", "cost"])
def test_schemes_are_drawn_side_by_side(compared: bimetal.Comparison, figure: str) -> None:
    ax = compared.plot(figure)
    names = [text.get_text() for text in ax.get_yticklabels()]
    # The order of the table: the best first, caches over disks in a separate group.
    rows = [line.split()[0] for line in repr(compared).splitlines() if line.startswith("    ")]
    assert names == [name for name in rows if name in ("pagemap", "chang", "opfcl")]
    assert len(names) == 3
    assert ax.get_xlabel()
    assert ax.get_title() == "small.bimetal"
    if figure == "response":
        drawn = np.asarray(ax.lines[0].get_xdata())
        service = [compared[name].service_us for name in names]
        means = [times.mean for times in service if times is not None]
        assert drawn[1] / drawn[0] == pytest.approx(means[1] / means[0])
        legend = ax.get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.get_texts()] == [
            f"{time}, {figure}" for time in ("service time", "response") for figure in ("mean", "99th percentile")
        ]
        assert ax.get_xlabel().startswith("service time and response (")
    plt.close("all")


def test_an_overloaded_scheme_has_no_bar(trace: bimetal.Trace) -> None:
    with pytest.warns(bimetal.BimetalWarning, match="overloaded"):
        compared = bimetal.compare(trace, ["pagemap", "chang"], arrivals="trace:1000000")
    growing = [result.load.overload == "growing" for result in compared.results]
    ax = compared.plot()
    assert [np.size(line.get_xdata()) for line in ax.lines] == [2 - sum(growing)] * 2
    assert [text.get_text().startswith("falls behind by ") for text in ax.texts] == [True] * sum(growing)
    plt.close("all")


def test_one_scheme_is_drawn_over_time(replayed: bimetal.Replay, trace: bimetal.Trace) -> None:
    for figure in ["response", "operations", *replayed.result.metrics]:
        ax = replayed.plot(figure)
        assert np.size(ax.lines[0].get_xdata()) == 5
        assert ax.get_xlabel() == "measured requests"
        assert ax.get_ylabel()
        plt.close("all")
    with pytest.raises(ValueError, match="there is no figure 'nonsense'; there are: response"):
        replayed.plot("nonsense")
    with pytest.raises(ValueError, match="`intervals` above 0"):
        bimetal.replay(trace, "chang", intervals=0).plot()


def test_trims_alone_have_no_responses() -> None:
    places = np.arange(500)
    trims = bimetal.Trace.from_arrays(
        time_ns=places * 1_000_000, op=np.full(500, 2), sector=places * 8, sectors=np.full(500, 8)
    )
    compared = bimetal.compare(trims, ["pagemap", "hyssd"])
    assert "µs" not in repr(compared.results[0])
    over_time = bimetal.replay(trims, "pagemap", intervals=5)
    for ax in (compared.plot(), over_time.plot()):
        assert [np.size(line.get_xdata()) for line in ax.lines if np.size(line.get_xdata())] == []
        assert [text.get_text() for text in ax.texts] == ["the trace has neither reads nor writes"]
    plt.close("all")


def test_a_plot_goes_where_it_is_told(compared: bimetal.Comparison) -> None:
    _, (left, right) = plt.subplots(1, 2)
    assert compared.plot("cost", ax=left) is left
    assert not right.patches
    plt.close("all")


def test_a_comparison_is_a_collection_of_results(compared: bimetal.Comparison) -> None:
    assert [result.scheme for result in compared] == [result.scheme for result in compared.results]
    assert len(compared) == len(compared.results)
    first = compared.results[0].scheme
    assert first in compared
    assert "nonsense" not in compared
    assert compared[first] is compared.results[0]


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        ((11, 19), ["11", "12", "13", "14", "15", "16", "17", "18", "19"]),
        ((21, 95), ["50"]),
        ((0.03, 20), ["0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20"]),
        ((1, 1e5), ["1", "10", "100", "1,000", "10,000", "100,000"]),
    ],
)
def test_logarithmic_axes_have_some_plain_labels(ends: tuple[float, float], shown: list[str]) -> None:
    axis = bimetal.Axis("time (ms)", True)
    series = bimetal.Series(name="x", origin="measured", points=tuple((end, end) for end in ends))
    ax = bimetal.Plot(title="t", kind="lines", x=axis, y=axis, series=(series,)).plot()
    ax.set_xlim(*ends)
    ax.figure.canvas.draw()
    labels = [*ax.get_xticklabels(), *ax.get_xticklabels(minor=True)]
    inside = [(label.get_position()[0], label.get_text()) for label in labels if label.get_text()]
    assert [text for place, text in sorted(inside) if ends[0] <= place <= ends[1]] == shown
    plt.close("all")


def test_a_name_is_shown_as_it_is(trace: bimetal.Trace, tmp_path: Path) -> None:
    named = bimetal.Trace.from_arrays(**trace.to_arrays(), name="cost $a_{b$")
    ax = bimetal.compare(named, ["pagemap"], arrivals="closed").plot()
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.savefig(tmp_path / "plot.png")
    assert ax.get_title() == "cost $a_{b$"


def test_papers_are_drawn_and_listed() -> None:
    found = bimetal.paper("opfcl", ["fig3", "fig4"], quick=True)
    for figure in found.figures:
        for plot in figure.plots:
            ax = plot.plot()
            assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == (plot.x.label, plot.y.label, plot.title)
            legend = ax.get_legend()
            assert legend is not None
            assert len(legend.get_texts()) == len(plot.series)
            plt.close("all")
    assert sum(len(figure.plots) for figure in found.figures) > 1
    assert found.to_arrow()["verdict"].to_pylist() == [claim.verdict for claim in found.claims]
    assert len(found.to_pandas()) == len(found.claims)
    assert found._repr_html_().count("<tr>") == 1 + len(found.claims)


def test_the_page_of_a_paper_has_the_whole_call(tmp_path: Path) -> None:
    trace = bimetal.Trace.generate("zipf", set={"requests": 200, "span": "1MiB"})
    found = bimetal.paper("chang", "s42", quick=True, traces={"ntfs": trace})
    found.html(tmp_path / "page.html")
    page = html.unescape((tmp_path / "page.html").read_text())
    origin = "bimetal.Trace.generate('zipf', set={'requests': 200, 'span': '1MiB'})"
    assert f"bimetal.paper('chang', ['s42'], quick=True, traces={{'ntfs': {origin}}})" in page


def made(trace: bimetal.Trace) -> dict[str, Any]:
    few: dict[str, Any] = {"chips": "tlc-3d-2021", "schemes": "pagemap", "simulations": 1}
    return {
        "comparison": bimetal.compare(trace, ["pagemap", "chang"]),
        "replay": bimetal.replay(trace, "chang"),
        "advice": bimetal.advise(trace, mean="1s", **few),
        "paper": bimetal.paper("opfcl", "fig3", quick=True),
        "profile": trace.profile(),
    }


def test_copies_have_the_printed_form_and_the_page(trace: bimetal.Trace, tmp_path: Path) -> None:
    for name, result in made(trace).items():
        for again in (copy.copy(result), copy.deepcopy(result)):
            assert (again, again.to_dict()) == (result, result.to_dict())
            assert (repr(again), again._repr_html_()) == (repr(result), result._repr_html_())
            if name != "profile":
                again.html(tmp_path / "copy.html")
                result.html(tmp_path / "original.html")
                assert (tmp_path / "copy.html").read_text() == (tmp_path / "original.html").read_text()
    compared = bimetal.compare(trace, ["pagemap"])
    assert copy.copy(compared).results is compared.results
    assert copy.deepcopy(compared).results[0].metrics is not compared.results[0].metrics


def test_a_result_with_replaced_fields_has_a_short_form(trace: bimetal.Trace, tmp_path: Path) -> None:
    forms = {
        "comparison": "<Comparison of pagemap, chang>",
        "replay": "<Replay of chang>",
        "advice": "<Advice for 'small.bimetal', 1 simulated devices>",
        "profile": "<Profile of 6,000 requests>",
    }
    for name, result in made(trace).items():
        field = dataclasses.fields(result)[0].name
        again = dataclasses.replace(result, **{field: getattr(result, field)})
        assert again == result
        assert repr(again) == forms.get(name, repr(result))
        assert "<" in again._repr_html_()
        for page in ("html", "plot"):
            # A replay draws its fields, and a reproduction has diagrams for each figure.
            if hasattr(again, page) and (name, page) != ("replay", "plot"):
                with pytest.raises(
                    bimetal.BimetalError, match="with replaced fields has no printed form, page or plot"
                ):
                    getattr(again, page)(*[tmp_path / "page.html"] * (page == "html"))


@pytest.mark.filterwarnings("ignore:all requests have one time stamp", "ignore:no column is known as a time")
def test_options_of_the_command_are_arguments(cli: Cli, small: Path, trace: bimetal.Trace) -> None:
    with pytest.warns(bimetal.BimetalWarning, match="overloaded"):
        found = bimetal.compare(trace, ["pagemap"], arrivals="trace:1000000")
    expected = cli("compare", small, "--schemes", "pagemap", "--arrivals", "trace:1000000")
    assert found.to_dict()["warnings"] == expected["warnings"]
    assert "`--arrivals closed`" in " ".join(expected["warnings"])
    assert "`arrivals='closed'`" in " ".join(found.warnings)
    still = bimetal.Trace.from_frame({"op": ["w", "r"], "offset": [0, 512], "size": [512, 512]})
    short = bimetal.compare(trace.like(requests=200), ["pagemap", "chang"])
    advice = bimetal.advise(trace, life="1d", chips="tlc-3d-2021", schemes="pagemap", simulations=1)
    assert "name it with `columns`" in " ".join(still.warnings)
    assert "`repeat` and `measure`" in " ".join(repr(short).split())
    assert "`writes_per_day`" in " ".join(advice.notes)
    shown = [repr(short), short._repr_html_(), repr(found), found._repr_html_(), repr(advice), advice._repr_html_()]
    assert "`--" not in " ".join([*shown, *still.warnings, *found.warnings, *advice.notes])


def test_a_report_is_that_of_the_command(cli: Cli, small: Path, trace: bimetal.Trace, tmp_path: Path) -> None:
    cli("compare", small, "--schemes", "pagemap,chang", "--html", tmp_path / "theirs.html")
    found = bimetal.compare(trace, ["pagemap", "chang"], intervals=60)
    found.html(tmp_path / "ours.html")
    ours, theirs = ((tmp_path / name).read_text() for name in ("ours.html", "theirs.html"))
    command = "bimetal.compare(bimetal.Trace.open("
    differing = [
        (line, other) for line, other in zip(ours.splitlines(), theirs.splitlines(), strict=True) if line != other
    ]
    assert command in ours
    # The command, and the speed of the simulation.
    assert len(differing) <= 2, [pair[0][:200] for pair in differing]
