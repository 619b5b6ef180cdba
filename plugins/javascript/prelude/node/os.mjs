// os says what the sandbox is: one processor, no network of its own, and the machine and user that
// Python and the shell name, too.
const codes = { EACCES: 13, EADDRINUSE: 98, EBADF: 9, ECONNREFUSED: 111, ECONNRESET: 104, EEXIST: 17, EINVAL: 22, EISDIR: 21, EMFILE: 24, ENOENT: 2, ENOTDIR: 20, ENOTEMPTY: 39, EPERM: 1, EPIPE: 32, ETIMEDOUT: 110 };
const signals = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGKILL: 9, SIGUSR1: 10, SIGSEGV: 11, SIGUSR2: 12, SIGPIPE: 13, SIGALRM: 14, SIGTERM: 15 };
const home = () => globalThis.process.env.HOME ?? '/tmp';
const os = {
  EOL: '\n', devNull: '/dev/null', constants: { errno: codes, signals, priority: {}, UV_UDP_REUSEADDR: 4 },
  arch: () => 'x64', machine: () => 'x86_64', platform: () => 'linux', type: () => 'Linux', release: () => '5.15.0-sandbox', version: () => '#1 SMP PREEMPT sandbox', endianness: () => 'LE', hostname: () => 'sandbox',
  homedir: home, tmpdir: () => (globalThis.process.env.TMPDIR ?? '/tmp').replace(/(.)\/$/, '$1'), availableParallelism: () => 1,
  cpus: () => [{ model: 'sandbox', speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } }],
  totalmem: () => 268435456, freemem: () => 134217728, uptime: () => Math.floor(globalThis.performance.now() / 1000), loadavg: () => [0, 0, 0], networkInterfaces: () => ({}),
  userInfo: () => ({ uid: 1000, gid: 1000, username: 'skill', homedir: home(), shell: '/bin/bash' }), getPriority: () => 0, setPriority() {},
};
export default os;
