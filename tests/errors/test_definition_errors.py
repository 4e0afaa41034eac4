"""Every mistake in definitions, domains, boundary conditions and pipelines: one case each."""

from __future__ import annotations

import pantile as pt
from pantile.lang.build import build

from .cases import HERE, Case, Cases, assert_refused
from .pipelines import ANY, IMG, C, R, X, Y, defined

CASES = Cases()
must_fail = CASES.must_fail


# ---- definitions


@must_fail("the first definition of Func 'f' has y twice on its left; use distinct Vars")
def repeated_coordinate() -> None:
    f = pt.Func("f")
    f[Y, Y] = 1


@must_fail(
    r"first definition of Func 'f' must hold for every point, but 0 is not a coordinate; write f\[y, x\] = ... first"
)
def update_before_pure() -> None:
    f = pt.Func("f")
    f[0, X] = 1


@must_fail(r"Func 'f' uses c, which is not a coordinate on the left, f\[y, x\]; add it there, or reduce over it")
def free_coordinate() -> None:
    f = pt.Func("f")
    f[Y, X] = Y + C


@must_fail(r"the first definition of Func 'f' uses the reduction variable r.0; write pt.sum\(..., over=r\)")
def free_reduction_variable() -> None:
    f = pt.Func("f")
    f[Y, X] = IMG[Y + R[0], X]


@must_fail("Func 'f' is given no value; write")
def no_value() -> None:
    f = pt.Func("f")
    f[Y, X] = ()


@must_fail(r"the domain of Func 'f' is \(\(3, 4, 5\),\); write one \(min, extent\), or extent, per dimension")
def domain_without_pairs() -> object:
    return pt.Func("f", domain=((3, 4, 5),))


@must_fail("Func 'f' states a domain of 1 dimensions but is defined with 2")
def domain_of_another_rank() -> None:
    f = pt.Func("f", domain=((0, 3),))
    f[Y, X] = 0


@must_fail(
    "the extent of the domain of Func 'f' is y, but y is not known when the pipeline is called; use only numbers"
)
def domain_of_a_coordinate() -> object:
    return pt.Func("f", domain=((0, Y),))


@must_fail(rf"Func 'f' gets another definition after Func 'g' \(defined at {HERE}\) has read it; move all definitions")
def update_after_use() -> None:
    f, g = defined("f"), pt.Func("g")
    g[Y, X] = f[Y, X]
    f[Y, X] += 1


@must_fail(
    rf"Func 'f' holds int32 \(from {HERE}\) but this update computes float32; write pt.cast\('int32', ...\) around it, "
    "or define f with float32"
)
def update_of_another_type() -> None:
    f = defined()
    f[Y, X] += 0.5


@must_fail(rf"Func 'f' has 2 value\(s\) at each point \(from {HERE}\) but this update gives 1; write a tuple")
def update_of_another_arity() -> None:
    f = defined(value=(1, 2))
    f[Y, X] = 3


@must_fail(r"this update of Func 'f' uses x in the index x \+ 1; .* alone in its place, as in f\[y, x\]")
def shifted_coordinate_in_an_update() -> None:
    f = defined()
    f[Y, X + 1] = 3


@must_fail(r"this update of Func 'f' uses x in the index x; on the left of an update")
def swapped_coordinates_in_an_update() -> None:
    f = defined()
    f[X, Y] = 3


@must_fail("Func 'f' uses x, which is not a coordinate on the left")
def free_coordinate_in_an_update() -> None:
    f = defined()
    f[Y, R[0]] = X


@must_fail(
    r"this update of Func 'f' runs over x in no particular order, so it cannot read f\[y, x - 1\]; "
    "to run in order, replace x by a variable of an RDom"
)
def unordered_scan() -> None:
    f = defined()
    f[Y, X] += f[Y, X - 1]


@must_fail(r"this update of Func 'f' uses two RDoms, .* = RDom\(\(0, 5\)\).*; write one RDom with all the loops")
def two_domains() -> None:
    f = defined()
    other = pt.RDom((0, 5))
    f[R[0], other[0]] = 1


@must_fail(
    r"this update of Func 'f' reads f inside a reduction; write it as an update over the RDom, like f\[...\] \+= "
)
def reduction_of_itself() -> None:
    f = defined()
    f[Y, X] = pt.sum(f[Y, R[0]], over=R)


# ---- reduction domains


@must_fail(r"an RDom needs at least one loop: pt.RDom\(\(min, extent\), ...\)")
def domain_without_loops() -> object:
    return pt.RDom()


@must_fail(r"loop 1 of an RDom is 3; write \(min, extent\), for example \(-1, 3\)")
def loop_without_min() -> object:
    return pt.RDom((0, 3), 3)  # type: ignore[arg-type]


@must_fail("the extent of loop 0 of an RDom is -3; it must not be negative")
def negative_loop() -> object:
    return pt.RDom((0, -3))


@must_fail("the extent of loop 0 of an RDom is .*, of type float32; it must be an integer: divide with //")
def float_loop() -> object:
    return pt.RDom((0, IMG.shape[0] / 2))


@must_fail(r"the extent of loop 0 of an RDom is .*, but img\[0, 0\] is not known when the pipeline is called")
def loop_over_data() -> object:
    return pt.RDom((0, IMG[0, 0] + 1))


@must_fail(r"r.where\(r.0\): the condition is int32; write a comparison such as r.0 != 0")
def where_without_condition() -> object:
    return R.where(R[0])


@must_fail(r"r has 2 loops, so 2 is not one of 0 .. 1")
def no_such_loop() -> object:
    return R[2]


@must_fail(r"r has no loop named 'y'; it has 0, 1 \(see names=\)")
def no_such_loop_name() -> object:
    return R.y


@must_fail("'where' cannot name a loop of an RDom: it is an attribute of every RDom")
def reserved_loop_name() -> object:
    return pt.RDom((0, 3), names="where")


@must_fail("names='y y' must give each of the RDom's 2 loops a name of its own")
def repeated_loop_names() -> object:
    return pt.RDom((0, 3), (0, 3), names="y y")


@must_fail(r"pt.sum reduces over an RDom: write pt.sum\(expression, over=r\)")
def sum_over_nothing() -> object:
    return pt.sum(IMG[Y, X])


@must_fail(r"pt.min reduces over an RDom: .*; for the smaller of two values use pt.minimum\(a, b\)")
def min_of_two_values() -> object:
    return pt.min(IMG[Y, X], 3)  # type: ignore[arg-type]


@must_fail(r"pt.any needs a condition, but img\[r.0, r.1\] is uint8; write img\[r.0, r.1\] != 0")
def any_of_numbers() -> object:
    return pt.any(IMG[R[0], R[1]], over=R)


# ---- boundary conditions and iteration


@must_fail(r"pt.edge needs to know where Func 'f' ends; define it with a domain, like pt.Func\('f', domain=")
def edge_of_an_endless_func() -> object:
    return pt.edge(defined())


@must_fail("pt.wrap extends an Input or a Func, not <uint8 .*>; pass it without an index")
def edge_of_a_value() -> object:
    return pt.wrap(IMG[Y, X])  # type: ignore[arg-type]


@must_fail("pt.reflect: 2 is not an axis of Input 'img', which has axes 0 .. 1")
def edge_along_no_axis() -> object:
    return pt.reflect(IMG, axes=(0, 2))


@must_fail("Input 'img' holds uint8, so pt.constant cannot fill it with 0.5; cast one of them")
def fill_of_another_type() -> object:
    return pt.constant(IMG, 0.5)


@must_fail("pt.constant gives 2 values to Input 'img', which has 1 at each point")
def fill_of_another_arity() -> object:
    return pt.constant(IMG, (1, 2))


@must_fail("pt.iterate cannot apply a step -1 times; write a number")
def negative_times() -> object:
    return pt.iterate(defined(), lambda f: f, times=-1)


@must_fail(r"the number of steps of pt.iterate is Param 'n', of type float32; make it int32")
def times_that_are_a_float() -> object:
    return pt.iterate(defined(), lambda f: f, times=pt.Param("n", "float32"))


@must_fail(r"the state of pt.iterate is <uint8 img\[y, x\]>; with times=Param it is a Func, or a tuple of Funcs")
def state_that_is_a_value() -> object:
    return pt.iterate(IMG, lambda f: f[Y, X], times=pt.Param("n", "int32"))  # type: ignore[arg-type, return-value]


@must_fail(r"a step of pt.iterate changes the kind of its state: Func 'v_2' does not have the dimensions and types ")
def step_that_changes_the_type() -> object:
    def step(before: pt.Func) -> pt.Func:
        v = pt.Func("v")
        v[Y, X] = pt.cast("int32" if isinstance(before, pt.Input) else "int64", before[Y, X])
        return v

    return pt.Pipeline(pt.iterate(IMG, step, times=pt.Param("n", "int32", 2)))  # type: ignore[arg-type]


@must_fail("step 1 of pt.iterate returned nothing; end it with 'return' and the new Func")
def step_without_result() -> object:
    return pt.iterate(defined(), lambda f: ANY, times=1)


# ---- pipelines


@must_fail("a pipeline needs at least one output Func")
def no_outputs() -> object:
    return build([])


@must_fail(r"an output of a pipeline must be a Func, not Input\('img'.*; define one, like f\[y, x\] = ...")
def input_as_output() -> object:
    return build([IMG])  # type: ignore[list-item]


@must_fail(rf"Func 'f' \(made at {HERE}\) is an output but not defined; write f\[...\] = ...")
def undefined_output() -> object:
    return build(pt.Func("f"))


@must_fail(rf"Func 'f' \(defined at {HERE}\) is listed twice as an output")
def repeated_output() -> object:
    f = defined()
    return build([f, f], [(2, 2), (2, 2)])


@must_fail(r"shape=\(3,\) must hold one shape per output, and there are 2 outputs")
def too_few_shapes() -> object:
    return build([defined("f"), defined("g")], (3,))


@must_fail(rf"the shape \(3\) has 1 extents, but Func 'f' \(defined at {HERE}\) has 2 dimensions: y, x")
def shape_of_another_rank() -> object:
    return build(defined(), (3,))


@must_fail(r"the shape \(3, -1\) of Func 'f' has a negative extent")
def negative_shape() -> object:
    return build(defined(), (3, -1))


@must_fail(r"an extent of the shape of Func 'f' is .*, of type float32; it must be an integer: divide with //")
def float_shape() -> object:
    return build(defined(), (IMG.shape[0] / 2, 3))


@must_fail(
    rf"the shape of output Func 'f' \(defined at {HERE}\) is not known: no Input has 2 dimensions to take it from; "
    r"write shape=\(extent of y, extent of x\)"
)
def unknown_shape() -> object:
    return build(defined())


@must_fail(rf"Func 'f' \(from {HERE}\) and Func 'f' \(from {HERE}\) have the same name; rename one of them")
def two_funcs_of_one_name() -> object:
    f, g = defined("f"), pt.Func("f")
    g[Y, X] = f[Y, X]
    return build(g, (3, 3))


@must_fail(rf"Input 'img' \(from {HERE}\) and Input 'img' \(from {HERE}\) have the same name")
def two_inputs_of_one_name() -> object:
    f, other = pt.Func("f"), pt.Input("img", "uint8", 2)
    f[Y, X] = IMG[Y, X] + other[Y, X]
    return build(f)


@must_fail(rf"Param 'y' \(from {HERE}\) has the name of a coordinate of Func 'f' \(defined at {HERE}\); rename one")
def param_named_like_a_coordinate() -> object:
    return build(defined(value=pt.Param("y", "int32")), (3, 3))


# ---- the test


@CASES.each
def test_message(case: Case, text: str) -> None:
    assert_refused(case, text)
