"""Races within a core by its flags, and the two cores of a block: signals, deadlocks, races."""

from __future__ import annotations

import numpy as np
import pytest
from pto.kernels import Array, Kernel, boxed, column, integers, vec, zeros

from tilewright.codegen.pto.emulate import emulate
from tilewright.errors import PTOError

FLAGS = [
    "pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]",
    "pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]",
    "pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]",
    "pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]",
    "pto.set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID1>]",
    "pto.wait_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID1>]",
]


def loop(flags: list[str]) -> str:
    """Three row tiles, loaded, doubled and stored through one buffer, with a flag for each hazard."""
    to_v, v_waits, to_mte3, mte3_waits, to_mte2, mte2_waits = flags
    t, p = vec(4, 8), "!pto.partition_tensor_view<4x8xf32>"
    return f"""
    module {{
      func.func @k(%a: !pto.ptr<f32>, %o: !pto.ptr<f32>) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c3 = arith.constant 3 : index
        %c4 = arith.constant 4 : index
        %c8 = arith.constant 8 : index
        %c12 = arith.constant 12 : index
        %va = pto.make_tensor_view %a, shape = [%c12, %c8], strides = [%c8, %c1] : !pto.tensor_view<12x8xf32>
        %vo = pto.make_tensor_view %o, shape = [%c12, %c8], strides = [%c8, %c1] : !pto.tensor_view<12x8xf32>
        %x = pto.alloc_tile : {t}
        {to_mte2}
        scf.for %i = %c0 to %c3 step %c1 {{
          %r = arith.muli %i, %c4 : index
          %pa = pto.partition_view %va, offsets = [%r, %c0], sizes = [%c4, %c8] : !pto.tensor_view<12x8xf32> -> {p}
          %po = pto.partition_view %vo, offsets = [%r, %c0], sizes = [%c4, %c8] : !pto.tensor_view<12x8xf32> -> {p}
          {mte2_waits}
          pto.tload ins(%pa : {p}) outs(%x : {t})
          {to_v}
          {v_waits}
          pto.tadd ins(%x, %x : {t}, {t}) outs(%x : {t})
          {to_mte3}
          {mte3_waits}
          pto.tstore ins(%x : {t}) outs(%po : {p})
          {to_mte2}
        }}
        {mte2_waits}
        return
      }}
    }}
    """


def test_flags_that_order_everything_pass() -> None:
    a, o = integers((12, 8)), zeros((12, 8))
    emulate(loop(FLAGS), [a, o], sync="explicit")
    np.testing.assert_array_equal(o, a + a)


@pytest.mark.parametrize("pair", [0, 1, 2])
def test_a_dropped_pair_of_flags_is_a_race(pair: int) -> None:
    flags = [flag if i // 2 != pair else "" for i, flag in enumerate(FLAGS)]
    a, o = integers((12, 8)), zeros((12, 8))
    with pytest.raises(PTOError, match="race") as caught:
        emulate(loop(flags), [a, o], sync="explicit")
    assert caught.value.span is not None and caught.value.span.line
    emulate(loop(flags), [a, o])
    np.testing.assert_array_equal(o, a + a)


@pytest.mark.parametrize("wait", [1, 3, 5])
def test_a_dropped_wait_is_reported(wait: int) -> None:
    flags = ["" if i == wait else flag for i, flag in enumerate(FLAGS)]
    with pytest.raises(PTOError, match=r"race|set twice"):
        emulate(loop(flags), [integers((12, 8)), zeros((12, 8))], sync="explicit")


@pytest.mark.parametrize("signal", [0, 2, 4])
def test_a_wait_that_nothing_answers_is_reported(signal: int) -> None:
    flags = ["" if i == signal else flag for i, flag in enumerate(FLAGS)]
    with pytest.raises(PTOError, match="nothing has set it"):
        emulate(loop(flags), [integers((12, 8)), zeros((12, 8))], sync="explicit")


def test_a_barrier_of_all_pipes_orders_and_a_barrier_of_one_does_not() -> None:
    for barrier, ordered in (("<PIPE_ALL>", True), ("<PIPE_V>", False)):
        flags = [f"pto.barrier {barrier}", "", f"pto.barrier {barrier}", "", f"pto.barrier {barrier}", ""]
        a, o = integers((12, 8)), zeros((12, 8))
        if ordered:
            emulate(loop(flags), [a, o], sync="explicit")
            np.testing.assert_array_equal(o, a + a)
        else:
            with pytest.raises(PTOError, match="race"):
                emulate(loop(flags), [a, o], sync="explicit")


def test_dynamic_flags_and_events_order_too() -> None:
    flags = [
        "pto.record_event[#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, #pto.event<EVENT_ID0>]",
        "pto.wait_event[#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, #pto.event<EVENT_ID0>]",
        "pto.set_flag_dyn[<PIPE_V>, <PIPE_MTE3>, %c3]",
        "pto.wait_flag_dyn[<PIPE_V>, <PIPE_MTE3>, %c3]",
        *FLAGS[4:],
    ]
    a, o = integers((12, 8)), zeros((12, 8))
    emulate(loop(flags), [a, o], sync="explicit")
    np.testing.assert_array_equal(o, a + a)


def test_a_flag_left_set_at_the_end_is_reported() -> None:
    k = Kernel()
    k.line(FLAGS[0])
    with pytest.raises(PTOError, match="still set"):
        k.run(sync="explicit", legal=False)


def test_disjoint_tiles_and_rows_of_memory_are_no_race() -> None:
    k = Kernel("f32", "f32")
    x, y = k.load(0, (4, 8), vec(4, 8), addr=0), k.tile(vec(4, 8), addr=128)
    k.op("texpands", [k.scalar(1, "f32")], y)
    k.run(integers((4, 8)), zeros((4, 8)), sync="explicit")
    assert x.name != y.name


def test_a_store_and_a_load_of_the_same_memory_race() -> None:
    k = Kernel("f32")
    x, y = k.tile(vec(4, 8), addr=0), k.tile(vec(4, 8), addr=128)
    k.op("tload", [k.view(0, (4, 8))], x)
    k.line("pto.set_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]")
    k.line("pto.wait_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]")
    k.store(x, 0, (4, 8))
    k.op("tload", [k.view(0, (4, 8))], y)
    with pytest.raises(PTOError, match="race"):
        k.run(integers((4, 8)), sync="explicit")


def test_scratch_counts_as_an_access() -> None:
    k = Kernel("f32")
    x, tmp, c = k.tile(vec(8, 8), addr=0), k.tile(vec(8, 8), addr=256), k.tile(column(8), addr=1024)
    k.op("texpands", [k.scalar(1, "f32")], x)
    k.op("trowsum", [x, tmp], c)
    k.op("tload", [k.view(0, (8, 8))], tmp)
    with pytest.raises(PTOError, match="race"):
        k.run(integers((8, 8)), sync="explicit")


# --- two cores -------------------------------------------------------------------------------------------------------
def sections(signals: dict[str, str], *, arch: str = "a5") -> str:
    """The cube's product goes to Vec, is relu'd there, and comes back for a second one."""
    k = Kernel("f16", "f16", "f32", kind=None, arch=arch)
    mat, left = boxed("mat", 32, 32), boxed("left", 32, 32)
    ml, mr, back = k.tile(mat), k.tile(mat), k.tile(mat)
    left1, left2, right = k.tile(left), k.tile(left), k.tile(boxed("right", 32, 32))
    c, x, h = k.tile(boxed("acc", 32, 32, "f32")), k.tile(vec(32, 32)), k.tile(vec(32, 32, "f16"))
    views = [k.view(i, (32, 32)) for i in range(3)]
    k.line("pto.section.cube {")
    k.op("tload", [views[0]], ml)
    k.op("tload", [views[1]], mr)
    k.op("tmov", [ml], left1)
    k.op("tmov", [mr], right)
    k.op("tmatmul", [left1, right], c)
    k.op("tmov", [c], x)
    k.line(signals.get("cube_set", ""))
    k.line(signals.get("cube_wait", ""))
    k.op("tmov", [back], left2)
    k.op("tmatmul", [left2, right], c)
    k.op("tstore", [c], views[2])
    k.line("}")
    k.line("pto.section.vector {")
    k.line(signals.get("vector_wait", ""))
    k.op("trelu", [x], x)
    k.op("tcvt", [x], h)
    k.op("tmov", [h], back)
    k.line(signals.get("vector_set", ""))
    k.line("}")
    return k.text()


SIGNALS = {
    "cube_set": "pto.sync.set <PIPE_FIX>, 0",
    "cube_wait": "pto.sync.wait <PIPE_MTE1>, 1",
    "vector_wait": "pto.sync.wait <PIPE_V>, 0",
    "vector_set": "pto.sync.set <PIPE_FIX>, 1",
}


def arguments() -> tuple[Array, Array, Array]:
    return integers((32, 32), "f16", -2, 3), integers((32, 32), "f16", -2, 3, 1), zeros((32, 32))


def test_two_sections_hand_tiles_to_and_fro() -> None:
    a, b, o = arguments()
    emulate(sections(SIGNALS), [a, b, o])
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    np.testing.assert_array_equal(o, np.maximum(wide_a @ wide_b, 0) @ wide_b)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cube_set": ""}, "deadlock"),
        ({"vector_set": ""}, "deadlock"),
        ({"vector_wait": "", "cube_set": ""}, "race"),
        ({"cube_wait": "", "vector_set": ""}, "race"),
        ({"vector_wait": ""}, "race|still set"),
        ({"cube_set": "pto.sync.set <PIPE_MTE3>, 0"}, "race"),
        ({"vector_set": "pto.sync.set <PIPE_MTE3>, 1"}, "race"),
        ({"cube_wait": "pto.sync.wait <PIPE_MTE2>, 1"}, "race"),
        ({"vector_set": SIGNALS["vector_set"] + "\npto.sync.set <PIPE_FIX>, 2"}, "still set"),
    ],
)
def test_a_missing_or_wrong_signal_is_found(change: dict[str, str], message: str) -> None:
    with pytest.raises(PTOError, match=message):
        emulate(sections(SIGNALS | change), list(arguments()))


def test_signals_of_a_loop_alternate_without_deadlock() -> None:
    text = """
    module attributes {pto.target_arch = "a5"} {
      func.func @k(%p: !pto.ptr<i32>) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c4 = arith.constant 4 : index
        pto.section.cube {
          scf.for %i = %c0 to %c4 step %c1 {
            %v = arith.index_cast %i : index to i32
            pto.store_scalar %v, %p[%c0] : !pto.ptr<i32>, i32
            pto.barrier <PIPE_ALL>
            pto.sync.set <PIPE_S>, 0
            pto.sync.wait <PIPE_S>, 1
          }
        }
        pto.section.vector {
          scf.for %i = %c0 to %c4 step %c1 {
            pto.sync.wait <PIPE_S>, 0
            %v = pto.load_scalar %p[%c0] : !pto.ptr<i32> -> i32
            %j = arith.addi %i, %c1 : index
            pto.store_scalar %v, %p[%j] : !pto.ptr<i32>, i32
            pto.sync.set <PIPE_S>, 1
          }
        }
        return
      }
    }
    """
    o = zeros((5,), "i32")
    emulate(text, [o])
    assert o.tolist() == [3, 0, 1, 2, 3]


@pytest.mark.parametrize(("pipe", "ordered"), [("PIPE_MTE2", True), ("PIPE_V", False)])
def test_cores_of_the_a3_meet_in_memory(pipe: str, ordered: bool) -> None:
    """A load after the wait is ordered only if its own pipe waited."""
    k = Kernel("f16", "f16", "f32", "f32", kind=None, scalars="%m: memref<256xi64>")
    ml, mr = k.tile(boxed("mat", 32, 32)), k.tile(boxed("mat", 32, 32))
    left, right, c = k.tile(boxed("left", 32, 32)), k.tile(boxed("right", 32, 32)), k.tile(boxed("acc", 32, 32, "f32"))
    x = k.tile(vec(32, 32))
    views = [k.view(i, (32, 32)) for i in range(4)]
    k.line("pto.set_ffts %m : memref<256xi64>")
    k.line("pto.section.cube {")
    k.op("tload", [views[0]], ml)
    k.op("tload", [views[1]], mr)
    k.op("tmov", [ml], left)
    k.op("tmov", [mr], right)
    k.op("tmatmul", [left, right], c)
    k.op("tstore", [c], views[2])
    k.line("pto.sync.set <PIPE_FIX>, 3")
    k.line("}")
    k.line("pto.section.vector {")
    k.line(f"pto.sync.wait <{pipe}>, 3")
    k.op("tload", [views[2]], x)
    k.op("trelu", [x], x)
    k.op("tstore", [x], views[3])
    k.line("}")
    a, b, o = arguments()
    if not ordered:
        with pytest.raises(PTOError, match="race"):
            k.run(a, b, zeros((32, 32)), o)
        return
    k.run(a, b, zeros((32, 32)), o)
    np.testing.assert_array_equal(o, np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0))
