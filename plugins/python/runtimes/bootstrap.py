# Runs before any script on a runtime without compiled packages: importing one of
# them is an ImportError that says how to get it. The finder stands last, so a
# module of that name in the skill's own folder is found first, and it answers only
# import statements: importlib.util.find_spec("numpy") stays None.
def _install_hint(sys, packages, error):
    class Hint:
        @staticmethod
        def find_spec(name, path=None, target=None):
            package = packages.get(name)
            if package is None or path is not None:
                return None
            caller = sys._getframe(1)
            while caller is not None and caller.f_code.co_name != "_find_and_load_unlocked":
                if caller.f_code.co_name == "find_spec":
                    return None
                caller = caller.f_back
            if caller is None:
                return None
            raise error(
                f"{name} is in the scientific runtime: the operator installs it with: "
                "openskill runtime install scientific; "
                f"and the skill names it in skill.yaml: requires: [{package}]",
                name=name,
            )

    sys.meta_path.append(Hint)


_install_hint(__import__("sys"), {PACKAGES}, ModuleNotFoundError)
