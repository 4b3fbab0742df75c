"""Every setting: read once from command line, environment and files, turned into frozen configs.

The table in `moorage.options` is the whole truth: an option of `moorage serve`, a key of the
configuration file and an environment variable `MOORAGE_<NAME>` each, in this precedence: command
line, environment, files, default. Only values are handled here; no part is started, no file but the
configuration is opened.
"""

from moorage.settings.config_files import CONFIG_FILES
from moorage.settings.configs import Settings, configure
from moorage.settings.effective_values import BadSetting, Effective, masked
from moorage.settings.reading import ENVIRONMENT_PREFIX, read, settle, strange_variables

__all__ = [
    "CONFIG_FILES",
    "ENVIRONMENT_PREFIX",
    "BadSetting",
    "Effective",
    "Settings",
    "configure",
    "masked",
    "read",
    "settle",
    "strange_variables",
]
