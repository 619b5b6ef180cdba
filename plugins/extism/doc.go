// Package extism runs skills that are plug-ins of Extism, built by any of its PDKs: the
// runner wasm:extism.
//
// A plug-in reads the call, the JSON that other skills read from standard input, as its
// input, and sets its answer as its output. The function that is called is invoke, or the
// one that the entry names behind a "#": plugin.wasm#count_vowels. It takes nothing and
// returns nothing, or a status that is 0 for success.
//
// Nothing of Extism's own hosts is used. The module is checked, metered and compiled like
// any other, starts once for all calls, and sees the world of a WASI command with
// the functions of wasi.PluginModule beside it. So all limits hold as they do there, and
//
//   - logs are kept as standard error, and so is what it prints;
//   - the configuration are the variables that the operator grants;
//   - variables last as long as one call;
//   - requests go through the host's own client, where they are granted;
//   - there are no modules from elsewhere, and no host functions of anybody else.
package extism
