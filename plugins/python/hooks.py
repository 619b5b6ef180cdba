# Changes of the library, made where a script imports what they are about: so a script that
# does not, pays nothing for them.
def _hook(changes, files=None):
    """changes are functions by the name of the module that they are given; files are modules
    that WASI leaves out, by name."""
    import sys

    files = files or {}

    def changed(module, change):
        try:
            change(module)
        except Exception:
            pass  # another module of that name

    class Loader:
        def __init__(self, loader, change):
            self._loader, self._change = loader, change

        def __getattr__(self, name):
            return getattr(self._loader, name)

        def create_module(self, spec):
            return self._loader.create_module(spec)

        def exec_module(self, module):
            module.__loader__ = module.__spec__.loader = self._loader
            self._loader.exec_module(module)
            changed(module, self._change)

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name in files:
                from _frozen_importlib_external import spec_from_file_location

                return spec_from_file_location(name, files[name])
            change = changes.get(name)
            if change is None:
                return None
            for finder in sys.meta_path:
                if finder is not Finder:
                    spec = finder.find_spec(name, path, target)
                    if spec is not None:
                        if hasattr(spec.loader, "exec_module"):
                            spec.loader = Loader(spec.loader, change)
                        return spec
            return None

    for name, change in changes.items():
        if name in sys.modules:
            changed(sys.modules[name], change)
    sys.meta_path.insert(0, Finder)
