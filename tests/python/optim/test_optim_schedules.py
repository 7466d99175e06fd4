"""Schedules: state dictionaries, warnings, errors, tensors as rates."""

import warnings

import pytest
import strata
from strata import optim
from strata.optim import lr_scheduler as schedules
from strata.optim import swa_utils


def sgd(lr=0.5, **options):
    return optim.SGD([leaf()], lr=lr, **options)


def leaf():
    return strata.zeros(1, requires_grad=True)


def rates(optimizer, schedule, count):
    values = []
    for _ in range(count):
        values.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        schedule.step()
    return values


def test_state_dict_resumes():
    optimizer = sgd()
    schedule = schedules.CosineAnnealingLR(optimizer, 10)
    rates(optimizer, schedule, 4)
    state = schedule.state_dict()
    assert "optimizer" not in state and state["last_epoch"] == 4 and state["T_max"] == 10
    expected = rates(optimizer, schedule, 3)
    again = sgd(lr=state["_last_lr"][0])
    resumed = schedules.CosineAnnealingLR(again, 99)
    resumed.load_state_dict(state)
    again.param_groups[0]["lr"] = state["_last_lr"][0]
    assert rates(again, resumed, 3) == pytest.approx(expected)


def test_functions_are_not_saved_but_objects_are():
    class Decay:
        def __init__(self, base):
            self.base = base

        def __call__(self, epoch):
            return self.base**epoch

    schedule = schedules.LambdaLR(sgd(), Decay(0.5))
    assert schedule.state_dict()["lr_lambdas"] == [{"base": 0.5}]
    other = schedules.LambdaLR(sgd(), Decay(0.1))
    other.load_state_dict(schedule.state_dict())
    assert other.lr_lambdas[0].base == 0.5
    assert schedules.LambdaLR(sgd(), lambda e: 1.0).state_dict()["lr_lambdas"] == [None]


def test_composed_state():
    optimizer = sgd()
    schedule = schedules.SequentialLR(
        optimizer, [schedules.ConstantLR(optimizer), schedules.ExponentialLR(optimizer, 0.9)], [3]
    )
    rates(optimizer, schedule, 5)
    state = schedule.state_dict()
    assert len(state["_schedulers"]) == 2 and state["last_epoch"] == 5
    schedule.load_state_dict(state)


def test_tensor_rates_keep_their_identity():
    rate = strata.tensor(0.5)
    optimizer = sgd(lr=rate)
    schedule = schedules.StepLR(optimizer, 1, 0.5)
    assert rates(optimizer, schedule, 3) == [0.5, 0.25, 0.125]
    assert optimizer.param_groups[0]["lr"] is rate


def test_last_epoch_needs_initial_rates():
    with pytest.raises(KeyError, match="param 'initial_lr' is not specified in param_groups"):
        schedules.StepLR(sgd(), 3, last_epoch=2)
    optimizer = sgd()
    optimizer.param_groups[0]["initial_lr"] = 0.5
    schedule = schedules.ExponentialLR(optimizer, 0.5, last_epoch=2)
    assert schedule.last_epoch == 3 and schedule.get_last_lr() == [0.5]


def test_order_of_steps_warns():
    optimizer = sgd()
    schedule = schedules.ExponentialLR(optimizer, 0.5)
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step"):
        schedule.step()
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        schedule.get_lr()
    with pytest.warns(UserWarning, match="The epoch parameter in `scheduler.step"):
        schedule.step(5)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.5 * 0.5**5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fine = sgd()
        quiet = schedules.ExponentialLR(fine, 0.5)
        fine.step()
        quiet.step()


def test_momentum_goes_the_other_way():
    optimizer = optim.Adam([leaf()], lr=0.1)
    schedule = schedules.OneCycleLR(optimizer, 1.0, total_steps=10)
    assert optimizer.param_groups[0]["betas"] == (0.95, 0.999)
    rates(optimizer, schedule, 2)
    assert optimizer.param_groups[0]["betas"][0] == pytest.approx(0.85)


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda o: schedules.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda o: schedules.LambdaLR(o, [abs, abs]), ValueError, "Expected 1 lr_lambdas, but got 2"),
        (lambda o: schedules.MultiplicativeLR(o, 3), TypeError, "lr_lambda should be a function, but got int"),
        (lambda o: schedules.ConstantLR(o, 2.0), ValueError, "expected to be between 0 and 1"),
        (lambda o: schedules.LinearLR(o, 0.0), ValueError, "expected to be greater than 0 and less or equal to 1"),
        (lambda o: schedules.OneCycleLR(o, 1.0), ValueError, "You must define either total_steps OR"),
        (lambda o: schedules.OneCycleLR(o, 1.0, 0), ValueError, "Expected positive integer total_steps, but got 0"),
        (lambda o: schedules.OneCycleLR(optim.Adagrad([leaf()]), 1.0, 5), ValueError, "must support momentum or bet"),
        (lambda o: schedules.CyclicLR(o, 0.1, 1.0, mode="x"), ValueError, "mode is invalid and scale_fn is None"),
        (lambda o: schedules.CyclicLR(o, [0.1, 1], 1.0), ValueError, "base_lr must have the same length as"),
        (lambda o: schedules.CosineAnnealingWarmRestarts(o, 0), ValueError, "Expected positive integer T_0, but got 0"),
        (lambda o: schedules.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor should be < 1.0."),
        (lambda o: schedules.ReduceLROnPlateau(o, mode="x"), ValueError, "mode x is unknown!"),
        (lambda o: schedules.ReduceLROnPlateau(o, min_lr=[1, 2]), ValueError, "expected 1 min_lrs, got 2"),
        (lambda o: schedules.ChainedScheduler([]), ValueError, "expects at least one scheduler to be chained"),
        (lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o)], [1]), ValueError, "to be one more than the nu"),
        (
            lambda o: schedules.ChainedScheduler([schedules.ReduceLROnPlateau(o)]),
            ValueError,
            "does not support `ReduceLROnPlateau` scheduler",
        ),
        (
            lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(sgd())], []),
            ValueError,
            "expects all schedulers to belong to the same optimizer",
        ),
    ],
)
def test_errors(act, error, text):
    with pytest.raises(error, match=text):
        act(sgd(momentum=0.9))


def test_too_many_steps_of_one_cycle():
    optimizer = sgd(momentum=0.9)
    schedule = schedules.OneCycleLR(optimizer, 1.0, total_steps=2)
    rates(optimizer, schedule, 2)
    with pytest.raises(ValueError, match=r"Tried to step 3 times. The specified number of total steps is 2"):
        schedule.step()


def test_own_schedule():
    class Halving(schedules.LRScheduler):
        def get_lr(self):
            return [base / 2**self.last_epoch for base in self.base_lrs]

    optimizer = sgd()
    assert rates(optimizer, Halving(optimizer), 3) == [0.5, 0.25, 0.125]


def test_averaged_model():
    layer = strata.nn.Linear(1, 1)
    average = swa_utils.AveragedModel(layer)
    for value in (1.0, 2.0, 6.0):
        strata.nn.init.constant_(layer.weight, value)
        average.update_parameters(layer)
    assert float(average.module.weight) == pytest.approx(3.0) and int(average.n_averaged) == 3
    assert average(strata.ones(1, 1)).shape == (1, 1)
    moving = swa_utils.AveragedModel(layer, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5))
    for value in (1.0, 2.0):
        strata.nn.init.constant_(layer.weight, value)
        moving.update_parameters(layer)
    assert float(moving.module.weight) == pytest.approx(1.5)


def test_update_bn():
    model = strata.nn.Sequential(strata.nn.BatchNorm1d(2)).eval()
    swa_utils.update_bn([strata.full((4, 2), 1.0), [strata.full((4, 2), 3.0), "label"]], model)
    assert model[0].running_mean.tolist() == pytest.approx([2.0, 2.0])
    assert not model.training and model[0].momentum == 0.1


def test_swa_rate():
    optimizer = sgd()
    schedule = swa_utils.SWALR(optimizer, 0.1, anneal_epochs=4, anneal_strategy="linear")
    assert rates(optimizer, schedule, 6) == pytest.approx([0.5, 0.4, 0.3, 0.2, 0.1, 0.1])
