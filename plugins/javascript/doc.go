// Package javascript runs JavaScript files as they are, in the sandbox: by
// QuickJS-ng 0.11, a WASI command of 1.4 MB that is part of the host. It is the
// runner wasm:javascript.
package javascript
