"""A plug-in of the compiler: prelude.py, which lies beside this file, runs before a script."""

import pathlib

from nuitka.plugins.PluginBase import NuitkaPluginBase


class Prelude(NuitkaPluginBase):
    plugin_name = "openskill-prelude"
    plugin_desc = "What WASI does otherwise than Linux."

    @staticmethod
    def createPreModuleLoadCode(module):
        """The code that runs before a module: before the script, the prelude."""
        if module.getFullName() != "__main__":
            return None
        return pathlib.Path(__file__).with_name("prelude.py").read_text(), "WASI is not Linux"
