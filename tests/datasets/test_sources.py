"""Every native format, written small here as its source writes it, becomes the panel it stands for."""

import gzip
import io
import json
import os
import pickle
import sys
import zipfile
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jointset.datasets.registry import dataset
from jointset.datasets.sources import (
    dcrnn,
    facts,
    hugging_face,
    informer,
    jena,
    lstnet,
    pickles,
    seattle,
    text_tables,
    uci,
)
from jointset.datasets.sources.entry import DataWarning, pick
from jointset.errors import InputError
from jointset.panel import Panel

START = 1330560000  # 2012-03-01


def same_after_storage(panel, folder):
    """The panel, once it was found unchanged by a stay on disk."""
    assert Panel.read(panel.to_npz(folder / "stored.npz")) == panel
    return panel


# --- pickles -----------------------------------------------------------------------------------------------------


class Attack:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def python_2_graph(ids, matrix):
    """DCRNN's graph as Python 2 wrote it in protocol 0: text opcodes and the bytes of the matrix as a string."""
    quoted = "".join(f"\\x{byte:02x}" for byte in matrix.astype("<f4").tobytes())
    names = "".join(f"S'{name}'\na" for name in ids)
    index = "".join(f"S'{name}'\nI{i}\ns" for i, name in enumerate(ids))
    n = len(ids)
    array = (
        "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR"
        f"(I1\n(I{n}\nI{n}\ntcnumpy\ndtype\n(S'f4'\nI0\nI1\ntR(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\nS'{quoted}'\ntb"
    )
    return f"((l{names}(d{index}{array}t.".encode("latin1")


@pytest.fixture
def graph():
    """Ids in another order than the speeds, and a directed matrix."""
    ids = ["767541", "773869", "717447"]
    matrix = np.array([[1, 0.5, 0], [0.25, 1, 0.125], [0, 0, 1]], dtype=np.float32)
    return ids, matrix


def written(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("protocol", [0, 2, 4, 5, "python 2"])
def test_graph_pickle_is_read_and_put_in_the_order_of_the_speeds(tmp_path, graph, protocol):
    ids, matrix = graph
    if protocol == "python 2":
        content = python_2_graph(ids, matrix)
    else:
        content = pickle.dumps([ids, {name: i for i, name in enumerate(ids)}, matrix], protocol=protocol)
    found = dcrnn.read_adjacency(written(tmp_path / "adj_mx.pkl", content), ["773869", "767541", "717447"])
    assert found.tolist() == [[1, 0.25, 0.125], [0.5, 1, 0], [0, 0, 1]]


def test_graph_that_lacks_a_sensor_is_refused(tmp_path, graph):
    path = written(tmp_path / "adj_mx.pkl", pickle.dumps((graph[0], {}, graph[1])))
    with pytest.raises(InputError, match="'999'"):
        dcrnn.read_adjacency(path, ["773869", "999"])


@pytest.mark.parametrize("reader", [pickles.read_arrays, pickles.read_frame])
@pytest.mark.parametrize("function", [os.system, eval, exec, __import__, np.load, np.fromfile, pd.read_pickle])
def test_hostile_pickle_is_refused_and_nothing_runs(tmp_path, reader, function):
    evidence = tmp_path / "ran"
    command = {os.system: f"touch {evidence}", eval: f"open({str(evidence)!r}, 'w')"}.get(function, str(evidence))
    path = written(tmp_path / "adj_mx.pkl", pickle.dumps((["a"], {}, Attack(function, command))))
    with pytest.raises(InputError):
        reader(path)
    assert not evidence.exists()


def test_hostile_pickle_behind_allowed_names_is_refused(tmp_path):
    memory = b"cnumpy\nndarray\n((I1000000000000\nttR."  # numpy.ndarray((10**12,))
    codec = b"c_codecs\nencode\n(S'x'\nS'rot13'\ntR."
    subclass = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nmatrix\n(I0\ntS'b'\ntR."
    structured = b"cnumpy\ndtype\n((lS'f4'\naI0\nI1\ntR."
    for i, content in enumerate([memory, codec, subclass, structured, b"", b"\x80\x02X", b"not a pickle"]):
        with pytest.raises(InputError):
            pickles.read_arrays(written(tmp_path / f"{i}.pkl", content))


def test_pandas_objects_stay_inert(tmp_path):
    path = written(tmp_path / "frame.pkl", b"cpandas.io.common\nurlopen\n(S'http://127.0.0.1:9'\ntR.")
    with pytest.raises(InputError, match="convert it to CSV"):
        pickles.read_frame(path)
    with pytest.raises(InputError, match=r"pandas.io.common.urlopen, which is refused"):
        pickles.read_arrays(path)


def test_a_pickle_that_is_no_graph_is_named(tmp_path):
    path = written(tmp_path / "adj_mx.pkl", pickle.dumps({"a": 1}))
    with pytest.raises(InputError, match=r"adj_mx.pkl: expected \(sensor ids, index, matrix\)"):
        dcrnn.read_adjacency(path, ["a"])


# --- DCRNN -------------------------------------------------------------------------------------------------------


def write_store(path, values, columns, stamps, key="df", kind=b"datetime64", unit=10**9):
    """What pandas writes in its fixed format, here in two blocks of columns."""
    h5py = pytest.importorskip("h5py")
    labels = np.array(columns, dtype=np.int64 if isinstance(columns[0], int) else "S6")
    with h5py.File(path, "w") as file:
        group = file.create_group(key)
        group.attrs["pandas_type"] = np.bytes_("frame")
        group["axis0"] = labels
        group["axis1"] = stamps * unit
        group["axis1"].attrs["kind"] = np.bytes_(kind)
        for block, which in enumerate(([2, 0], [1])):
            group[f"block{block}_items"] = labels[which]
            group[f"block{block}_values"] = values[:, which]
    return path


@pytest.fixture
def speeds():
    values = np.random.default_rng(1).uniform(0, 70, (40, 3))
    return values, ["773869", "767541", "717447"], START + 300 * np.arange(40)


def test_dcrnn_release_becomes_a_panel_in_one_sensor_order(tmp_path, speeds, graph):
    values, sensors, stamps = speeds
    rows = ["0,717447,34.1,-118.1", "1,767541,34.2,-118.2", "2,773869,34.3,-118.3"]
    roads = ["773869,767541,120.5", "767541,773869,130", "1,773869,5", "717447,717447,0"]
    paths = {
        "metr-la.h5": write_store(tmp_path / "metr-la.h5", values, sensors, stamps),
        "adj_mx.pkl": written(tmp_path / "adj_mx.pkl", python_2_graph(*graph)),
        "graph_sensor_locations.csv": tmp_path / "locations.csv",
        "distances_la_2012.csv": tmp_path / "distances.csv",
    }
    paths["graph_sensor_locations.csv"].write_text("\n".join(["index,sensor_id,latitude,longitude", *rows]))
    paths["distances_la_2012.csv"].write_text("\n".join(["from,to,cost", *roads]))
    panel = same_after_storage(dataset("metr-la").parse(paths), tmp_path)
    assert panel.sensors == tuple(sensors)
    assert np.array_equal(panel.values, values)
    assert panel.timestamps.tolist() == stamps.tolist()
    assert panel.directed
    assert panel.adjacency.tolist() == [[1, 0.25, 0.125], [0.5, 1, 0], [0, 0, 1]]
    assert panel.coordinates.tolist() == [[34.3, -118.3], [34.2, -118.2], [34.1, -118.1]]
    assert panel.distances[0, 1] == 120.5
    assert panel.distances[1, 0] == 130
    assert np.isinf(panel.distances[0, 2])


def test_pems_bay_files_have_numbers_for_names_and_no_headers(tmp_path, speeds):
    values, _, stamps = speeds
    store = write_store(tmp_path / "pems-bay.h5", values, [400001, 400017, 400030], stamps, key="speed")
    found, sensors, seconds = dcrnn.read_store(store)
    assert sensors == ["400001", "400017", "400030"]
    assert np.array_equal(found, values)
    assert seconds[0] == START
    (tmp_path / "places.csv").write_text("400017,37.25,-121.95\n400001,37.36,-121.90\n400030,37.3,-121.8\n")
    (tmp_path / "roads.csv").write_text("400001,400001,0.0\n400030,400017,321.9\n")
    assert dcrnn.read_locations(tmp_path / "places.csv", sensors)[0].tolist() == [37.36, -121.90]
    assert dcrnn.read_distances(tmp_path / "roads.csv", sensors)[2, 1] == 321.9


@pytest.mark.parametrize(
    ("kind", "unit"), [(b"datetime64[ns]", 10**9), (b"datetime64[us]", 10**6), (b"datetime64[s]", 1)]
)
def test_units_of_newer_pandas_are_known(tmp_path, speeds, kind, unit):
    store = write_store(tmp_path / "x.h5", *speeds, kind=kind, unit=unit)
    assert dcrnn.read_store(store)[2].tolist() == speeds[2].tolist()


def test_store_without_times_or_tables_is_refused(tmp_path, speeds):
    store = write_store(tmp_path / "x.h5", *speeds, kind=b"integer")
    with pytest.raises(InputError, match=r"x.h5: the rows are labelled by integer, not by times"):
        dcrnn.read_store(store)
    with pytest.importorskip("h5py").File(tmp_path / "y.h5", "w") as file:
        file["numbers"] = [1, 2]
    with pytest.raises(InputError, match="expected one pandas table, found 0"):
        dcrnn.read_store(tmp_path / "y.h5")
    with pytest.raises(InputError, match="damaged or cut short"):
        dcrnn.read_store(written(tmp_path / "z.h5", store.read_bytes()[:500]))


def test_absent_h5py_is_told_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=r"needs the package h5py.*pip install 'jointset\[hdf5\]'") as caught:
        dcrnn.read_store(written(tmp_path / "metr-la.h5", b"x"))
    assert "\n" not in str(caught.value)


# --- windows in Parquet ------------------------------------------------------------------------------------------


def write_windows(folder, values, stamps, times):
    """Windows of 12 + 12 steps, split 70/10/20, a row per window and sensor, as the makers of the files did."""
    rows = []
    for t in range(11, len(values) - 12):
        for node in range(values.shape[1]):
            row = {"node_id": node, "t0_timestamp": times(stamps[t])}
            for k in range(-11, 13):
                name = f"x_t{k:+d}" if k <= 0 else f"y_t{k:+d}"
                row |= {f"{name}_d0": values[t + k, node], f"{name}_d1": 0.5}
            rows.append(row)
    frame, n = pd.DataFrame(rows), values.shape[1]
    first, second = (round(len(frame) / n * share) * n for share in (0.7, 0.8))
    paths = {}
    for name, part in (("train", frame[:first]), ("val", frame[first:second]), ("test", frame[second:])):
        paths[f"{name}.parquet"] = folder / f"{name}.parquet"
        part.to_parquet(paths[f"{name}.parquet"], index=False)
    return paths


def as_text(seconds):
    return str(np.datetime64(int(seconds), "s")).replace("T", " ")


def as_time(seconds):
    return pd.Timestamp(int(seconds), unit="s")


@pytest.fixture
def window_files(tmp_path, speeds):
    values, sensors, stamps = speeds
    paths = write_windows(tmp_path, values, stamps, as_text)
    paths |= {name: tmp_path / name for name in ("adj_mx.npy", "adj_mx_mapping.json")}
    np.save(paths["adj_mx.npy"], np.array([[1, 0.5, 0], [0, 1, 0], [0.25, 0, 1]], dtype=np.float32))
    paths["adj_mx_mapping.json"].write_text(json.dumps({"sensor_ids": sensors, "shape": [3, 3]}))
    paths |= {name: tmp_path / name for name in ("sensor_locations.csv", "distances.csv")}
    places = [f"{i},{sensor},34.{i},-118" for i, sensor in enumerate(sensors)]
    paths["sensor_locations.csv"].write_text("\n".join(["index,sensor_id,latitude,longitude", *places]))
    paths["distances.csv"].write_text("from,to,cost\n773869,767541,99\n")
    return paths


def test_windows_give_back_the_series_with_both_ends(tmp_path, speeds, window_files):
    values, sensors, stamps = speeds
    panel = same_after_storage(dataset("metr-la").parse(window_files), tmp_path)
    assert panel.sensors == tuple(sensors)
    assert np.array_equal(panel.values, values)
    assert panel.timestamps.tolist() == stamps.tolist()
    assert panel.adjacency[2, 0] == 0.25
    assert panel.distances[0, 1] == 99


def test_windows_keep_a_gap_and_may_have_real_times(tmp_path, speeds, window_files):
    values, sensors, stamps = speeds
    stamps = stamps + np.where(np.arange(40) < 20, 0, 3600)
    paths = write_windows(tmp_path, values, stamps, as_time)
    found, seconds = hugging_face.read_series(list(paths.values()), sensors)
    assert np.array_equal(found, values)
    assert seconds.tolist() == stamps.tolist()


def test_other_parquet_files_are_refused(tmp_path, speeds, window_files):
    sensors = speeds[1]
    pq.write_table(pa.table({"time": [1], "a": [2.0]}), tmp_path / "wide.parquet")
    with pytest.raises(InputError, match=r"wide.parquet: no column 'node_id': expected forecasting windows"):
        hugging_face.read_series([tmp_path / "wide.parquet"], sensors)
    cut = written(tmp_path / "cut.parquet", (tmp_path / "train.parquet").read_bytes()[:200])
    with pytest.raises(InputError, match=r"cut.parquet: "):
        hugging_face.read_series([cut], sensors)
    with pytest.raises(InputError, match="node_id runs from 0 to 2, the graph has sensors 0 to 1"):
        hugging_face.read_series([tmp_path / "train.parquet"], sensors[:2])


# --- UCI ---------------------------------------------------------------------------------------------------------


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def station_csv(name, readings, first_hour=22):
    head = (
        '"No","year","month","day","hour","PM2.5","PM10","SO2","NO2","CO","O3","TEMP","PRES","DEWP","RAIN","wd","WSPM"'
    )
    lines = [f'{head},"station"']
    for i, reading in enumerate(readings):
        day, hour = divmod(first_hour + i, 24)
        lines.append(f'{i + 1},2016,2,{29 + day},{hour},{reading},4,4,7,300,77,-0.7,1023,-18.8,0,"NNW",4.4,"{name}"')
    return "\n".join(lines).replace(",2,30,", ",3,1,")


@pytest.fixture
def air_zip(tmp_path):
    inner = {
        "PRSA_Data_20130301-20170228/PRSA_Data_Wanliu_20130301-20170228.csv": station_csv("Wanliu", [8, "NA", 6]),
        "PRSA_Data_20130301-20170228/PRSA_Data_Dongsi_20130301-20170228.csv": station_csv("Dongsi", [9, 7.5, 3]),
    }
    outer = {"PRSA2017_Data_20130301-20170228.zip": zipped(inner), "test.csv": "x"}
    return written(tmp_path / "beijing+multi+site+air+quality+data.zip", zipped(outer))


def test_air_quality_comes_out_of_the_zip_of_zips(tmp_path, air_zip):
    panel = same_after_storage(dataset("aqi").parse({air_zip.name: air_zip}), tmp_path)
    assert panel.sensors == ("Dongsi", "Wanliu")
    assert np.array_equal(panel.values, [[9, 8], [7.5, np.nan], [3, 6]], equal_nan=True)
    stamps = panel.timestamps.astype("datetime64[s]").astype(str).tolist()
    assert stamps == ["2016-02-29T22:00:00", "2016-02-29T23:00:00", "2016-03-01T00:00:00"]


def test_damaged_and_other_zips_are_named(tmp_path, air_zip):
    cut = written(tmp_path / "cut.zip", air_zip.read_bytes()[:-60])
    with pytest.raises(InputError, match=r"cut.zip: cannot be read .*damaged or cut short"):
        uci.parse_air({"cut.zip": cut})
    other = written(tmp_path / "other.zip", zipped({"a.txt": "x"}))
    with pytest.raises(InputError, match=r"other.zip: expected one PRSA2017.* in the zip, found 0"):
        uci.parse_air({"other.zip": other})
    broken = bytearray(air_zip.read_bytes())
    broken[120] ^= 0xFF
    with pytest.raises(InputError, match=r"broken.zip: "):
        uci.parse_air({"broken.zip": written(tmp_path / "broken.zip", bytes(broken))})


def test_a_zip_that_would_unpack_to_too_much_is_refused(tmp_path, air_zip, monkeypatch):
    monkeypatch.setattr(text_tables, "LARGEST_MEMBER", 10)
    with pytest.raises(InputError, match="would unpack to"):
        uci.parse_air({air_zip.name: air_zip})


def test_stations_with_other_hours_are_refused(tmp_path):
    inner = {"a.csv": station_csv("A", [1, 2]), "b.csv": station_csv("B", [1, 2], first_hour=3)}
    path = written(tmp_path / "x.zip", zipped({uci.INNER: zipped(inner)}))
    with pytest.raises(InputError, match="do not share their hours"):
        uci.parse_air({"x.zip": path})


def test_electricity_of_uci_has_decimal_commas(tmp_path):
    lines = ['"";"MT_001";"MT_002"', '"2011-01-01 00:15:00";3,8071065989848;0', '"2011-01-01 00:30:00";5;22,1200']
    path = written(tmp_path / "electricityloaddiagrams20112014.zip", zipped({"LD2011_2014.txt": "\n".join(lines)}))
    panel = same_after_storage(dataset("elec-uci").parse({path.name: path}), tmp_path)
    assert panel.sensors == ("MT_001", "MT_002")
    assert panel.values.tolist() == [[3.8071065989848, 0], [5, 22.12]]
    assert panel.cadence == 900
    assert str(np.datetime64(int(panel.timestamps[0]), "s")) == "2011-01-01T00:15:00"


# --- LSTNet, Informer --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["", ","])
def test_lstnet_numbers_get_names_and_times(tmp_path, end):
    path = written(tmp_path / "electricity.txt.gz", gzip.compress(f"14,69,234{end}\n18,92.5,312{end}\n".encode()))
    panel = same_after_storage(dataset("elec").parse({path.name: path}), tmp_path)
    assert panel.sensors == ("client_0", "client_1", "client_2")
    assert panel.values.tolist() == [[14, 69, 234], [18, 92.5, 312]]
    assert panel.timestamps.tolist() == [1325376000, 1325379600]


def test_solar_starts_with_its_year(tmp_path):
    path = written(tmp_path / "solar_AL.txt.gz", gzip.compress(b"0.0,0\n1.5,2\n"))
    panel = same_after_storage(lstnet.parse_solar({path.name: path}), tmp_path)
    assert panel.sensors == ("plant_0", "plant_1")
    assert str(np.datetime64(int(panel.timestamps[1]), "s")) == "2006-01-01T00:10:00"


def test_damaged_gzip_and_text_among_numbers_are_named(tmp_path):
    whole = gzip.compress(b"1.25,2.5\n" * 5000)
    with pytest.raises(InputError, match=r"cut.txt.gz: "):
        lstnet.parse_solar({"cut.txt.gz": written(tmp_path / "cut.txt.gz", whole[:-20])})
    text = written(tmp_path / "text.txt.gz", gzip.compress(b"1,2\n3,x\n"))
    with pytest.raises(InputError, match=r"text.txt.gz: not the table expected .*invalid value 'x'"):
        lstnet.parse_solar({"text.txt.gz": text})


ETT_ROWS = "date,HUFL,HULL,MUFL,MULL,LUFL,LULL,OT\n2016-07-01 00:00:00,5.8,2.0,1.6,0.5,4.2,1.3,30.5\n" + (
    "2016-07-01 01:00:00,5.7,2.1,1.5,0.4,4.1,1.4,27.8\n"
)


def test_ett_is_read_from_csv_and_from_parquet_alike(tmp_path):
    (tmp_path / "ETTh1.csv").write_text(ETT_ROWS)
    panel = same_after_storage(dataset("ett").parse({"ETTh1.csv": tmp_path / "ETTh1.csv"}), tmp_path)
    assert panel.sensors == informer.CHANNELS
    assert panel.values[1, 6] == 27.8
    assert panel.timestamps.tolist() == [1467331200, 1467334800]
    pd.read_csv(io.StringIO(ETT_ROWS))[["date", "OT", *informer.CHANNELS[:6]]].to_parquet(tmp_path / "ETTh1.parquet")
    assert dataset("ett").parse({"ETTh1.parquet": tmp_path / "ETTh1.parquet"}) == panel


def test_ett_with_other_channels_is_refused(tmp_path):
    (tmp_path / "ETTh1.csv").write_text("date,a,b\n2016-07-01 00:00:00,1,2\n")
    with pytest.raises(InputError, match="expected the channels HUFL"):
        informer.parse({"ETTh1.csv": tmp_path / "ETTh1.csv"})


# --- Jena --------------------------------------------------------------------------------------------------------


JENA_HEAD = '"Date Time","T (degC)","rh (%)","max. PAR (µmol/m²/s)","CO2 (ppm)"'


def jena_zip(folder, name, rows, head=JENA_HEAD):
    text = "\n".join([head, *rows]) + "\n"
    return written(folder / f"{name}.zip", zipped({f"{name}.csv": text.encode("latin-1")}))


@pytest.fixture
def jena_halves(tmp_path):
    first = ["30.06.2020 23:50:00,1.5,90,-9999.00,400.1", "01.07.2020 00:00:00,1.6,91,0,400.2"]
    second = ["01.07.2020 00:00:00,9,9,9,9", "01.07.2020 00:10:00,1.7,92,0,400.3", "01.07.2020 01:50:00,2,93,5,401"]
    return {
        "mpi_roof_2020b.zip": jena_zip(tmp_path, "mpi_roof_2020b", second),
        "mpi_roof_2020a.zip": jena_zip(tmp_path, "mpi_roof_2020a", first),
    }


def test_jena_halves_join_with_the_first_of_a_repeated_stamp_told(tmp_path, jena_halves):
    with pytest.warns(DataWarning, match=r"1 row with a repeated time stamp dropped.*2020-07-01T00:00:00Z, other"):
        panel = dataset("jena").parse(jena_halves)
    same_after_storage(panel, tmp_path)
    assert panel.sensors == ("T_degC", "rh_pct", "maxPAR_umolm2s", "CO2_ppm")
    assert panel.values[:, 0].tolist() == [1.5, 1.6, 1.7, 2]
    assert panel.values[0, 2] == jena.SENTINEL
    assert np.diff(panel.timestamps).tolist() == [600, 600, 6000]


def test_jena_halves_of_other_channels_are_refused(tmp_path, jena_halves):
    jena_halves["mpi_roof_2020b.zip"] = jena_zip(
        tmp_path, "mpi_roof_2020b", ["01.07.2020 00:00:00,9"], '"Date Time","p (mbar)"'
    )
    with pytest.raises(InputError, match=r"mpi_roof_2020b.zip has other channels than mpi_roof_2020a.zip"):
        jena.parse(jena_halves)


def test_jena_times_must_be_german_dates(tmp_path):
    path = jena_zip(tmp_path, "mpi_roof_2020a", ["2020-07-01 00:00:00,1,2,3,4"])
    with pytest.raises(InputError, match=r"mpi_roof_2020a.zip: a time cannot be read"):
        jena.parse({path.name: path})


# --- Seattle -----------------------------------------------------------------------------------------------------


@dataclass
class Name:
    """A class or function that a pickle names."""

    module: str
    name: str


@dataclass
class Made:
    """What a pickle makes by calling a name, and the state it then gives it."""

    by: Name
    args: tuple = ()
    state: object = None


class NamingPickler(pickle._Pickler):
    """Pickles names without importing them."""

    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, Name):
            self.write(f"c{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, Made):
            self.save(obj.by)
            self.save(obj.args)
            self.write(pickle.REDUCE)
            if obj.state is not None:
                self.save(obj.state)
                self.write(pickle.BUILD)
        else:
            super().save(obj, save_persistent_id)


def old_pandas_pickle(values, columns, index):
    """A data frame as pandas 0.23 pickled it: a block manager with its state under the key 0.14.1."""
    base = "pandas.core.indexes.base"

    def axis(labels):
        return Made(Name(base, "_new_Index"), (Name(base, "Index"), {"data": labels, "name": None}))

    axes = [axis(np.array(columns, dtype=object)), axis(index)]
    block = {"values": values.T, "mgr_locs": slice(0, len(columns), 1)}
    state = (axes, [values.T], [axes[0]], {"0.14.1": {"axes": axes, "blocks": [block]}})
    manager = Made(Name("pandas.core.internals", "BlockManager"), state=state)
    frame = {"_data": manager, "_typ": "dataframe", "_metadata": []}
    buffer = io.BytesIO()
    NamingPickler(buffer, protocol=2).dump(Made(Name("pandas.core.frame", "DataFrame"), state=frame))
    return buffer.getvalue()


MILEPOSTS = ["d005es15036", "i005es15036", "i405es00120"]


@pytest.fixture
def loops(tmp_path):
    values = np.random.default_rng(2).uniform(20, 65, (6, 3))
    times = pd.date_range("2015-01-01", periods=6, freq="5min")
    np.save(tmp_path / "Loop_Seattle_2015_A.npy", np.array([[1, 1, 0], [0, 1, 0], [0, 1, 1]]))
    (tmp_path / "nodes_loop_mp_list.csv").write_text("\n".join(["milepost", *MILEPOSTS]))
    return values, times


def seattle_paths(folder, *files):
    return {name: folder / name for name in (*files, "Loop_Seattle_2015_A.npy")}


@pytest.mark.parametrize("form", ["text", "times", "csv", "h5"])
def test_seattle_is_read_from_its_pickle_and_from_conversions(tmp_path, loops, form):
    values, times = loops
    paths = seattle_paths(tmp_path, "speed_matrix_2015", "nodes_loop_mp_list.csv")
    if form == "csv":
        paths = seattle_paths(tmp_path, "speed_matrix_2015.csv")
        pd.DataFrame(values, times, MILEPOSTS).to_csv(tmp_path / "speed_matrix_2015.csv", index_label="time")
    elif form == "h5":
        h5py = pytest.importorskip("h5py")
        paths = seattle_paths(tmp_path, "speed_matrix_2015.h5")
        with h5py.File(tmp_path / "speed_matrix_2015.h5", "w") as file:
            for name in ("axis0", "block0_items"):
                file[f"speed/{name}"] = np.array(MILEPOSTS, dtype="S11")
            file["speed/axis1"] = times.to_numpy("datetime64[ns]").astype(np.int64)
            file["speed/axis1"].attrs["kind"] = np.bytes_("datetime64")
            file["speed/block0_values"] = values
    else:
        labels = times.strftime("%Y-%m-%d %H:%M:%S").to_numpy(object)
        index = labels if form == "text" else times.to_numpy("datetime64[ns]")
        written(tmp_path / "speed_matrix_2015", old_pandas_pickle(values, MILEPOSTS, index))
    panel = same_after_storage(dataset("loop-seattle").parse(paths), tmp_path)
    assert panel.sensors == tuple(MILEPOSTS)
    assert np.allclose(panel.values, values, rtol=1e-14)
    assert panel.timestamps.tolist() == (1420070400 + 300 * np.arange(6)).tolist()
    assert panel.adjacency[2].tolist() == [0, 1, 1]


def test_seattle_pickle_of_another_layout_says_how_to_convert(tmp_path, loops):
    values, times = loops
    pd.DataFrame(values, times, MILEPOSTS).to_pickle(tmp_path / "speed_matrix_2015")
    paths = seattle_paths(tmp_path, "speed_matrix_2015", "nodes_loop_mp_list.csv")
    with pytest.raises(InputError, match=r"speed_matrix_2015: .*pandas.read_pickle\(.*\).to_csv") as caught:
        seattle.parse(paths)
    assert "\n" not in str(caught.value)


def test_seattle_mileposts_must_be_the_columns(tmp_path, loops):
    values, times = loops
    written(tmp_path / "speed_matrix_2015", old_pandas_pickle(values, MILEPOSTS[::-1], times.to_numpy()))
    with pytest.raises(InputError, match="its mileposts are not the columns"):
        seattle.parse(seattle_paths(tmp_path, "speed_matrix_2015", "nodes_loop_mp_list.csv"))


# --- shared pieces -----------------------------------------------------------------------------------------------


def test_a_column_may_begin_with_many_whole_zeros(tmp_path):
    rows = b"0;0\n" * 5_000_000 + b"0;22,5\n"  # more than Arrow looks at to guess a type
    table = text_tables.read_table(io.BytesIO(b"a;b\n" + rows), delimiter=";", decimal=",")
    assert text_tables.matrix(table, ["a", "b"])[-1].tolist() == [0, 22.5]


def test_files_are_picked_by_part_of_their_name(tmp_path):
    with pytest.raises(InputError, match=r"expected one file named like '\.h5'"):
        pick({"a.h5": tmp_path, "b.h5": tmp_path}, ".h5")
    with pytest.raises(InputError, match=r"ett is read from \(ETTh1.csv\) or \(ETTh1.parquet\): got other.csv"):
        dataset("ett").parse({"other.csv": tmp_path})


def test_facts_tell_a_graph_in_another_order():
    rng = np.random.default_rng(3)
    n, groups = 40, np.arange(40) // 5
    A = (groups[:, None] == groups).astype(float)
    values = rng.normal(size=(2000, 8))[:, groups] + rng.normal(size=(2000, n))
    panel = Panel(values, [str(i) for i in range(n)], adjacency=A)
    alike = facts.neighbours_alike().measure
    assert alike(panel)[1]
    assert not alike(panel.with_values(values[:, rng.permutation(n)]))[1]
