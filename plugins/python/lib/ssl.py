"""TLS as scripts see it: the host speaks it, verifies certificates and names, and offers no way
around. A connection is marked as https, and its bytes stay plain (see module sockets)."""

import _socket
import base64
import enum
import os
import re
import textwrap
from collections import namedtuple
from socket import SO_TYPE, SOCK_STREAM, SOL_SOCKET, create_connection, socket

import _openskill_sockets as _sockets

OPENSSL_VERSION = "OpenSSL 3.0.0 (TLS by openSkill's host)"
OPENSSL_VERSION_INFO = _OPENSSL_API_VERSION = (3, 0, 0, 0, 0)
OPENSSL_VERSION_NUMBER = 0x30000000
HAS_SNI = HAS_ECDH = HAS_ALPN = HAS_NEVER_CHECK_COMMON_NAME = HAS_TLSv1_2 = HAS_TLSv1_3 = True
HAS_NPN = HAS_SSLv2 = HAS_SSLv3 = HAS_TLSv1 = HAS_TLSv1_1 = HAS_PSK = HAS_PHA = False
CHANNEL_BINDING_TYPES = []
_DEFAULT_CIPHERS = "DEFAULT"
PEM_HEADER = "-----BEGIN CERTIFICATE-----"
PEM_FOOTER = "-----END CERTIFICATE-----"


def _names(kind, name, **values):
    made = kind(name, values, module=__name__)
    globals().update(made.__members__)
    return made


_SSLMethod = _names(
    enum.IntEnum, "_SSLMethod", PROTOCOL_TLS=2, PROTOCOL_SSLv23=2, PROTOCOL_TLS_CLIENT=16, PROTOCOL_TLS_SERVER=17,
    PROTOCOL_TLSv1=3, PROTOCOL_TLSv1_1=4, PROTOCOL_TLSv1_2=5,
)
VerifyMode = _names(enum.IntEnum, "VerifyMode", CERT_NONE=0, CERT_OPTIONAL=1, CERT_REQUIRED=2)
VerifyFlags = _names(
    enum.IntFlag, "VerifyFlags", VERIFY_DEFAULT=0, VERIFY_CRL_CHECK_LEAF=4, VERIFY_CRL_CHECK_CHAIN=12, VERIFY_X509_STRICT=32,
    VERIFY_ALLOW_PROXY_CERTS=64, VERIFY_X509_TRUSTED_FIRST=0x8000, VERIFY_X509_PARTIAL_CHAIN=0x80000,
)
Options = _names(
    enum.IntFlag, "Options", OP_ALL=0x80000050, OP_NO_SSLv2=0, OP_SINGLE_DH_USE=0, OP_SINGLE_ECDH_USE=0, OP_LEGACY_SERVER_CONNECT=4,
    OP_IGNORE_UNEXPECTED_EOF=128, OP_NO_TICKET=0x4000, OP_NO_COMPRESSION=0x20000, OP_ENABLE_MIDDLEBOX_COMPAT=0x100000,
    OP_CIPHER_SERVER_PREFERENCE=0x400000, OP_NO_SSLv3=0x2000000, OP_NO_TLSv1=0x4000000, OP_NO_TLSv1_2=0x8000000,
    OP_NO_TLSv1_1=0x10000000, OP_NO_TLSv1_3=0x20000000, OP_NO_RENEGOTIATION=0x40000000,
)
SSLErrorNumber = _names(
    enum.IntEnum, "SSLErrorNumber", SSL_ERROR_SSL=1, SSL_ERROR_WANT_READ=2, SSL_ERROR_WANT_WRITE=3, SSL_ERROR_WANT_X509_LOOKUP=4,
    SSL_ERROR_SYSCALL=5, SSL_ERROR_ZERO_RETURN=6, SSL_ERROR_WANT_CONNECT=7, SSL_ERROR_EOF=8, SSL_ERROR_INVALID_ERROR_CODE=10,
)
AlertDescription = enum.IntEnum("AlertDescription", {"ALERT_DESCRIPTION_CLOSE_NOTIFY": 0}, module=__name__)


class TLSVersion(enum.IntEnum):
    MINIMUM_SUPPORTED = -2
    SSLv3 = 768
    TLSv1 = 769
    TLSv1_1 = 770
    TLSv1_2 = 771
    TLSv1_3 = 772
    MAXIMUM_SUPPORTED = -1


_ASN1Object = namedtuple("_ASN1Object", "nid shortname longname oid")


class Purpose(_ASN1Object, enum.Enum):
    SERVER_AUTH = 129, "serverAuth", "TLS Web Server Authentication", "1.3.6.1.5.5.7.3.1"
    CLIENT_AUTH = 130, "clientAuth", "TLS Web Client Authentication", "1.3.6.1.5.5.7.3.2"


class SSLError(OSError):
    """An error occurred in the SSL implementation."""

    library = reason = None

    def __str__(self):
        return str(self.strerror or (self.args[0] if self.args else ""))


class SSLZeroReturnError(SSLError):
    """SSL/TLS session closed cleanly."""


class SSLWantReadError(SSLError):
    """Non-blocking SSL socket needs to read more data before the requested operation can be completed."""


class SSLWantWriteError(SSLError):
    """Non-blocking SSL socket needs to write more data before the requested operation can be completed."""


class SSLSyscallError(SSLError):
    """System error when attempting SSL operation."""


class SSLEOFError(SSLError):
    """SSL/TLS connection terminated abruptly."""


class SSLCertVerificationError(SSLError, ValueError):
    """A certificate could not be verified."""

    verify_code = 20
    reason = "CERTIFICATE_VERIFY_FAILED"

    @property
    def verify_message(self):
        return self.strerror


CertificateError = SSLCertVerificationError
socket_error = OSError


class SSLSession:
    """None is ever made."""


class MemoryBIO:
    """Bytes that wait to be read."""

    def __init__(self):
        self._data = bytearray()
        self.eof = False

    @property
    def pending(self):
        return len(self._data)

    def read(self, size=-1):
        data = bytes(self._data if size < 0 else self._data[:size])
        del self._data[: len(data)]
        if not self._data and self._ended:
            self.eof = True
        return data

    _ended = False

    def write(self, data):
        if self._ended:
            raise SSLError("cannot write() after write_eof()")
        self._data += data
        return memoryview(data).nbytes

    def write_eof(self):
        self._ended = True
        self.eof = not self._data


class _Secure:
    """What SSLSocket and SSLObject say of a connection."""

    server_side = False
    session = session_reused = None

    def getpeercert(self, binary_form=False):
        return b"" if binary_form else {}

    def get_verified_chain(self):
        return []

    get_unverified_chain = get_verified_chain

    def selected_alpn_protocol(self):
        return "http/1.1" if "http/1.1" in self.context._protocols else None

    def selected_npn_protocol(self):
        return None

    def cipher(self):
        return "TLS_AES_128_GCM_SHA256", "TLSv1.3", 128

    def shared_ciphers(self):
        return [self.cipher()]

    def compression(self):
        return None

    def version(self):
        return "TLSv1.3"

    def get_channel_binding(self, cb_type="tls-unique"):
        raise ValueError(f"{cb_type} channel binding type not implemented")

    def verify_client_post_handshake(self):
        raise NotImplementedError("Post-handshake auth is not implemented")


class SSLSocket(_Secure, socket):
    """A socket that the host's TLS is behind."""

    def __init__(self, *args, **kwargs):
        raise TypeError(f"{type(self).__name__} does not have a public constructor. Instances are returned by SSLContext.wrap_socket().")

    @classmethod
    def _create(cls, sock, context, server_hostname, suppress_ragged_eofs=True):
        if sock.getsockopt(SOL_SOCKET, SO_TYPE) != SOCK_STREAM:
            raise NotImplementedError("only stream sockets are supported")
        self = cls.__new__(cls)
        timeout = sock.gettimeout()
        socket.__init__(self, sock.family, sock.type, sock.proto, sock.fileno())
        sock.detach()
        self.settimeout(timeout)
        self._context, self.server_hostname, self.suppress_ragged_eofs = context, server_hostname, suppress_ragged_eofs
        self.do_handshake_on_connect, self._sslobj = True, self  # libraries look for the latter
        self._conn.secure(server_hostname or "")
        return self

    @property
    def context(self):
        return self._context

    @context.setter
    def context(self, context):
        self._context = context

    def do_handshake(self, block=False):
        self._conn.secure(self.server_hostname or "")

    def read(self, len=1024, buffer=None):
        return self.recv(len) if buffer is None else self.recv_into(buffer, len)

    def write(self, data):
        return self.send(data)

    def pending(self):
        return len(self._conn.out)

    def unwrap(self):
        return self

    def dup(self):
        raise NotImplementedError(f"Can't dup() {type(self).__name__} instances")


class SSLObject(_Secure):
    """TLS between two buffers: what is written to the one leaves as it is, behind a mark."""

    def __init__(self, *args, **kwargs):
        raise TypeError(f"{type(self).__name__} does not have a public constructor. Instances are returned by SSLContext.wrap_bio().")

    @classmethod
    def _create(cls, incoming, outgoing, context, server_hostname):
        self = cls.__new__(cls)
        self._incoming, self._outgoing, self.context, self.server_hostname = incoming, outgoing, context, server_hostname
        if isinstance(server_hostname, (bytes, bytearray)):
            self.server_hostname = server_hostname.decode()
        self._marked = False
        return self

    def do_handshake(self):
        if not self._marked:
            self._marked = True
            self._outgoing.write(_sockets.TLS + (self.server_hostname or "").encode() + b"\n")

    def read(self, len=1024, buffer=None):
        if not self._incoming.pending and not self._incoming._ended:
            raise SSLWantReadError(SSL_ERROR_WANT_READ, "The operation did not complete (read)")
        data = self._incoming.read(len if buffer is None else min(len or 1 << 62, memoryview(buffer).nbytes))
        if buffer is None:
            return data
        memoryview(buffer).cast("B")[: memoryview(data).nbytes] = data
        return memoryview(data).nbytes

    def write(self, data):
        self.do_handshake()
        return self._outgoing.write(data)

    def pending(self):
        return self._incoming.pending

    def unwrap(self):
        pass


class SSLContext:
    """Settings of TLS. The host's own hold: they can be read back, and change nothing."""

    sslsocket_class, sslobject_class = SSLSocket, SSLObject
    sni_callback = keylog_filename = _msg_callback = None
    post_handshake_auth, hostname_checks_common_name, num_tickets, security_level = False, True, 2, 2

    def __new__(cls, protocol=None, *args, **kwargs):
        self = object.__new__(cls)
        self.protocol = PROTOCOL_TLS if protocol is None else _SSLMethod(protocol)
        client = self.protocol == PROTOCOL_TLS_CLIENT
        self.check_hostname = client
        self.verify_mode = CERT_REQUIRED if client else CERT_NONE
        self.verify_flags = VERIFY_X509_TRUSTED_FIRST
        self.options = OP_ALL | OP_NO_SSLv3 | OP_NO_COMPRESSION
        self.minimum_version, self.maximum_version = TLSVersion.TLSv1_2, TLSVersion.MAXIMUM_SUPPORTED
        self._protocols = ()
        return self

    def _client(self, server_side):
        if server_side:
            raise SSLError(SSL_ERROR_SSL, "the sandbox has no sockets that listen")

    def wrap_socket(self, sock, server_side=False, do_handshake_on_connect=True, suppress_ragged_eofs=True, server_hostname=None, session=None):
        self._client(server_side)
        if self.check_hostname and not server_hostname:
            raise ValueError("check_hostname requires server_hostname")
        return self.sslsocket_class._create(sock, self, server_hostname, suppress_ragged_eofs)

    def wrap_bio(self, incoming, outgoing, server_side=False, server_hostname=None, session=None):
        self._client(server_side)
        return self.sslobject_class._create(incoming, outgoing, self, server_hostname)

    def set_alpn_protocols(self, protocols):
        self._protocols = tuple(protocols)

    def set_npn_protocols(self, protocols):
        pass

    def set_ciphers(self, ciphers):
        pass

    def set_ecdh_curve(self, name):
        pass

    def set_servername_callback(self, callback):
        self.sni_callback = callback

    def get_ciphers(self):
        return [{"id": 50336513, "name": "TLS_AES_128_GCM_SHA256", "protocol": "TLSv1.3", "strength_bits": 128, "alg_bits": 128}]

    def load_verify_locations(self, cafile=None, capath=None, cadata=None):
        if cafile is None and capath is None and cadata is None:
            raise TypeError("cafile, capath and cadata cannot be all omitted")
        for path in (cafile, capath):
            if path is not None:
                os.stat(path)

    def load_default_certs(self, purpose=Purpose.SERVER_AUTH):
        pass

    def set_default_verify_paths(self):
        pass

    def load_cert_chain(self, certfile, keyfile=None, password=None):
        raise SSLError(SSL_ERROR_SSL, "client certificates cannot be used: TLS is the host's")

    def load_dh_params(self, path):
        pass

    def cert_store_stats(self):
        return {"x509": 0, "crl": 0, "x509_ca": 0}

    def get_ca_certs(self, binary_form=False):
        return []

    def session_stats(self):
        return {}


DefaultVerifyPaths = namedtuple("DefaultVerifyPaths", "cafile capath openssl_cafile_env openssl_cafile openssl_capath_env openssl_capath")


def get_default_verify_paths():
    return DefaultVerifyPaths(None, None, "SSL_CERT_FILE", "/etc/ssl/cert.pem", "SSL_CERT_DIR", "/etc/ssl/certs")


def create_default_context(purpose=Purpose.SERVER_AUTH, *, cafile=None, capath=None, cadata=None):
    if not isinstance(purpose, _ASN1Object):
        raise TypeError(purpose)
    context = SSLContext(PROTOCOL_TLS_SERVER if purpose == Purpose.CLIENT_AUTH else PROTOCOL_TLS_CLIENT)
    if cafile or capath or cadata:
        context.load_verify_locations(cafile, capath, cadata)
    return context


def _create_unverified_context(protocol=None, *, cert_reqs=CERT_NONE, check_hostname=False, **_):
    context = SSLContext(PROTOCOL_TLS_CLIENT if protocol is None else protocol)
    context.check_hostname, context.verify_mode = check_hostname, cert_reqs
    return context


_create_default_https_context = create_default_context
_create_stdlib_context = _create_unverified_context


def cert_time_to_seconds(cert_time):
    import calendar
    import time

    return calendar.timegm(time.strptime(cert_time, "%b %d %H:%M:%S %Y GMT"))


def DER_cert_to_PEM_cert(der_cert_bytes):
    lines = textwrap.wrap(base64.standard_b64encode(der_cert_bytes).decode("ascii"), 64)
    return "\n".join([PEM_HEADER, *lines, PEM_FOOTER]) + "\n"


def PEM_cert_to_DER_cert(pem_cert_string):
    found = re.fullmatch(f"{PEM_HEADER}(.*){PEM_FOOTER}", pem_cert_string.strip(), re.S)
    if not found:
        raise ValueError(f"Invalid PEM encoding; must start with {PEM_HEADER} and end with {PEM_FOOTER}")
    return base64.b64decode(found[1].encode("ascii"))


def get_server_certificate(addr, ssl_version=PROTOCOL_TLS_CLIENT, ca_certs=None, timeout=None):
    raise SSLError(SSL_ERROR_SSL, "certificates of servers cannot be read: TLS is the host's")


def get_protocol_name(protocol_code):
    try:
        return _SSLMethod(protocol_code).name
    except ValueError:
        return "<unknown>"


def RAND_bytes(n):
    return os.urandom(n)


def RAND_status():
    return True


def RAND_add(data, entropy):
    pass
