"""How much Hypothesis tries: `short` in every run, `--hypothesis-profile=long` for campaigns by hand."""

from hypothesis import HealthCheck, Phase, settings

NOT_TIMED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "short",
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=NOT_TIMED,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
settings.register_profile("long", max_examples=3000, deadline=None, suppress_health_check=NOT_TIMED)
settings.load_profile("short")
