// Package skillbench measures skills by the runners that run them: calls from
// images against starting native Python, programs that compute, the memory of
// sandboxes that wait, and other ways to run the same scripts. It makes cases for
// openskill/wasm/bench, which runs their variants in turn.
package skillbench
