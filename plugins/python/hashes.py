# hashlib.pbkdf2_hmac, which CPython takes from OpenSSL alone, and WASI has none. It is put
# into hashlib when a script imports that.
def _hashes():
    import sys

    def supply(hashlib):
        def pbkdf2_hmac(hash_name, password, salt, iterations, dklen=None):
            """Password based key derivation function 2 (PKCS #5 v2.0) with HMAC as pseudorandom function."""
            if not isinstance(hash_name, str):
                raise TypeError(f"pbkdf2_hmac() argument 'hash_name' must be str, not {type(hash_name).__name__}")
            password, salt = bytes(memoryview(password)), bytes(memoryview(salt))
            inner, outer = hashlib.new(hash_name), hashlib.new(hash_name)
            size, block = inner.digest_size, inner.block_size
            if not size:  # shake_128: as long as it is asked to be
                raise ValueError(f"unsupported hash type {hash_name}")
            if iterations < 1:
                raise ValueError("iteration value must be greater than 0.")
            if dklen is None:
                dklen = size
            if dklen < 1:
                raise ValueError("key length must be greater than 0.")
            if len(password) > block:
                password = hashlib.new(hash_name, password).digest()
            password = password.ljust(block, b"\0")
            inner.update(bytes(b ^ 0x36 for b in password))
            outer.update(bytes(b ^ 0x5C for b in password))

            def hmac(text):
                i, o = inner.copy(), outer.copy()
                i.update(text)
                o.update(i.digest())
                return o.digest()

            key = b""
            for number in range(1, -(-dklen // size) + 1):
                last = hmac(salt + number.to_bytes(4, "big"))
                mixed = int.from_bytes(last, "big")
                for _ in range(iterations - 1):
                    last = hmac(last)
                    mixed ^= int.from_bytes(last, "big")
                key += mixed.to_bytes(size, "big")
            return key[:dklen]

        if hasattr(hashlib, "new") and not hasattr(hashlib, "pbkdf2_hmac"):  # not a script's own hashlib
            pbkdf2_hmac.__module__, pbkdf2_hmac.__qualname__ = "hashlib", "pbkdf2_hmac"
            hashlib.pbkdf2_hmac = pbkdf2_hmac
            hashlib.__all__ += ("pbkdf2_hmac",)

    class Loader:
        def __init__(self, loader):
            self._loader = loader

        def __getattr__(self, name):
            return getattr(self._loader, name)

        def create_module(self, spec):
            return self._loader.create_module(spec)

        def exec_module(self, module):
            module.__loader__ = module.__spec__.loader = self._loader
            self._loader.exec_module(module)
            supply(module)

    class HashlibFinder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name != "hashlib":
                return None
            for finder in sys.meta_path:
                spec = finder is not HashlibFinder and finder.find_spec(name, path, target)
                if spec:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = Loader(spec.loader)
                    return spec
            return None

    if "hashlib" in sys.modules:
        supply(sys.modules["hashlib"])
    else:
        sys.meta_path.insert(0, HashlibFinder)


_hashes()
del _hashes
